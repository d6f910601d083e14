// SPDX-License-Identifier: Apache-2.0
// The page Traffic: which GPU moves which data to which GPU, and from which line. What is chosen in one part narrows the others.
import { useEffect, useMemo } from "preact/hooks";
import { scaleOf } from "../../draw/heat";
import { amount, visible } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import { common, useAnswer, useApp, type App } from "../../state/app";
import { Choice, Switches, Waiting } from "../../shell/parts";
import { FindingList } from "../../shell/marks";
import { register } from "../../shell/registry";
import { cellKey, cellsOf, findingsOf, lineKeys, linesLeft, mostOf, movesOf, objectsLeft, pairsLeft, readCell, type Cells, type Chosen, type MatrixName, type Traffic } from "./data";
import { Collectives, Routes } from "./library";
import { LineDetails, Lines, Objects, Pairs } from "./lists";
import { HeatLegend, Matrix } from "./matrix";
import { Addresses } from "./strip";
import { Topology } from "./topology";

const TABS_MOST = 16;

function TrafficPage() {
	const app = useApp(), query = common(app);
	const loaded = useAnswer<Traffic>(canonical("traffic", query), (signal) => app.source.json<Traffic>("traffic", query, signal));
	return (
		<div class="page traffic">
			<h1 class="unseen">Traffic</h1>
			<Waiting loaded={loaded}>{(traffic) => <Shown traffic={traffic} query={query} />}</Waiting>
		</div>
	);
}

const MATRICES: { name: MatrixName; title: string; axes: [string, string] }[] = [
	{ name: "initiated", title: "Who initiates", axes: ["who initiates", "whose memory"] },
	{ name: "flow", title: "Which way the data flows", axes: ["from", "to"] },
	{ name: "logical", title: "What calls asked for", axes: ["from", "to"] },
];

/** What the address chooses. */
function readChosen(traffic: Traffic, app: App, keys: string[], about: (id: string | undefined) => Chosen["object"]): Chosen {
	const { values } = app.state, number = /^\d{1,9}$/.test(values["gpu"] ?? "") ? Number(values["gpu"]) : null;
	return {
		party: number !== null && number < traffic.parties.length ? number : null, cell: readCell(values["cell"], traffic.parties.length),
		object: traffic.objects.find((one) => String(one.id) === values["object"]) ?? about(values["finding"]), line: traffic.lines[keys.indexOf(values["line"] ?? "")] ?? null,
	};
}

