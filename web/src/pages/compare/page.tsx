// SPDX-License-Identifier: Apache-2.0
// The page Compare: what grew and shrank from one profile to another, as a flame graph of both and as rows with intervals.
import { useMemo, useState } from "preact/hooks";
import type { Flame } from "../../draw/flame";
import { amount, fileName, percent, signedAmount, visible } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import type { Diff } from "../../protocol/types";
import { useAnswer, useApp, type App } from "../../state/app";
import { Choice, CsvButton, Switches, Waiting } from "../../shell/parts";
import { Filter } from "../../shell/filter";
import { register } from "../../shell/registry";
import { Chart, type Chosen } from "../flame/chart";
import { Details } from "../flame/details";
import { Legend } from "./legend";
import { changeWords, Rows } from "./rows";

type By = "" | "kernel" | "operator" | "module" | "line" | "python";
const BYS: [By, string][] = [["", "What explains most"], ["kernel", "Kernels"], ["operator", "Operators"], ["module", "Modules"], ["line", "Lines"], ["python", "Functions"]];
type Width = "after" | "before" | "either";
const WIDTHS: [Width, string][] = [["after", "After"], ["before", "Before"], ["either", "The larger"]];
type View = "down" | "heavy" | "up";
const VIEWS: [View, string][] = [["down", "Top-down"], ["heavy", "Left-heavy"], ["up", "Bottom-up"]];

/** What no longer fits if the graph becomes another one. */
const FRESH = { root: null, node: null, x0: null, x1: null };

const choose = <T extends string>(options: [T, string][], value: string | undefined): T =>
	options.find(([id]) => id === value)?.[0] ?? (options[0] as [T, string])[0];

/** The files that the graph compares: those that the address names, else the first of each side. */
function sides(app: App): { before: number; after: number; first: number } {
	const first = app.about.before ?? 1, count = app.about.files.length;
	const number = (key: string, usual: number, from: number, end: number) => {
		const value = Number(app.state.values[key] ?? usual);
		return Number.isInteger(value) && value >= from && value < end ? value : usual;
	};
	return { before: number("from", 0, 0, first), after: number("to", first, first, count), first };
}

function ComparePage() {
	const app = useApp();
	const { values } = app.state;
	const by = choose(BYS, values["by"]);
	const query: Query = { by, metric: values["metric"], window: values["window"] === "all" ? null : values["window"], top: 0 };
	const loaded = useAnswer<Diff>(canonical("diff", query), (signal) => app.source.json<Diff>("diff", query, signal));
	return (
		<div class="page compare">
			<h1 class="unseen">Compare</h1>
			<Waiting loaded={loaded}>{(diff) => <Said diff={diff} />}</Waiting>
			<Picture />
			<div class="tools">
				<h2>What changed</h2>
				<Switches label="Rows" value={by} options={BYS} onChange={(next) => app.set({ by: next, sort: null, named: null }, true)} />
				<Filter />
				<CsvButton name="compare" answer="diff" query={query} table="What changed" />
			</div>
			<Waiting loaded={loaded}>{(diff) => <Rows diff={diff} after={sides(app).after} />}</Waiting>
		</div>
	);
}

/** The measures of both runs, and what else differs. */
function Said({ diff }: { diff: Diff }) {
	const app = useApp();
	return <>
		<ul class="measures">
			{diff.measures.map((row) => <li key={row.name}><strong>{visible(row.name)}</strong> {amount(row.before, row.unit)} → {amount(row.after, row.unit)}: {signedAmount(row.change, row.unit)}, {changeWords(row)}</li>)}
		</ul>
		{diff.host && diff.host.rows.length > 0 && <details open>
			<summary>The change of an iteration comes from the host ({diff.host.metric} by {diff.host.by})</summary>
			{diff.host.metric !== diff.metric && <button type="button" onClick={() => app.set({ metric: diff.host?.metric, ...FRESH }, true)}>Show {diff.host.metric} in the graph and the rows</button>}
			<ul class="findings">{diff.host.rows.slice(0, 10).map((row) => <li key={row.name}>{visible(row.name)}: {amount(row.before, "ns")} → {amount(row.after, "ns")} ({signedAmount(row.change, "ns")})</li>)}</ul>
		</details>}
		{diff.environment.length > 0 && <details><summary>What else differs: {diff.environment.length}</summary>
			<dl class="facts">{diff.environment.map((one) => <div key={one.key}><dt>{visible(one.key)}</dt><dd>{visible(one.before ?? "unknown")} → {visible(one.after ?? "unknown")}</dd></div>)}</dl></details>}
	</>;
}

