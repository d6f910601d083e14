// SPDX-License-Identifier: Apache-2.0
// The page Levels: what looking costs, level by level; layers and GPU work as measured and corrected; rooflines with counters.
import { useMemo } from "preact/hooks";
import { placesOf } from "../../draw/slope";
import { amount, percent, short, signedAmount, visible } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import { common, useAnswer, useApp } from "../../state/app";
import { Filter } from "../../shell/filter";
import { useMarks } from "../../shell/marks";
import { CsvButton, Switches, Waiting } from "../../shell/parts";
import { register } from "../../shell/registry";
import { Table, type Cell, type TableColumn } from "../../shell/table";
import { correctedOf, isLayer, stepsOf, unitOf, type Level, type Levels, type LevelValue } from "./data";
import { Rooflines } from "./rooflines";
import { Slopes } from "./slope";
import { Whiskers } from "./whiskers";

function LevelsPage() {
	const app = useApp(), query: Query = common(app);
	const loaded = useAnswer<Levels>(canonical("levels", query), (signal) => app.source.json<Levels>("levels", query, signal));
	return (
		<div class="page levels">
			<h1 class="unseen">Levels</h1>
			<Waiting loaded={loaded}>{(levels) => <>
				<Facts levels={levels} />
				<SideBySide levels={levels} query={query} />
				<Corrected levels={levels} query={query} />
				<Rooflines why={levels.measured.find((one) => one.level === "M/L/G/C")?.why ?? null} />
			</>}</Waiting>
		</div>
	);
}

const SAID: Record<Levels["said"][number]["of"], string> = { program: "The program", note: "", layers: "Layers", kernels: "Kernels" };

/** What plumb levels says. */
function Facts({ levels }: { levels: Levels }) {
	const left = levels.measured.filter((one) => one.why !== null);
	return (
		<dl class="facts">
			{levels.command !== null && <div><dt>Command</dt><dd><code>{visible(levels.command)}</code></dd></div>}
			{levels.said.map((one) => <div key={one.of}><dt>{SAID[one.of]}</dt><dd>{visible(one.text)}</dd></div>)}
			{left.map((one) => <div key={one.level}><dt>Left out at {one.level}</dt><dd>{visible(one.why ?? "")}</dd></div>)}
		</dl>
	);
}

// ---- the levels ----

const timeOf = ({ wall_ns }: Level) => ({ value: wall_ns.mean, low: wall_ns.low, high: wall_ns.high });
const addedOf = (level: Level) => ({ value: level.overhead_ns, low: level.overhead_low_ns, high: level.overhead_high_ns });
const signed = (ns: number | null) => signedAmount(ns, "ns");

function SideBySide({ levels, query }: { levels: Levels; query: Query }) {
	const app = useApp(), { measured } = levels, deeper = measured.slice(1);
	const isFirst = (row: number) => measured[row]?.level === "M";
	const columns: TableColumn[] = [
		{ id: "level", title: "level", isNumber: false },
		{ id: "runs", title: "runs used", isNumber: true, words: (_, row) => `${measured[row]?.kept} of ${measured[row]?.runs}` },
		{ id: "time", title: `time of ${unitOf(levels)}`, isNumber: true, unit: "ns" },
		{ id: "low", title: "95 % from", isNumber: true, unit: "ns" }, { id: "high", title: "95 % to", isNumber: true, unit: "ns" },
		{ id: "added", title: "added", isNumber: true, unit: "ns", words: (value, row) => (isFirst(row) ? "–" : signed(value as number | null)) },
		{ id: "added-low", title: "added, 95 % from", isNumber: true, unit: "ns", words: (value, row) => (isFirst(row) ? "–" : signed(value as number | null)) },
		{ id: "added-high", title: "added, 95 % to", isNumber: true, unit: "ns", words: (value, row) => (isFirst(row) ? "–" : signed(value as number | null)) },
		{ id: "sees", title: "sees", isNumber: false },
	];
	const cell = (row: number, column: number): Cell => {
		const one = measured[row];
		if (!one) return null;
		const time = timeOf(one), added = addedOf(one);
		return [one.level, one.kept, time.value, time.low, time.high, added.value, added.low, added.high, one.sees][column] ?? null;
	};
	return <>
		<div class="row"><h2>The levels side by side</h2><CsvButton name="levels" answer="levels" query={{ ...query, by: "level" }} table="The levels side by side" /></div>
		<div class="pair">
			<Whiskers title={`Time of ${unitOf(levels)} at each level, with its interval of 95 %`} rows={measured.map((one) => ({ name: one.level, ...timeOf(one) }))} />
			{deeper.length > 0 && <Whiskers title="What each level adds to the one before" rows={deeper.map((one) => ({ name: one.level, ...addedOf(one) }))} words={signed} />}
		</div>
		<Table label="The levels side by side" columns={columns} count={measured.length} cell={cell} sort={app.state.values["levels"] ?? ""} onSort={(levels) => app.set({ levels })} />
	</>;
}

