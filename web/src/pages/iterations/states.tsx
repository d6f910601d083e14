// SPDX-License-Identifier: Apache-2.0
// The state graph of a loop: segments of kernels, what follows what, how often and how long. The table has the same as the picture.
import { useMemo, useRef } from "preact/hooks";
import { PALETTES, PARTS } from "../../draw/colours";
import { layered, type Layout } from "../../draw/layered";
import { fit, prepareText } from "../../draw/text";
import { amount, percent, short, visible } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import type { Table as Answer } from "../../protocol/columns";
import type { Finding } from "../../protocol/types";
import { useAnswer, useApp, valueOf } from "../../state/app";
import { FindingMark, findingWords, useMarks, type Marks } from "../../shell/marks";
import { Choice, CsvButton, Waiting } from "../../shell/parts";
import { Table, type Cell, type TableColumn } from "../../shell/table";

interface State {
	kind: string;
	name: string;
	kernels: number;
	perIteration: number;
	count: number;
	iterationNs: number;
	share: number;
	waitNs: number;
	minNs: number;
	maxNs: number;
}

interface Way {
	from: number;
	to: number;
	count: number;
	perIteration: number;
	share: number;
	meanNs: number;
	maxNs: number;
}

interface Graph {
	states: State[];
	ways: Way[];
	kernels: { state: number; name: string; meanNs: number }[];
	iterations: number;
	history: number;
	joined: number;
	of: string;
}

const BEGIN = 0, END = 1;

export function readGraph(tables: Answer[]): Graph {
	const table = (id: string) => {
		const found = tables.find((one) => one.id === id);
		if (!found) throw new Error(`the answer has no table ${id}`);
		return found;
	};
	const rows = <T,>(of: Answer, make: (text: (name: string) => string, number: (name: string) => number) => T): T[] =>
		Array.from({ length: of.rows }, (_, row) => make((name) => of.column(name).text(row), (name) => of.column(name).number(row)));
	const total = table("states.total"), one = (name: string) => total.column(name).number(0);
	return {
		states: rows(table("states"), (text, number) => ({ kind: text("kind"), name: text("name"), kernels: number("kernels"), perIteration: number("per_iteration"),
			count: number("count"), iterationNs: number("iteration_ns"), share: number("share"), waitNs: number("wait_ns"), minNs: number("min_ns"), maxNs: number("max_ns") })),
		ways: rows(table("states.transitions"), (_, number) => ({ from: number("from"), to: number("to"), count: number("count"), perIteration: number("per_iteration"),
			share: number("share"), meanNs: number("mean_ns"), maxNs: number("max_ns") })),
		kernels: rows(table("states.kernels"), (text, number) => ({ state: number("state"), name: text("name"), meanNs: number("mean_ns") })),
		iterations: one("iterations"), history: one("history"), joined: one("joined"), of: total.column("of").text(0),
	};
}

/** "6", "0.01": how often in an iteration. */
function often(count: number): string {
	return Number.isInteger(count) ? amount(count, null) : count < 0.995 && count >= 0.005 ? count.toFixed(2) : count < 0.005 ? "< 0.01" : count.toFixed(1);
}

export function titleOf(graph: Graph, number: number): string {
	const state = graph.states[number];
	if (!state) return "";
	if (state.kind === "begin") return "iteration begins";
	if (state.kind === "end") return "iteration ends";
	if (state.kind === "others") return `${amount(graph.joined, null)} other states`;
	return short(visible(state.name));
}

/** What a page saves that holds its answers; otherwise plumb writes the CSV. */
function csvRows(graph: Graph | null): (string | number | null)[][] {
	if (!graph) return [];
	const known = (value: number) => (Number.isNaN(value) ? null : value);
	return [["state", "kind", "name", "kernels", "count", "per_iteration", "iteration_ns", "share", "wait_ns", "min_ns", "max_ns"],
		...graph.states.map((state, number) => [number, state.kind, state.name, known(state.kernels), state.count, state.perIteration, state.iterationNs, state.share, known(state.waitNs), known(state.minNs), known(state.maxNs)]),
		[], ["from", "to", "count", "per_iteration", "share", "mean_ns", "max_ns"],
		...graph.ways.map((way) => [way.from, way.to, way.count, way.perIteration, known(way.share), known(way.meanNs), known(way.maxNs)])];
}