function Shown({ traffic, query }: { traffic: Traffic; query: Query }) {
	const app = useApp(), { parties } = traffic;
	const keys = useMemo(() => lineKeys(traffic.lines), [traffic]), found = useMemo(() => findingsOf(traffic), [traffic]);
	const { party, cell, object, line } = readChosen(traffic, app, keys, found.about);
	const chosen: Chosen = useMemo(() => ({ party, cell, object, line }), [traffic, party, app.state.values["cell"], object, line]);
	const name = (at: number | null) => (at === null ? "its group" : visible(parties[at]?.label ?? "unknown"));
	const matrices = useMemo(() => MATRICES.flatMap((one) => {
		const cells = cellsOf(traffic, one.name, chosen), all = traffic.matrices[one.name];
		return cells && (one.name !== "logical" || (all !== null && mostOf(all) > 0)) ? [{ ...one, cells }] : [];
	}), [traffic, object, line]);
	const scale = useMemo(() => scaleOf(matrices.flatMap((one) => one.cells.flat())), [matrices]);
	const lines = useMemo(() => linesLeft(traffic, { ...chosen, line: null }), [traffic, chosen]), objects = useMemo(() => objectsLeft(traffic, { ...chosen, object: null }), [traffic, chosen]);
	const pairs = useMemo(() => pairsLeft(traffic, chosen), [traffic, chosen]);
	const words = (matrix: MatrixName, cells: Cells) => (row: number, column: number) => {
		const at: Chosen = { party: null, cell: { matrix, row, column }, object, line: null }, bytes = cells[row]?.[column] ?? 0;
		const from = bytes > 0 ? traffic.lines.filter((one) => (!line || one === line) && movesOf(one, at).length > 0) : [], of = bytes > 0 ? objectsLeft(traffic, { ...at, line }) : [];
		const list = (names: string[]) => `${names.slice(0, 3).map(visible).join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}`;
		return `${name(row)} ${matrix === "initiated" ? "reaches" : "→"} ${name(column)}: ${amount(bytes, "B")}${from.length ? `; from ${list(from.map((one) => one.label))}` : ""}${of.length ? `; ${list(of.map((one) => one.what.label))}` : ""}`;
	};
	const pick = (matrix: MatrixName, row: number, column: number) => {
		const next = cellKey({ matrix, row, column });
		app.set({ cell: app.state.values["cell"] === next ? null : next }, true);
	};
	const flow = cellsOf(traffic, "flow", chosen) ?? [], logical = matrices.find((one) => one.name === "logical")?.cells;
	const links = logical && mostOf(flow) === 0 ? logical : flow;
	const routes = (a: number, b: number) => [...new Set(traffic.pairs.filter((pair) => (pair.from === a && pair.to === b) || (pair.from === b && pair.to === a)).map((pair) => pair.route))];

	const isChosen = chosen.party !== null || chosen.cell || chosen.object || chosen.line;
	const clear = () => app.set({ gpu: null, cell: null, object: null, line: null, finding: null }, true);
	useEffect(() => {
		const key = (event: KeyboardEvent) => {
			const target = event.target instanceof Element ? event.target : null;
			if (event.key !== "Escape" || event.defaultPrevented || !isChosen || target?.closest("input, select, textarea") || document.querySelector("dialog[open]")) return;
			event.preventDefault();
			clear();
			app.say("All is shown");
		};
		addEventListener("keydown", key);
		return () => removeEventListener("keydown", key);
	});

	const tabs: [string, string][] = [["", "All"], ...parties.flatMap((one, index): [string, string][] => (one.kind === "device" ? [[String(index), visible(one.label)]] : []))];
	const setGpu = (gpu: string) => app.set({ gpu: gpu || null, object: null, finding: null }, true);
	return <>
		<Facts traffic={traffic} />
		<FindingList found={traffic.findings} />
		<div class="tools">
			{tabs.length <= TABS_MOST + 1 ? <Switches label="GPU" value={party === null ? "" : String(party)} options={tabs} onChange={setGpu} />
				: <Choice label="GPU" value={party === null ? "" : String(party)} options={tabs} onChange={setGpu} />}
			<Chips chosen={chosen} name={name} onClear={clear} />
		</div>
		{traffic.matrices.initiated === null ? <p class="notice">There are too many GPUs for a matrix. The tables have the pairs with most bytes.</p> : <>
			<div class="matrices">
				{matrices.map((one) => <Matrix key={one.name} title={one.title} axes={one.axes} cells={one.cells} scale={scale} parties={parties} party={party}
					picked={cell?.matrix === one.name ? [cell.row, cell.column] : null} words={words(one.name, one.cells)} onPick={(row, column) => pick(one.name, row, column)} />)}
			</div>
			<HeatLegend scale={scale} unit="B" what="Bytes" />
		</>}
		<h2>Objects{party !== null && ` of ${name(party)}`}</h2>
		<Objects objects={objects} traffic={traffic} query={query} chosen={object} found={found.object} name={name} />
		{object && <Addresses key={object.id} object={object} parties={parties} lines={traffic.lines.filter((one) => one.moves.some((move) => move.object === object.id)).map((one) => one.label)} />}
		<h2>Lines</h2>
		<Lines lines={lines} traffic={traffic} query={query} keys={keys} chosen={line} found={found.line} name={name} />
		{line && <LineDetails line={line} chosen={chosen} traffic={traffic} name={name} />}
		<h2>Links</h2>
		{traffic.matrices.flow && <Topology cells={links} traffic={traffic} parties={parties} routes={routes} cell={cell && cell.matrix !== "initiated" ? [cell.row, cell.column] : null}
			onPick={(from, to) => pick(links === flow ? "flow" : "logical", from, to)} />}
		<Routes traffic={traffic} query={query} />
		{traffic.collectives.length > 0 && <><h2>Collectives</h2><Collectives traffic={traffic} query={query} /></>}
		<h2>Pairs and routes</h2>
		<Pairs pairs={pairs} traffic={traffic} query={query} name={name} isWhole={!!(line || object)} />
	</>;
}

