// SPDX-License-Identifier: Apache-2.0
// The page Flame: the views, the choices above the graph, and what is selected.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { LAYERS, LAYER_NAMES, PALETTES } from "../../draw/colours";
import { Flame } from "../../draw/flame";
import { amount, percent } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import { common, useApp, useAnswer, type App } from "../../state/app";
import { CsvButton, Switches, Trouble } from "../../shell/parts";
import { useMarks } from "../../shell/marks";
import { register } from "../../shell/registry";
import { Chart, type Chosen } from "./chart";
import { Details } from "./details";
import { BoxTable } from "./boxes";
import { csvRows, visibleRange } from "./csv";
import { useFinding } from "./focus";

type ViewName = "down" | "heavy" | "up" | "sandwich";
const VIEWS: [ViewName, string][] = [["down", "Top-down"], ["heavy", "Left-heavy"], ["up", "Bottom-up"], ["sandwich", "Sandwich"]];

/** A page in one file has the details of boxes under one name: without a metric, which is the default one. */
function heldMetric(app: App): Query {
	const metric = app.about.metrics.find((one) => one.is_default)?.name;
	return app.source.isOffline && app.state.values["metric"] === metric ? { metric: null } : {};
}

function useQuery(app: App): { view: ViewName; query: Query } {
	const values = app.state.values;
	const view = (VIEWS.find(([id]) => id === values["view"])?.[0] ?? "down");
	const query: Query = { ...common(app, ["metric", "window"]), ...heldMetric(app), view, root: values["root"], search: values["search"], hide: values["hide"],
		recursion: values["recursion"], phase: values["phase"], layers: values["layers"], rank: values["rank"] };
	return { view, query };
}

function FlamePage() {
	const app = useApp();
	const { view, query } = useQuery(app);
	const values = app.state.values;
	const trouble = useFinding(app, query);
	const [chosen, setChosen] = useState<Chosen | null>(null);
	const [flame, setFlame] = useState<Flame | null>(null);
	const [callers, setCallers] = useState<Flame | null>(null);
	const of = values["of"];
	const setView = (next: ViewName) => app.set({ view: next === "down" ? null : next, x0: null, x1: null, root: null, node: null }, true);

	useEffect(() => {
		const key = (event: KeyboardEvent) => {
			if (event.ctrlKey || event.metaKey || event.altKey || (event.target instanceof HTMLElement && event.target.matches("input, select, textarea"))
				|| document.querySelector("dialog[open]")) return;
			const next = VIEWS[Number(event.key) - 1];
			if (next) setView(next[0]);
			else if (event.key === "r") app.set({ recursion: values["recursion"] ? null : "collapse", node: null, root: null }, true);
		};
		addEventListener("keydown", key);
		return () => removeEventListener("keydown", key);
	});

	const asTable = values["as"] === "table";
	return (
		<div class="page flame">
			<h1 class="unseen">Flame graph</h1>
			<div class="tools">
				<Switches label="View" value={view} options={VIEWS} onChange={setView} />
				<LayerSwitches />
				<Search flame={flame} />
				<Switches label="As" value={asTable ? "table" : "graph"} options={[["graph", "Graph"], ["table", "Table"]]}
					onChange={(as) => app.set({ as: as === "table" ? as : null }, true)} />
				<CsvButton name="flame" rows={() => csvRows(view === "sandwich" ? { callers, callees: flame } : { [view]: flame }, visibleRange(values))} />
				{!app.source.isOffline && <button type="button" aria-pressed={values["recursion"] === "collapse"} title="r"
					onClick={() => app.set({ recursion: values["recursion"] ? null : "collapse", node: null, root: null }, true)}>Collapse recursion</button>}
				{app.about.has["layers"] && !app.source.isOffline && <button type="button" aria-pressed={values["phase"] === "apart"}
					onClick={() => app.set({ phase: values["phase"] ? null : "apart", node: null, root: null }, true)}>Backward apart</button>}
				{values["hide"] && <button type="button" onClick={() => app.set({ hide: null, node: null, root: null }, true)}>Show {values["hide"]} again</button>}
				{values["rank"] && <button type="button" onClick={() => app.set({ rank: null, node: null, root: null }, true)}>Only rank {values["rank"]}: show all</button>}
				{values["root"] && <button type="button" onClick={() => app.set({ root: null, x0: null, x1: null }, true)}>End the focus</button>}
			</div>
			<Summary flame={flame} />
			{trouble && <p class="notice" role="alert">{trouble}</p>}
			<div class="split">
				<div class="charts">
					{values["finding"] ? <p class="notice" aria-busy="true">Looking for the box of the finding…</p> : view === "sandwich" ? (of ? <>
						<h2>Callers</h2>
						<Chart key={`callers ${of}`} query={{ ...query, view: "callers", of, root: null }} keeps={false} onAnswer={setCallers} onChosen={setChosen} asTable={asTable} />
						<h2>Callees</h2>
						<Chart key={`callees ${of}`} query={{ ...query, view: "callees", of, root: null }} keeps={false} onAnswer={setFlame} onChosen={setChosen} asTable={asTable} />
					</> : <Frames query={query} />)
						: <Chart query={query} keeps={true} onAnswer={setFlame} onChosen={setChosen} asTable={asTable} />}
				</div>
				{chosen && <Details flame={chosen.flame} box={chosen.box} query={{ ...chosen.query, root: null, search: null }} onClose={() => { setChosen(null); app.set({ node: null }); }} />}
			</div>
		</div>
	);
}