// ---- measured and corrected ----

const ORDER_MOST = 10, LEFT_MOST = 20;

function Corrected({ levels, query }: { levels: Levels; query: Query }) {
	const app = useApp(), { values } = app.state;
	const usual = levels.rows.some(isLayer) ? "layer" : "gpu", part = values["part"] === "gpu" ? "gpu" : values["part"] === "layer" ? "layer" : usual, label = part === "gpu" ? "GPU work, measured and corrected" : "Layers, measured and corrected";
	return <>
		<h2>Measured against corrected</h2>
		<Order levels={levels} />
		<div class="tools">
			<Switches label="Rows" value={part} options={[["layer", "Layers"], ["gpu", "GPU work"]]} onChange={(next) => app.set({ part: next === usual ? null : next, sort: null }, true)} />
			<Filter />
			<CsvButton name={part === "gpu" ? "gpu-work" : "layers"} answer="levels" query={{ ...query, by: part, top: 0 }} table={label} />
		</div>
		<Rows key={part} levels={levels} part={part} label={label} />
	</>;
}

/** Where looking changes what seems to cost more. */
function Order({ levels }: { levels: Levels }) {
	const { order, left_out: left } = levels, isSure = levels.rows.some((row) => row.low_ns !== null);
	return <>
		{order.length === 0 ? <p class="quiet">{isSure ? "Nowhere does looking change the order of costs by more than the runs differ."
			: "With fewer than two runs at a level there are no intervals, so it is not known whether looking changes the order of costs."}</p> : <>
			<p>Looking changes the order of costs:</p>
			<ul class="order">
				{order.slice(0, ORDER_MOST).map((one) => <li key={`${one.context} ${one.metric}`}>{visible(one.passes ?? one.label)}</li>)}
				{order.length > ORDER_MOST && <li class="quiet">and {amount(order.length - ORDER_MOST, null)} more</li>}
			</ul>
		</>}
		{left.length > 0 && <details class="quiet"><summary>{amount(left.length, null)} call paths are left out, because the runs called them more or less often</summary>
			<ul>{left.slice(0, LEFT_MOST).map((one) => <li key={`${one.context} ${one.metric}`}>{visible(one.label)}</li>)}
				{left.length > LEFT_MOST && <li>and {amount(left.length - LEFT_MOST, null)} more</li>}</ul></details>}
	</>;
}