function Facts({ traffic }: { traffic: Traffic }) {
	const { totals, mode } = traffic, unseen = traffic.coverage.filter((one) => !one.seen && one.count > 0);
	const sum = (title: string, one: Traffic["totals"]["kernels"]) => (one.accesses || one.bytes ? [`${title} ${amount(one.bytes, "B")}${one.error_bytes ? ` ± ${amount(one.error_bytes, "B")}` : ""}`] : []);
	const facts = [...sum("code in kernels moved", totals.kernels), ...sum("copies moved", totals.copies), ...sum("calls asked for", totals.logical)];
	const modes: Record<string, string> = { calls: "Copies and collective operations were recorded, not the accesses of kernels", full: "Each access of a kernel to another GPU was recorded" };
	const gaps = traffic.environment.filter((one) => one.key.endsWith(".gap"));
	const left = traffic.lines_left_out + traffic.objects_left_out + traffic.pairs_left_out;
	return <>
		<p class="summary">{mode === null ? "" : `${modes[mode] ?? `Some launches of kernels were looked at (${visible(mode)})`}. `}{facts.length ? `Between different places, ${facts.join("; ")}.` : "Nothing was moved between different places."}
			{left > 0 && ` Left out, because they moved least: ${amount(traffic.objects_left_out, null)} objects, ${amount(traffic.lines_left_out, null)} lines, ${amount(traffic.pairs_left_out, null)} pairs.`}</p>
		{unseen.length + gaps.length > 0 && <details class="quiet"><summary>What was not seen</summary><ul>
			{unseen.map((one, index) => <li key={index}>{amount(one.count, null)} {visible(one.unit)}: {visible(one.reason ?? "unknown")}</li>)}
			{gaps.map((one, index) => <li key={`gap ${index}`}>{visible(one.value ?? "")}</li>)}
		</ul></details>}
	</>;
}

/** What is chosen, each with a button that ends it. */
function Chips({ chosen, name, onClear }: { chosen: Chosen; name: (at: number | null) => string; onClear: () => void }) {
	const app = useApp(), { cell, object, line } = chosen;
	const chips: [string, string[]][] = [
		...(cell ? [[`${name(cell.row)} ${cell.matrix === "initiated" ? "reaches" : "→"} ${name(cell.column)}`, ["cell"]] as [string, string[]]] : []),
		...(object ? [[visible(object.label), ["object", "finding"]] as [string, string[]]] : []),
		...(line ? [[visible(line.label), ["line"]] as [string, string[]]] : []),
	];
	if (chips.length === 0) return null;
	return (
		<span class="chips" role="group" aria-label="Only">
			<span class="quiet">only</span>
			{chips.map(([words, ends]) => <button key={words} type="button" title="Show all again" onClick={() => app.set(Object.fromEntries(ends.map((key) => [key, null])), true)}>{words} <span aria-hidden="true">×</span></button>)}
			{chips.length > 1 && <button type="button" onClick={onClear}>Show all</button>}
		</span>
	);
}

register({ id: "traffic", title: "Traffic", key: "x", needs: { traffic: "plumb run --traffic -- PROGRAM" }, isOptional: true, follows: [], make: TrafficPage, keys: [
	["arrows, Home in a heat map", "the next cell, the first; its numbers are spoken"],
	["Enter in a heat map", "shows only this pair; again: all"],
	["Escape", "shows all again"],
] });
