// SPDX-License-Identifier: Apache-2.0
// The page Iterations: loops that plumb found, how long each iteration took, and why one differs.
import { useMemo } from "preact/hooks";
import { amount, percent, short, visible } from "../draw/words";
import { canonical, type Query } from "../protocol/query";
import type { Explained, Iteration, Iters, Level, Track } from "../protocol/types";
import { common, useAnswer, useApp, valueOf } from "../state/app";
import { Choice, Command, CsvButton, Switches, Waiting } from "../shell/parts";
import { Bars } from "../shell/rows";
import { register } from "../shell/registry";
import { Table, type Cell, type TableColumn } from "../shell/table";

function IterationsPage() {
	const app = useApp();
	const query: Query = { ...common(app), loop: app.state.values["loop"] };
	const loaded = useAnswer<Iters>(canonical("iters", query), (signal) => app.source.json<Iters>("iters", query, signal));
	return <div class="page"><h1 class="unseen">Iterations</h1><Waiting loaded={loaded}>{(iters) => <Shown iters={iters} query={query} />}</Waiting></div>;
}

function Shown({ iters, query }: { iters: Iters; query: Query }) {
	const app = useApp();
	const values = app.state.values;
	const tracks = iters.tracks.filter((track) => track.levels.length > 0);
	const track = tracks.find((one) => String(one.track) === values["track"]) ?? tracks.find((one) => one.role === "main") ?? tracks[0];
	if (!track) {
		return <div class="notice"><p>plumb found no loop in what was recorded. A whole trace may have one that the newest GPU work does not show:</p>
			<Command text="plumb run --trace -- PROGRAM" /></div>;
	}
	const at = Math.min(track.levels.length - 1, Math.max(0, Number(values["level"] ?? 0) || 0));
	const level = track.levels[at] as Level;
	const loops = iters.tracks.find((one) => one.track === track.track)?.loops ?? [];
	return <>
		<div class="tools">
			{tracks.length > 1 && <Choice label="Track" value={String(track.track)} options={tracks.map((one) => [String(one.track), trackWords(one)])}
				onChange={(next) => app.set({ track: next, level: null, iteration: null }, true)} />}
			{loops.length > 1 && !app.source.isOffline && <Choice label="Loop" value={values["loop"] ?? String(loops.find((one) => one.main)?.loop ?? 1)}
				options={loops.map((one) => [String(one.loop), `${one.loop}: ${amount(one.time_ns, "ns")}, ${amount(one.occurrences, null)} iterations`])}
				onChange={(next) => app.set({ loop: next, level: null, iteration: null }, true)} />}
			{track.levels.length > 1 && <Choice label="Level" value={String(at)} onChange={(next) => app.set({ level: next === "0" ? null : next, iteration: null }, true)}
				options={track.levels.map((one, index) => [String(index), `${"· ".repeat(index)}${amount(one.occurrences, null)} × ${amount(one.period_ops, null)} operations`])} />}
			<CsvButton name="iterations" answer="iters" query={{ ...query, track: track.track }} rows={() => [["iteration", "start_ns", "duration_ns", "interval_ns", "operations", "outlier"],
				...level.iterations.map((one, index) => [index, one.start_ns, one.duration_ns, one.interval_ns, one.ops, one.outlier])]} />
		</div>
		<Facts level={level} track={track} isNewest={iters.newest} />
		<Strip level={level} track={track} at={at} query={query} />
	</>;
}

function trackWords(track: Track): string {
	return [`${track.role} track ${track.track}`, track.rank === null ? "" : `rank ${track.rank}`, track.device === null ? "" : `GPU ${track.device}`].filter(Boolean).join(", ");
}

function Facts({ level, track, isNewest }: { level: Level; track: Track; isNewest: boolean }) {
	const shares = [["between iterations", level.interval_share], ["idle", level.idle_share], ["overlapped with copies", level.overlap_share]] as const;
	return (
		<p class="summary">
			{trackWords(track)}: {amount(level.occurrences, null)} iterations of {amount(level.period_ops, null)} operations
			{level.verdict && <>; <strong>{visible(level.verdict)}</strong></>}
			; {amount(level.summary.outliers, null)} outliers; they cover {percent(level.coverage)} of the operations
			{shares.map(([words, share]) => (share === null ? "" : `; ${words} ${percent(share)}`))}
			{level.first_op && <>; each begins with {short(visible(level.first_op))}</>}
			{isNewest && "; found in the newest GPU work"}
		</p>
	);
}