export function StatesPart({ query }: { query: Query }) {
	const app = useApp();
	const history = app.state.values["history"];
	const asked: Query = { ...query, history };
	const loaded = useAnswer<Graph>(canonical("states", asked), async (signal) => readGraph(await app.source.tables("states", asked, signal)));
	return <>
		<div class="tools">
			{!app.source.isOffline && <Choice label="Kernels before that tell a state apart" value={history ?? ""} onChange={(next) => app.set({ history: next || null, state: null }, true)}
				options={[["", "as few states as possible"], ...["0", "1", "2", "3", "4"].map((one): [string, string] => [one, one])]} />}
			<CsvButton name="states" answer="states" query={asked} rows={() => csvRows(valueOf(loaded))} />
		</div>
		<Waiting loaded={loaded}>{(graph) => <Shown graph={graph} query={query} />}</Waiting>
	</>;
}

/** By state: the findings about its kernels, or operators. It is nothing but these. */
function foundIn(graph: Graph, marks: Marks): (readonly Finding[])[] {
	const found = graph.states.map(() => new Set<Finding>());
	for (const { state, name } of graph.kernels) for (const one of ofItem(graph, marks, name)) found[state]?.add(one);
	return found.map((all) => [...all]);
}

function ofItem(graph: Graph, marks: Marks, name: string): readonly Finding[] {
	return marks.row(graph.of === "kernels" ? "kernel" : "operator", { name });
}

function Shown({ graph, query }: { graph: Graph; query: Query }) {
	const app = useApp();
	const marks = useMarks(query["file"]), found = useMemo(() => foundIn(graph, marks), [graph, marks]);
	const picked = app.state.values["state"] === undefined ? -1 : Number(app.state.values["state"]);
	const open = (state: number) => app.set({ state: state === picked ? null : state }, true);
	const inner = graph.states.length - 2;
	return <>
		<p class="summary">
			{amount(graph.iterations, null)} iterations as {amount(inner, null)} states. A state is a segment: {graph.of} that always run one after another. Its bar is its share of the time.
			An arrow says what comes next, and how often in an iteration.
			{graph.history > 0 && ` The ${graph.history} ${graph.of} before tell equal ones apart.`}
			{graph.joined > 0 && ` The ${amount(graph.joined, null)} states with the least time are one.`}
		</p>
		<div class="split states">
			<Picture graph={graph} picked={picked} found={found} onOpen={open} />
			{graph.states[picked] && <Details graph={graph} state={picked} marks={marks} />}
		</div>
		<StateTable graph={graph} picked={picked} found={found} onOpen={open} />
	</>;
}

const WIDTH = 244, HEIGHT = 46;

function sizeOf(state: State) {
	return state.kind === "begin" || state.kind === "end" ? { width: 130, height: 26 } : { width: WIDTH, height: HEIGHT };
}

/** An edge back has corners, which are round. */
function corners(points: [number, number][]): string {
	const toward = (a: [number, number], b: [number, number]) => {
		const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1, part = Math.min(6, length / 2) / length;
		return `${a[0] + (b[0] - a[0]) * part} ${a[1] + (b[1] - a[1]) * part}`;
	};
	const last = points[points.length - 1] as [number, number];
	return `M${(points[0] as [number, number]).join(" ")}${points.slice(1, -1).map((point, at) =>
		`L${toward(point, points[at] as [number, number])}Q${point.join(" ")} ${toward(point, points[at + 2] as [number, number])}`).join("")}L${last.join(" ")}`;
}

function curve(points: [number, number][], isBack: boolean): string {
	const [first, ...rest] = points as [[number, number], ...[number, number][]];
	if (isBack) return corners(points);
	let path = `M${first.join(" ")}`, last = first;
	for (const point of rest) {
		const middle = (last[1] + point[1]) / 2;
		path += `C${last[0]} ${middle} ${point[0]} ${middle} ${point.join(" ")}`;
		last = point;
	}
	return path;
}

function wayWords(graph: Graph, way: Way): string {
	if (way.from === END && way.to === BEGIN) return `the next iteration begins after ${amount(way.meanNs, "ns")} on average, at most ${amount(way.maxNs, "ns")}`;
	const wait = Number.isNaN(way.meanNs) ? "" : `, after ${amount(way.meanNs, "ns")} on average, at most ${amount(way.maxNs, "ns")}`;
	return `from ${titleOf(graph, way.from)} to ${titleOf(graph, way.to)}: ${often(way.perIteration)} times an iteration (${percent(way.share)} of what leaves)${wait}`;
}

function stateWords(graph: Graph, number: number, found: readonly Finding[] = []): string {
	const state = graph.states[number] as State;
	if (state.kind === "begin" || state.kind === "end") return titleOf(graph, number);
	return `${titleOf(graph, number)}: ${Number.isNaN(state.kernels) ? "" : `${amount(state.kernels, null)} ${graph.of}, `}${often(state.perIteration)} times an iteration, ${
		amount(state.iterationNs, "ns")} of it (${percent(state.share)})${found.length ? `; ${findingWords(found)}` : ""}`;
}