function Rows({ levels, part, label }: { levels: Levels; part: "layer" | "gpu"; label: string }) {
	const app = useApp(), { values } = app.state, marks = useMarks(values["file"]);
	const rows = useMemo(() => levels.rows.filter((row) => isLayer(row) === (part === "layer")), [levels, part]), steps = stepsOf(levels);
	const [before, after] = useMemo(() => [placesOf(rows.map((row) => row.measured_ns)), placesOf(rows.map(correctedOf))], [rows]);
	const most = rows.reduce((max, row) => Math.max(max, row.share ?? 0), 0) || 1;
	const columns: TableColumn[] = useMemo(() => [
		{ id: "name", title: part === "layer" ? "layer" : "GPU work", isNumber: false, words: (value) => short(visible(String(value))) },
		{ id: "share", title: "share", isNumber: true, words: (value) => percent(value as number | null), bar: (row) => (rows[row]?.share ?? 0) / most },
		{ id: "measured", title: "measured", isNumber: true, unit: "ns" }, { id: "corrected", title: "corrected", isNumber: true, unit: "ns" },
		{ id: "low", title: "95 % from", isNumber: true, unit: "ns" }, { id: "high", title: "95 % to", isNumber: true, unit: "ns" },
		...(part === "layer" ? [
			{ id: "change", title: "looking adds", isNumber: true, unit: "ns", words: (value) => signedAmount(value as number | null, "ns") },
			{ id: "before", title: "place as measured", isNumber: true }, { id: "after", title: "place corrected", isNumber: true },
			{ id: "order", title: "order", isNumber: false, words: (value) => (value === null ? "–" : `changes: costs less than ${visible(String(value))}`) },
		] satisfies TableColumn[] : []),
		{ id: "within", title: "in", isNumber: false, words: (value) => (value === null ? "–" : visible(String(value))) },
	], [rows, part]);
	const cell = useMemo(() => (row: number, column: number): Cell => {
		const one = rows[row];
		if (!one) return null;
		const each = (ns: number | null) => (ns === null ? null : Math.round(ns / steps)), corrected = correctedOf(one);
		switch (columns[column]?.id) {
			case "name": return one.label;
			case "share": return one.share;
			case "measured": return each(one.measured_ns);
			case "corrected": return each(corrected);
			case "low": return each(one.low_ns);
			case "high": return each(one.high_ns);
			case "change": return one.measured_ns === null || corrected === null ? null : each(one.measured_ns - corrected);
			case "before": return before[row] ?? null;
			case "after": return after[row] ?? null;
			case "order": return one.passed_name;
			default: return one.within;
		}
	}, [rows, columns, steps]);
	const found = (row: number) => { const one = rows[row] as LevelValue; return part === "layer" ? marks.layer(one.name) : marks.row("kernel", { name: one.name }); };
	const open = (row: number) => {
		const one = rows[row];
		if (one) app.go("flame", { metric: one.metric, search: `^${one.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`.slice(0, 400) });
	};
	const left = levels.rows_available - levels.rows.length;
	if (rows.length === 0) return <p class="notice">{part === "layer" ? "No layer has a corrected time: the program has no modules, operators or ranges, or its runs at M/L are left out, as is said above." : "No GPU work has a time at M/L/G."}</p>;
	return <>
		{part === "layer" ? <>
			<p class="quiet">Host time of {unitOf(levels)}. Measured is what a layer takes while all is looked at (M/L/G). Corrected is what it takes at M/L, within the time of M.</p>
			<Slopes rows={rows} before={before} after={after} onOpen={open} />
		</> : <p class="quiet">Time of {unitOf(levels)} at M/L/G. The GPU measures its own work, so it needs no correction: what is measured is the mean of these runs, too.</p>}
		{left > 0 && <p class="quiet">{amount(left, null)} smaller rows are left out. The CSV has them.</p>}
		<Table label={label} columns={columns} count={rows.length} cell={cell} sort={values["sort"] ?? ""} onSort={(sort) => app.set({ sort })} filter={values["filter"] ?? ""} onOpen={open} found={found} />
	</>;
}

register({ id: "levels", title: "Levels", key: "v", needs: { levels: "plumb levels -- PROGRAM" }, isOptional: true, follows: [], make: LevelsPage,
	keys: [["/ or Ctrl+F", "filter layers and GPU work"]] });
