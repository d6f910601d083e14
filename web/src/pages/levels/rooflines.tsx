// SPDX-License-Identifier: Apache-2.0
// Rooflines of kernels and layers, of this file or of another open one that has hardware counters.
import { useMemo } from "preact/hooks";
import { amount, fileName, percent, short, visible } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import { NoAnswer } from "../../protocol/source";
import type { JsonTable, Overview, Tables } from "../../protocol/types";
import { useAnswer, useApp, valueOf, type App } from "../../state/app";
import { useMarks } from "../../shell/marks";
import { Command, CsvButton, Switches, Waiting } from "../../shell/parts";
import { Roofline } from "../../shell/rows";
import { Table, type Cell, type TableColumn } from "../../shell/table";
import { dotsOf, numbers, roofOf } from "../layers/figures";
import { Limits, limitsOf } from "../layers/limits";
import { namesOf, ofRoof } from "./data";

const FILES_MOST = 16;

interface Counted {
	/** The file that has counters; null: none has. */
	file: number | null;
	table: JsonTable | null;
}

/** The table of this file, or else of the first one with counters. */
async function findCounted(app: App, kind: string, signal: AbortSignal): Promise<Counted> {
	const own = Number(app.state.values["file"] ?? 0), others = app.about.files.map((_, index) => index).filter((index) => index !== own);
	for (const file of [own, ...others].slice(0, FILES_MOST)) {
		try {
			const { tables } = await app.source.json<Tables>("tables", { ...limitsOf(app), file, kind: [kind] }, signal);
			const table = tables.find((one) => one.id === kind);
			if (table && dotsOf(table, 0).length > 0) return { file, table };
		} catch (error) {
			if (!(error instanceof NoAnswer) || error.status !== 404) throw error; // a file without layers has no such table
		}
	}
	return { file: null, table: null };
}

/** WHY: what the run that counts left out, or null. */
export function Rooflines({ why }: { why: string | null }) {
	const app = useApp(), { values } = app.state, kind = values["roof"] === "layer" ? "A14" : "A9";
	const asked: Query = { ...limitsOf(app), file: values["file"], kind: [kind] };
	const loaded = useAnswer<Counted>(canonical("counted", asked), (signal) => findCounted(app, kind, signal));
	return <>
		<h2>Rooflines</h2>
		<Waiting loaded={loaded}>{({ file, table }) => (file === null || table === null ? <NoCounters why={why} /> : <>
			<div class="tools">
				<Switches label="Roofline of" value={kind === "A14" ? "layer" : "kernel"} options={[["kernel", "Kernels"], ["layer", "Layers"]]} onChange={(next) => app.set({ roof: next === "kernel" ? null : next, roofs: null }, true)} />
				<Limits />
				<CsvButton name={kind} answer="tables" query={{ ...limitsOf(app), file, kind: [kind] }} table="Roofline" />
			</div>
			{file !== Number(values["file"] ?? 0) && <p class="summary">The counters and the times here are those of {visible(fileName(app.about.files[file]?.name ?? ""))}.</p>}
			<Counts table={table} file={file} />
		</>)}</Waiting>
	</>;
}

/** Why there is no roofline, and what brings one. */
function NoCounters({ why }: { why: string | null }) {
	const app = useApp(), isOne = app.about.files.length === 1, query: Query = { file: app.state.values["file"] };
	const overview = valueOf(useAnswer<Overview>(canonical("overview", query), (signal) => app.source.json<Overview>("overview", query, signal)));
	const off = why ?? overview?.run.environment["gpu.counters.off"];
	if (isOne && !app.about.has["layers"]) return <p class="notice">No roofline: it is of layers and their kernels, and this profile has neither modules nor operators.</p>;
	return (
		<div class="notice">
			{off ? <p>No roofline: counters were asked for, but {visible(off)}.</p>
				: <p>No roofline: {isOne ? "this profile has" : "these profiles have"} no hardware counters, which say how many operations a kernel does and how many bytes it moves.</p>}
			<p>This measures the levels with counters:</p>
			<p><Command text="plumb levels --counters -- PROGRAM" /></p>
			<p>Or record the same program with counters, and open both files:</p>
			<p><Command text="plumb run --counters=roofline -o counters.plumb -- PROGRAM" /></p>
			<p><Command text="plumb view levels.plumb counters.plumb" /></p>
		</div>
	);
}

function Counts({ table, file }: { table: JsonTable; file: number }) {
	const app = useApp(), isKernels = table.id === "A9", kind = isKernels ? "kernel" : "layer", marks = useMarks(String(file));
	const { names, intensity, throughput, part, dots } = useMemo(() => ({ names: namesOf(table), part: ofRoof(table), dots: dotsOf(table, 0),
		intensity: numbers(table, `${kind}_arithmetic_intensity (flops/byte)`), throughput: numbers(table, `${kind}_arithmetic_throughput (GFlops)`) }), [table]);
	const roof = roofOf(table, ""), counted = useMemo(() => names.flatMap((_, row) => ((intensity[row] as number) >= 0 ? [row] : [])), [names, intensity]);
	const columns: TableColumn[] = useMemo(() => [
		{ id: "name", title: kind, isNumber: false, words: (value) => short(visible(String(value))) },
		...(isKernels ? [{ id: "layer", title: "layer", isNumber: false, words: (value) => (value === "" ? "–" : visible(String(value))) } as TableColumn] : []),
		{ id: "intensity", title: "flop per byte", isNumber: true, words: (value) => (typeof value === "number" ? String(Number(value.toPrecision(3))) : "unknown") },
		{ id: "throughput", title: "Gflop/s", isNumber: true },
		{ id: "part", title: "of the roof", isNumber: true, words: (value) => percent(value as number | null), bar: (row) => part[counted[row] as number] || 0 },
		{ id: "limit", title: "limited by", isNumber: false },
	], [table, counted]);
	const known = (value: number | undefined): Cell => (value === undefined || Number.isNaN(value) ? null : value);
	const cell = useMemo(() => (index: number, column: number): Cell => {
		const row = counted[index] as number, one = names[row];
		switch (columns[column]?.id) {
			case "name": return one?.name ?? null;
			case "layer": return one?.layer ?? null;
			case "intensity": return known(intensity[row]);
			case "throughput": return known(throughput[row]);
			case "part": return known(part[row]);
			default: return roof ? ((intensity[row] as number) < roof.peak / roof.bandwidth ? "memory" : "arithmetic") : null;
		}
	}, [counted, columns]);
	const open = (index: number) => {
		const one = names[counted[index] as number];
		if (one) app.go("flame", { file: String(file), search: one.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").slice(0, 400) });
	};
	return <>
		{roof ? <Roofline dots={dots} roofs={[roof]} groups={[]} /> : <p class="notice">No roofline: plumb does not know the peak and the bandwidth of this GPU. Set both above.</p>}
		{part.some((value) => value > 1) && <p class="notice">Some are above this roof: they compute in another precision, which you can choose above.</p>}
		<p class="quiet">{amount(counted.length, null)} of {amount(names.length, null)} {kind}s have counters.</p>
		<Table label="Roofline" columns={columns} count={counted.length} cell={cell} sort={app.state.values["roofs"] ?? ""} onSort={(roofs) => app.set({ roofs })} onOpen={open}
			found={(index) => { const one = names[counted[index] as number]; return isKernels ? marks.row("kernel", { name: one?.name }) : marks.layer(one?.name ?? ""); }} foundIn={String(file)} />
	</>;
}