function Picture({ graph, picked, found, onOpen }: { graph: Graph; picked: number; found: (readonly Finding[])[]; onOpen: (state: number) => void }) {
	const app = useApp();
	const box = useRef<HTMLDivElement>(null);
	useMemo(() => {
		const context = document.createElement("canvas").getContext("2d"); // names are measured
		if (context) prepareText(context);
	}, []);
	const palette = PALETTES[app.look], fill = PARTS[app.look]["host"] as string;
	// In the order of time: begin, the segments, end.
	const order = useMemo(() => graph.states.map((state, number) => (state.kind === "begin" ? -1 : state.kind === "end" ? graph.states.length : number)), [graph]);
	const ways = useMemo(() => graph.ways.filter((way) => way.from !== END), [graph]);
	const layout: Layout = useMemo(() => layered(graph.states.map(sizeOf), ways, order), [graph]);
	const again = graph.ways.find((way) => way.from === END);
	const key = (event: KeyboardEvent, number: number) => {
		const follow = (from: boolean) => {
			const all = ways.filter((way) => (from ? way.from : way.to) === number && way.from !== way.to).sort((a, b) => b.count - a.count);
			const to = all.length ? (from ? (all[0] as Way).to : (all[0] as Way).from) : -1;
			box.current?.querySelector<SVGElement>(`[data-state="${to}"]`)?.focus();
		};
		if (event.key === "Enter" || event.key === " ") onOpen(number);
		else if (event.key === "ArrowDown") follow(true);
		else if (event.key === "ArrowUp") follow(false);
		else return;
		event.preventDefault();
	};
	const most = Math.max(1, ...graph.ways.map((way) => way.count));
	return (
		<div class="graph" ref={box} role="region" aria-label="State graph; the table below has the same" tabIndex={0}>
			<svg width={layout.width + 2} height={layout.height + 24} role="group" aria-label="States and what follows them">
				<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" markerUnits="userSpaceOnUse">
					<path d="M0 0L8 4L0 8z" fill={palette.quiet} /></marker></defs>
				{ways.map((way, index) => {
					const { points, isBack } = layout.lines[index] as Layout["lines"][number];
					const isOf = way.from === picked || way.to === picked;
					return (
						<path key={index} d={curve(points, isBack)} fill="none" stroke={isOf ? palette.select : palette.quiet} marker-end="url(#arrow)"
							stroke-width={0.8 + 2.4 * (Math.log1p(way.count) / Math.log1p(most))} opacity={picked < 0 || isOf ? 0.9 : 0.35}>
							<title>{wayWords(graph, way)}</title>
						</path>
					);
				})}
				{graph.states.map((state, number) => {
					const { x, y } = layout.nodes[number] as { x: number; y: number }, { width, height } = sizeOf(state), isEdge = state.kind === "begin" || state.kind === "end";
					const said = stateWords(graph, number, found[number]);
					return (
						<g key={number} class="state" data-state={number} transform={`translate(${x} ${y})`} tabindex={0} role="button" aria-pressed={number === picked}
							aria-label={said} onClick={() => onOpen(number)} onKeyDown={(event) => key(event, number)}>
							<title>{said}</title>
							<rect width={width} height={height} rx={isEdge ? height / 2 : 5} fill={palette.background} stroke={number === picked ? palette.select : palette.line}
								stroke-width={number === picked ? 2.5 : 1} />
							{found[number]?.length ? <path class="found" d={`M${width - 11} 1H${width - 1}V11z`} fill={palette.mark} /> : null}
							{!isEdge && <rect x={1} y={height - 7} width={Math.max(1, state.share * (width - 2))} height={6} fill={fill} />}
							<text x={isEdge ? width / 2 : 8} y={isEdge ? 17 : 17} text-anchor={isEdge ? "middle" : "start"} fill={palette.text} font-size="12">
								{isEdge ? titleOf(graph, number) : fit(titleOf(graph, number), WIDTH - (found[number]?.length ? 22 : 12))}</text>
							{!isEdge && <text x={8} y={33} fill={palette.quiet} font-size="11">
								{Number.isNaN(state.kernels) ? "" : `${amount(state.kernels, null)} × `}{often(state.perIteration)}/iteration, {amount(state.iterationNs, "ns")}, {percent(state.share)}</text>}
						</g>
					);
				})}
				{ways.map((way, index) => {
					const { points, isBack } = layout.lines[index] as Layout["lines"][number];
					const at = labelAt(points, isBack);
					return <text key={index} x={at[0]} y={at[1]} class="way" font-size="11" text-anchor="middle" fill={palette.text} stroke={palette.background} aria-hidden="true">
						{often(way.perIteration)}×</text>;
				})}
				{again && <text x={(layout.nodes[END] as { x: number }).x + 65} y={layout.height + 18} text-anchor="middle" font-size="11" fill={palette.quiet}>{wayWords(graph, again)}</text>}
			</svg>
		</div>
	);
}

