// SPDX-License-Identifier: Apache-2.0
// The hierarchy of loops of a track: what lies where in time, and each loop with the loops inside it.
import { useMemo } from "preact/hooks";
import { amount, percent, short, visible } from "../../draw/words";
import type { Level, Loop, Track } from "../../protocol/types";
import { useApp } from "../../state/app";
import { StackedBar, type Part } from "../../shell/bars";
import { useMarks } from "../../shell/marks";
import { CsvButton } from "../../shell/parts";
import { Table, type Cell, type TableColumn } from "../../shell/table";

interface Line {
	name: string;
	depth: number;
	start: number;
	time: number | null;
	loop: Loop | null;
	at: number;
	level: Level | null;
	kernels: number | null;
	/** The kernel, or operator, that the row names. */
	named: string | null;
}

const WHERE: Record<string, string> = { before: "before the first loop", between: "between loops", after: "after the last loop" };

/** The levels of a loop: those of the main one are the track's. */
export function levelsOf(track: Track, loop: Loop): Level[] {
	return loop.main ? track.levels : loop.levels;
}

/** Loops and what lies outside of them, by when they begin; below a loop those inside it. */
export function linesOf(track: Track): Line[] {
	const lines: Line[] = [];
	const tops = [...(track.loops ?? []).map((loop) => ({ start: loop.start_ns, loop, outside: null })), ...(track.outside ?? []).map((outside) => ({ start: outside.start_ns, loop: null, outside }))];
	tops.sort((a, b) => a.start - b.start);
	for (const { loop, outside } of tops) {
		if (outside) {
			lines.push({ name: `${WHERE[outside.where] ?? outside.where}; longest kernel: ${short(visible(outside.name ?? "unknown"))}`, depth: 0, start: outside.start_ns,
				time: outside.end_ns - outside.start_ns, loop: null, at: 0, level: null, kernels: outside.kernels, named: outside.name });
			continue;
		}
		if (!loop) continue;
		levelsOf(track, loop).forEach((level, at) => lines.push({
			name: at === 0 ? `loop ${loop.loop}${loop.main ? ", the main one" : ""}${loop.stretches.length > 1 ? `, in ${loop.stretches.length} parts` : ""}` : `inside it, level ${at}`,
			depth: at, start: loop.start_ns, time: at === 0 ? loop.time_ns : null, loop, at, level, kernels: at === 0 ? loop.kernels : null, named: level.first_op }));
	}
	return lines;
}

export function LoopsPart({ track }: { track: Track }) {
	const app = useApp(), marks = useMarks(app.state.values["file"]);
	const lines = useMemo(() => linesOf(track), [track]);
	const columns: TableColumn[] = useMemo(() => [
		{ id: "name", title: "what", isNumber: false }, { id: "time", title: "time", isNumber: true, unit: "ns" }, { id: "count", title: "iterations", isNumber: true },
		{ id: "period", title: "kernels", isNumber: true }, { id: "median", title: "median duration", isNumber: true, unit: "ns" }, { id: "max", title: "max duration", isNumber: true, unit: "ns" },
		{ id: "interval", title: "mean interval", isNumber: true, unit: "ns" }, { id: "outliers", title: "outliers", isNumber: true },
		{ id: "covered", title: "covered", isNumber: true, words: (value) => (value === "" ? "" : percent(value as number | null)) },
		{ id: "verdict", title: "verdict", isNumber: false }, { id: "first", title: "begins with", isNumber: false },
	], []);
	const cell = useMemo(() => (row: number, column: number): Cell => {
		const line = lines[row], level = line?.level;
		if (!line) return null;
		if (!level) return [line.name, line.time, "", line.kernels][column] ?? ""; // it has no iterations
		const { summary } = level;
		if (column === 1 && line.depth > 0) return "";
		return [line.name, line.time, level.occurrences, level.period_ops, summary.duration_ns?.p50 ?? null, summary.duration_ns?.max ?? null, summary.interval_ns?.avg ?? null,
			summary.outliers ?? null, level.coverage, level.verdict ?? "", short(visible(level.first_op ?? ""))][column] ?? null;
	}, [lines]);
	const open = (row: number) => {
		const line = lines[row];
		if (line?.loop) app.set({ show: null, loop: line.loop.main ? null : line.loop.loop, level: line.at || null, iteration: null }, true);
	};
	const tops = lines.filter((line) => line.depth === 0);
	const whole = tops.reduce((sum, line) => sum + (line.time ?? 0), 0);
	const parts: Part[] = tops.map((line) => ({ name: line.loop ? line.name : line.name.split(";")[0] as string, value: line.time ?? 0,
		colour: line.loop ? (line.loop.main ? "loop" : "other loop") : line.level ? "rest" : "startup" }));
	return <>
		<div class="tools"><CsvButton name="loops" rows={() => [columns.map((column) => column.id), ...lines.map((_, row) => columns.map((__, column) => cell(row, column)))]} /></div>
		{whole > 0 && <StackedBar title={`Kernels of this track, from the first to the last${track.cycles ? `; the loops take turns ${amount(track.cycles, null)} times` : ""}`} total={whole} unit="ns" parts={parts} />}
		<Table label="Loops" columns={columns} count={lines.length} cell={cell} sort="" onSort={() => {}} indent={(row) => lines[row]?.depth ?? 0} onOpen={open} canOpen={(row) => lines[row]?.loop != null}
			found={(row) => marks.row("kernel", { name: lines[row]?.named })} />
	</>;
}