function Summary({ flame }: { flame: Flame | null }) {
	const app = useApp();
	if (!flame) return <p class="summary">&nbsp;</p>;
	const { value, unit, metric, matched, nodes } = flame.total;
	const { view, metric: named, window, layers, hide, file } = app.state.values;
	const note = app.source.note("flame", { view: view === "sandwich" ? "callees" : view, metric: named, window, layers, hide, file });
	return (
		<p class="summary">
			{metric}: {amount(value, unit)} in {amount(nodes, null)} boxes
			{app.state.values["search"] && <>; <strong>{percent(matched / value)} match ({amount(matched, unit)})</strong></>}
			{note && <>; {note}</>}
		</p>
	);
}

function LayerSwitches() {
	const app = useApp();
	const shown = (app.state.values["layers"] ?? LAYERS.join(",")).split(",");
	const palette = PALETTES[app.look];
	const turn = (layer: string) => {
		const next = LAYERS.filter((one) => (one === layer ? !shown.includes(one) : shown.includes(one)));
		if (next.length) app.set({ layers: next.length === LAYERS.length ? null : next.join(","), root: null, node: null, x0: null, x1: null }, true);
	};
	return (
		<div class="switches layers" role="group" aria-label="Layers shown">
			{LAYERS.map((layer, index) => (
				<button key={layer} type="button" aria-pressed={shown.includes(layer)} onClick={() => turn(layer)}>
					<span class="swatch" style={{ background: palette.layers[index] }} />{LAYER_NAMES[index]}
				</button>
			))}
		</div>
	);
}

function Search({ flame }: { flame: Flame | null }) {
	const app = useApp();
	const [text, setText] = useState(app.state.values["search"] ?? "");
	const timer = useRef(0);
	useEffect(() => setText(app.state.values["search"] ?? ""), [app.state.values["search"]]);
	useEffect(() => {
		if (flame && app.state.values["search"]) app.say(`${percent(flame.total.matched / flame.total.value)} match`);
	}, [flame]);
	return (
		<input type="search" aria-label="Search: an extended regular expression" placeholder="Search (/)" value={text}
			onInput={(event) => {
				const next = event.currentTarget.value;
				setText(next);
				clearTimeout(timer.current);
				timer.current = window.setTimeout(() => app.set({ search: next }), 200);
			}}
			onKeyDown={(event) => {
				if (event.key === "Escape") app.set({ search: null });
				if (event.key === "Enter" || event.key === "Escape") document.querySelector<HTMLElement>(".chart canvas")?.focus();
			}} />
	);
}

/** All frames, by what they take themselves: where a sandwich begins. */
function Frames({ query }: { query: Query }) {
	const app = useApp();
	const all: Query = { ...query, view: "up", root: null, px: 16384 };
	const loaded = useAnswer(canonical("flame", all), async (signal) => {
		const tables = await app.source.tables("flame", all, signal);
		const [boxes, total] = tables;
		if (!boxes || !total) throw new Error("the answer has no flame graph");
		return new Flame(boxes, total, [0, 1], 16384);
	});
	const marks = useMarks(query["file"]);
	const roots = useMemo(() => loaded.state === "ready" ? Array.from({ length: loaded.value.start[1] ?? 0 }, (_, box) => box) : [], [loaded]);
	if (loaded.state === "error") return <Trouble error={loaded.error} />;
	if (loaded.state === "loading") return <p class="notice" aria-busy="true">Loading…</p>;
	return <>
		<p class="notice">Choose a frame: its callers and callees are shown.</p>
		<BoxTable flame={loaded.value} only={roots} marks={marks} onOpen={(box) => app.set({ of: loaded.value.frame[box] as number }, true)} />
	</>;
}


register({
	id: "flame", title: "Flame", key: "f", needs: {}, follows: ["metric", "window"], make: FlamePage,
	keys: [
		["1 2 3 4", "top-down, left-heavy, bottom-up, sandwich"], ["arrows", "from box to box"], ["click or Enter", "zoom to the box"],
		["double click, f or 0", "show all"], ["Esc", "out by one"], ["wheel, w s", "zoom"], ["drag, a d", "move to the side"],
		["Shift+wheel, Alt+wheel", "move to the side, up and down"], ["n N", "the next box that the search matches, the one before"], ["r", "collapse recursion"], ["m or right click", "menu of a box"],
	],
});