/** Where the number of an edge stands: in the middle of its first part, or beside the nodes. */
function labelAt(points: [number, number][], isBack: boolean): [number, number] {
	const [a, b] = [points[0], points[1]] as [[number, number], [number, number]];
	if (points.length === 4 && a[1] === b[1]) return [b[0] + 2, (b[1] + (points[2] as [number, number])[1]) / 2 + 4];
	if (!isBack) return [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2 + 4];
	const [c, d] = [points[2], points[3]] as [[number, number], [number, number]];
	return [(c[0] + d[0]) / 2, (c[1] + d[1]) / 2 + 4];
}

function Details({ graph, state, marks }: { graph: Graph; state: number; marks: Marks }) {
	const app = useApp();
	const one = graph.states[state] as State;
	const kernels = graph.kernels.filter((kernel) => kernel.state === state);
	return (
		<aside class="details" aria-label={`State ${state}`}>
			<p class="row"><strong>{titleOf(graph, state)}</strong><button type="button" aria-label="Close the details" onClick={() => app.set({ state: null })}>×</button></p>
			{one.kind === "segment" && <p>{often(one.perIteration)} times an iteration; a visit takes {amount(one.minNs, "ns")} to {amount(one.maxNs, "ns")}.
				{" "}Between its {graph.of} nothing of the loop runs for {amount(one.waitNs / one.count, "ns")} on average.</p>}
			{kernels.length > 0 && <ol class="findings">{kernels.map((kernel, index) => <li key={index} title={visible(kernel.name)}>{short(visible(kernel.name))}: {amount(kernel.meanNs, "ns")}{" "}<FindingMark found={ofItem(graph, marks, kernel.name)} />
				<a href={app.link("flame", { search: `^${kernel.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`.slice(0, 400) })}>flame</a></li>)}</ol>}
			<p>What comes next:</p>
			<ul class="findings">{graph.ways.filter((way) => way.from === state).map((way) => <li key={way.to}>{wayWords(graph, way)}</li>)}</ul>
		</aside>
	);
}

function StateTable({ graph, picked, found, onOpen }: { graph: Graph; picked: number; found: (readonly Finding[])[]; onOpen: (state: number) => void }) {
	const app = useApp();
	const most = Math.max(0, ...graph.states.map((state) => state.share));
	const columns: TableColumn[] = useMemo(() => [
		{ id: "state", title: "state", isNumber: true }, { id: "name", title: graph.of === "kernels" ? "its longest kernel" : "its longest operator", isNumber: false },
		{ id: "kernels", title: "in it", isNumber: true }, { id: "per", title: "times an iteration", isNumber: true, words: (value) => often(value as number) },
		{ id: "time", title: "time an iteration", isNumber: true, unit: "ns" },
		{ id: "share", title: "share", isNumber: true, words: (value) => percent(value as number), bar: (row) => (graph.states[row]?.share ?? 0) / (most || 1) },
		{ id: "wait", title: "waits in it", isNumber: true, unit: "ns" }, { id: "min", title: "min visit", isNumber: true, unit: "ns" }, { id: "max", title: "max visit", isNumber: true, unit: "ns" },
		{ id: "next", title: "what comes next", isNumber: false },
	], [graph]);
	const known = (value: number): Cell => (Number.isNaN(value) ? null : value);
	const cell = useMemo(() => (row: number, column: number): Cell => {
		const state = graph.states[row];
		if (!state) return null;
		switch (column) {
			case 0: return row;
			case 1: return titleOf(graph, row);
			case 2: return state.kind === "segment" ? state.kernels : null;
			case 3: return state.perIteration;
			case 4: return known(state.iterationNs);
			case 5: return state.share;
			case 6: return known(state.waitNs / graph.iterations);
			case 7: return known(state.minNs);
			case 8: return known(state.maxNs);
			default: return graph.ways.filter((way) => way.from === row).map((way) => `${way.to} (${often(way.perIteration)}×${Number.isNaN(way.meanNs) ? "" : `, ${amount(way.meanNs, "ns")}`})`).join(", ");
		}
	}, [graph]);
	return <Table label="States" columns={columns} count={graph.states.length} cell={cell} sort={app.state.values["sort"] ?? ""} onSort={(sort) => app.set({ sort })}
		onOpen={onOpen} picked={picked} found={(row) => found[row] ?? []} />;
}