const COLUMNS: TableColumn[] = [
	{ id: "iteration", title: "iteration", isNumber: true },
	{ id: "duration", title: "duration", isNumber: true, unit: "ns" }, { id: "interval", title: "interval before", isNumber: true, unit: "ns" },
	{ id: "ops", title: "operations", isNumber: true }, { id: "op_time", title: "operation time", isNumber: true, unit: "ns" },
	{ id: "overlap", title: "overlap with copies", isNumber: true, unit: "ns" }, { id: "idle", title: "idle", isNumber: true, unit: "ns" },
	{ id: "bytes", title: "copied", isNumber: true, unit: "byte" }, { id: "outlier", title: "outlier", isNumber: false, words: (value) => (value ? "outlier" : "") },
];

function cellOf(iterations: Iteration[]) {
	return (row: number, column: number): Cell => {
		const one = iterations[row];
		if (!one) return null;
		return [row, one.duration_ns, one.interval_ns, one.ops, one.op_time_ns, one.overlap_ns, one.idle_ns, one.copy_bytes, one.outlier ? "outlier" : ""][column] ?? null;
	};
}

function Strip({ level, track, at, query }: { level: Level; track: Track; at: number; query: Query }) {
	const app = useApp();
	const what = app.state.values["bars"] === "interval" ? "interval" : "duration";
	const iterations = level.iterations, picked = app.state.values["iteration"] === undefined ? -1 : Number(app.state.values["iteration"]);
	const values = useMemo(() => iterations.map((one) => (what === "interval" ? one.interval_ns : one.duration_ns) ?? 0), [iterations, what]);
	const cell = useMemo(() => cellOf(iterations), [iterations]);
	const open = (index: number) => app.set({ iteration: index }, true);
	return <>
		<div class="tools"><Switches label="Bars show" value={what} options={[["duration", "Durations"], ["interval", "Intervals before"]]} onChange={(next) => app.set({ bars: next === "interval" ? next : null })} /></div>
		<Bars label={`${what} of each iteration; outliers have another colour. Click one to see why it differs.`} values={values} isMarked={(index) => iterations[index]?.outlier ?? false}
			picked={picked} onOpen={open} words={(index) => `iteration ${index}: ${amount(values[index], "ns")}${iterations[index]?.outlier ? ", an outlier" : ""}`} />
		<div class="split">
			<Table label="Iterations" columns={COLUMNS} count={iterations.length} cell={cell} sort={app.state.values["sort"] ?? ""} onSort={(sort) => app.set({ sort })} onOpen={open} picked={picked} />
			{picked >= 0 && picked < iterations.length && <Why track={track.track} level={at} iteration={picked} query={query} />}
		</div>
	</>;
}

function Why({ track, level, iteration, query }: { track: number; level: number; iteration: number; query: Query }) {
	const app = useApp();
	const asked: Query = { ...query, track, level, iteration };
	const loaded = useAnswer<Explained>(canonical("explain", asked), (signal) => app.source.json<Explained>("explain", asked, signal));
	const explain = valueOf(loaded)?.explain;
	return (
		<aside class="details" aria-label={`Iteration ${iteration}`}>
			<p class="row"><strong>Iteration {iteration}</strong><button type="button" aria-label="Close the details" onClick={() => app.set({ iteration: null })}>×</button></p>
			{loaded.state === "error" && <p>{loaded.error.message}</p>}
			{explain?.iteration === iteration && <>
				<p>{amount(explain.ns, "ns")}; the median iteration ({amount(explain.median_iteration, null)}) takes {amount(explain.median_ns, "ns")}. The differences, the largest first:</p>
				<ol class="findings">{explain.rows.map((row, index) => <li key={index}>{visible(row.text)}{row.name && <>{" "}
					<a href={app.link("flame", { search: row.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").slice(0, 400) })}>flame</a></>}</li>)}</ol>
				{explain.rows.length === 0 && <p>It does not differ.</p>}
			</>}
		</aside>
	);
}

register({ id: "iterations", title: "Iterations", key: "i", needs: { iterations: "plumb run --trace -- PROGRAM" }, follows: [], make: IterationsPage });