/** The flame graph of both profiles. */
function Picture() {
	const app = useApp();
	const { values } = app.state, { before, after, first } = sides(app);
	const width = choose(WIDTHS, values["width"]), view = choose(VIEWS, values["view"]);
	const named = useMemo(() => (values["named"] ? values["named"].split("\n") : []), [values["named"]]);
	const query: Query = { file: after, against: before, width: width === "after" ? null : width, view, metric: values["metric"], named,
		window: values["window"] === "all" ? null : values["window"], root: values["root"], hide: values["hide"], recursion: values["recursion"] };
	const [flame, setFlame] = useState<Flame | null>(null);
	const [chosen, setChosen] = useState<Chosen | null>(null);
	const files = app.about.files.map((file, index): [string, string] => [String(index), visible(fileName(file.name))]);
	return <>
		<div class="tools">
			{first > 1 && <Choice label="Before" value={String(before)} options={files.slice(0, first)} onChange={(from) => app.set({ from, ...FRESH }, true)} />}
			{files.length - first > 1 && <Choice label="After" value={String(after)} options={files.slice(first)} onChange={(to) => app.set({ to, ...FRESH }, true)} />}
			<Switches label="View" value={view} options={VIEWS} onChange={(next) => app.set({ view: next === "down" ? null : next, ...FRESH }, true)} />
			<span class="quiet">Width:</span>
			<Switches label="Width of the boxes" value={width} options={WIDTHS} onChange={(next) => app.set({ width: next === "after" ? null : next, ...FRESH }, true)} />
			<Switches label="As" value={values["as"] === "table" ? "table" : "graph"} options={[["graph", "Graph"], ["table", "Table"]]}
				onChange={(as) => app.set({ as: as === "table" ? as : null }, true)} />
			{named.length > 0 && <button type="button" onClick={() => app.set({ named: null }, true)}>Mark no row</button>}
			{values["hide"] && <button type="button" onClick={() => app.set({ hide: null, ...FRESH }, true)}>Show {values["hide"]} again</button>}
			{values["recursion"] && <button type="button" onClick={() => app.set({ recursion: null, ...FRESH }, true)}>Show recursion again</button>}
			{values["root"] && <button type="button" onClick={() => app.set({ root: null, x0: null, x1: null }, true)}>End the focus</button>}
		</div>
		<Legend width={width} />
		{flame ? <Summary flame={flame} named={named} width={width} query={query} /> : <p class="summary">&nbsp;</p>}
		<div class="split">
			<div class="charts">
				<Chart query={query} keeps={true} onAnswer={setFlame} onChosen={setChosen} asTable={values["as"] === "table"} />
			</div>
			{chosen && <Details flame={chosen.flame} box={chosen.box} query={{ ...chosen.query, root: null, named: [] }} onClose={() => { setChosen(null); app.set({ node: null }); }} />}
		</div>
	</>;
}

function Summary({ flame, named, width, query }: { flame: Flame; named: string[]; width: Width; query: Query }) {
	const app = useApp();
	const { value, before, matched, beforeMatched, unseen, iterations, beforeIterations, metric, unit } = flame.total;
	const of = iterations > 0 && beforeIterations > 0
		? `of an iteration (of ${amount(beforeIterations, null)} before, ${amount(iterations, null)} after)` : "of all there is: how many iterations there were is not known of both";
	const other = width === "before" ? "after" : "before";
	const note = app.source.note("flame", query);
	return (
		<p class="summary">
			{metric}, {of}: {amount(before, unit)} → {amount(value, unit)}, {signedAmount(value - before, unit)}
			{unseen > 0 && <>; boxes that only {other} has hold {amount(unseen, unit)} and have no width here: <button type="button" class="plain"
				onClick={() => app.set({ width: "either", ...FRESH }, true)}>show them</button></>}
			{named.length > 0 && <>; <strong>marked: {amount(beforeMatched, unit)} → {amount(matched, unit)}, {percent(matched / value)} of all</strong></>}
			{note && <>; {note}</>}
		</p>
	);
}

register({ id: "compare", title: "Compare", key: "c", needs: { two_files: "plumb view BEFORE.plumb AFTER.plumb" }, follows: ["metric", "window"], usualWindow: "all",
	make: ComparePage,
	keys: [["/ or Ctrl+F", "filter the rows"], ["arrows", "from box to box"], ["click or Enter", "zoom to the box, or mark the boxes of a row"],
		["double click, f or 0", "show all"], ["Esc", "out by one"], ["n N", "the next box of the marked row, the one before"], ["wheel, w s", "zoom"], ["m or right click", "menu of a box"]] });
