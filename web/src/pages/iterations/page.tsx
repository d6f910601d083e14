// SPDX-License-Identifier: Apache-2.0
// The page Iterations: loops that plumb found, how long each iteration took, and why one differs.
import { useMemo } from "preact/hooks";
import { amount, percent, short, visible } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import type { Explained, Iteration, Iters, Level, Track } from "../../protocol/types";
import { common, useAnswer, useApp, valueOf } from "../../state/app";
import { FindingMark, useMarks } from "../../shell/marks";
import { Choice, Command, CsvButton, Switches, Waiting } from "../../shell/parts";
import { Bars } from "../../shell/rows";
import { register } from "../../shell/registry";
import { Table, type Cell, type TableColumn } from "../../shell/table";
import { levelsOf, LoopsPart } from "./loops";
import { PathPart } from "./path";
import { StatesPart } from "./states";

type Show = "" | "states" | "path" | "loops";
const SHOWN: [Show, string][] = [["", "Iterations"], ["loops", "Loops"], ["states", "States"], ["path", "Critical path"]];

function IterationsPage() {
	const app = useApp();
	const query: Query = common(app);
	const loaded = useAnswer<Iters>(canonical("iters", query), (signal) => app.source.json<Iters>("iters", query, signal));
	return <div class="page"><h1 class="unseen">Iterations</h1><Waiting loaded={loaded}>{(iters) => <Shown iters={iters} query={query} />}</Waiting></div>;
}

/** The steps of a program without GPU work as a track. */
export function hostTrack(iters: Iters): Track | null {
	const { host } = iters;
	if (!host || host.count < 1) return null;
	const unknown = { interval_ns: null, overlap_ns: null, idle_ns: null, op_time_ns: null, copy_bytes: null, outlier: false, step: null };
	const level: Level = { period_ops: 0, occurrences: host.count, first_op: host.marker, coverage: null, verdict: null, growing: false, interval_share: null, overlap_share: null, idle_share: null,
		summary: { duration_ns: host.duration_ns }, iterations: host.iterations.map((one) => ({ ...unknown, start_ns: one.start_ns, end_ns: one.start_ns + (one.duration_ns ?? 0), duration_ns: one.duration_ns, ops: null })) };
	return { track: host.track ?? -1, role: "host", rank: null, process: null, device: null, stream: null, ops: 0, levels: [level] };
}

function Shown({ iters, query }: { iters: Iters; query: Query }) {
	const app = useApp();
	const values = app.state.values;
	const host = iters.tracks.length ? null : hostTrack(iters);
	const tracks = host ? [host] : iters.tracks.filter((track) => track.levels.length > 0);
	const track = tracks.find((one) => String(one.track) === values["track"]) ?? tracks.find((one) => one.role === "main") ?? tracks[0];
	if (!track) {
		return <div class="notice"><p>plumb found no loop in what was recorded. A whole trace may have one that the newest GPU work does not show:</p>
			<Command text="plumb run --trace -- PROGRAM" /></div>;
	}
	const loops = track.loops ?? [], loop = loops.find((one) => String(one.loop) === values["loop"]) ?? loops.find((one) => one.main);
	const levels = loop ? levelsOf(track, loop) : track.levels;
	const at = Math.min(levels.length - 1, Math.max(0, Number(values["level"] ?? 0) || 0)), level = levels[at] as Level;
	const wanted = SHOWN.find(([id]) => id === values["show"])?.[0] ?? "", show = host && wanted !== "states" ? "" : wanted;
	const isUsual = track === tracks[0]; // plumb takes it if the query names none
	const asked: Query = { ...query, track: isUsual ? null : track.track, loop: loop && !loop.main ? loop.loop : null };
	const fresh = { level: null, iteration: null, state: null, row: null };
	return <>
		<div class="tools">
			<Switches label="What is shown" value={show} options={host ? SHOWN.filter(([id]) => id === "" || id === "states") : SHOWN} onChange={(next) => app.set({ show: next || null, sort: null, state: null, row: null }, true)} />
			{tracks.length > 1 && <Choice label="Track" value={String(track.track)} options={tracks.map((one) => [String(one.track), trackWords(one)])}
				onChange={(next) => app.set({ track: next, loop: null, ...fresh }, true)} />}
			{loops.length > 1 && show !== "loops" && <Choice label="Loop" value={String(loop?.loop ?? 1)}
				options={loops.map((one) => [String(one.loop), `${one.loop}: ${amount(one.time_ns, "ns")}, ${amount(one.occurrences, null)} iterations`])}
				onChange={(next) => app.set({ loop: loops.find((one) => String(one.loop) === next)?.main ? null : next, ...fresh }, true)} />}
			{levels.length > 1 && (show === "" || show === "states") && <Choice label="Level" value={String(at)} onChange={(next) => app.set({ ...fresh, level: next === "0" ? null : next }, true)}
				options={levels.map((one, index) => [String(index), `${"· ".repeat(index)}${amount(one.occurrences, null)} × ${amount(one.period_ops, null)} operations`])} />}
			{show === "" && <CsvButton name="iterations" answer="iters" query={{ ...query, track: track.track < 0 ? null : track.track }} rows={() => [["iteration", "start_ns", "duration_ns", "interval_ns", "operations", "outlier", ...(level.summary.counters ?? []).map((one) => one.name)],
				...level.iterations.map((one, index) => [index, one.start_ns, one.duration_ns, one.interval_ns, one.ops, one.outlier, ...(level.summary.counters ?? []).map((counter) => one.counters?.[counter.name] ?? null)])]} />}
		</div>
		{(show === "" || show === "path") && <Facts level={level} track={track} isNewest={iters.newest} isHost={host !== null} />}
		{show === "" && <Strip level={level} track={track} at={at} query={asked} isHost={host !== null} />}
		{show === "loops" && <LoopsPart track={track} />}
		{show === "states" && <StatesPart query={{ ...asked, level: at || null }} />}
		{show === "path" && <>
			{at === 0 && <Durations level={level} brings="for its path" />}
			<PathPart query={asked} iteration={values["iteration"]} />
		</>}
	</>;
}

function trackWords(track: Track): string {
	return [`${track.role} track ${track.track}`, track.rank === null ? "" : `rank ${track.rank}`, track.device === null ? "" : `GPU ${track.device}`].filter(Boolean).join(", ");
}

function Facts({ level, track, isNewest, isHost }: { level: Level; track: Track; isNewest: boolean; isHost: boolean }) {
	if (isHost) {
		return <p class="summary">{amount(level.occurrences, null)} iterations on the host{level.first_op ? `, which ${visible(level.first_op)} marks` : ""}; each takes {
			amount(level.summary.duration_ns?.p50, "ns")} (median), at most {amount(level.summary.duration_ns?.max, "ns")}</p>;
	}
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

interface Columns {
	columns: TableColumn[];
	cell: (row: number, column: number) => Cell;
}

/** Those that are known of an iteration at least, and the mean of each hardware counter over time. */
function columnsOf(level: Level): Columns {
	const { iterations } = level, cell = cellOf(iterations), counters = level.summary.counters ?? [];
	const all = COLUMNS.map((column, index) => ({ column, cell: (row: number): Cell => cell(row, index) }));
	for (const { name, unit } of counters) {
		const column = { id: `counter.${name}`, title: visible(name), isNumber: true, unit, words: (value: Cell) => (typeof value === "number" ? amount(value, unit) : "") };
		all.push({ column, cell: (row) => iterations[row]?.counters?.[name] ?? null });
	}
	const known = all.filter((one, index) => index === 0 || iterations.some((_, row) => one.cell(row) !== null));
	return { columns: known.map((one) => one.column), cell: (row, column) => known[column]?.cell(row) ?? null };
}

/** Bars of so many times the median are cut. */
const MUCH = 4;

/** A bar for each iteration; a click chooses it. */
function Durations({ level, what = "duration", brings = "to see why it differs" }: { level: Level; what?: "duration" | "interval"; brings?: string }) {
	const app = useApp();
	const iterations = level.iterations, picked = app.state.values["iteration"] === undefined ? -1 : Number(app.state.values["iteration"]);
	const values = useMemo(() => iterations.map((one) => (what === "interval" ? one.interval_ns : one.duration_ns) ?? 0), [iterations, what]);
	const cap = useMemo(() => {
		const sorted = values.filter((value) => value > 0).sort((a, b) => a - b), median = sorted[sorted.length >> 1] ?? 0;
		return (sorted[sorted.length - 1] ?? 0) > MUCH * median && median > 0 ? MUCH * median : undefined;
	}, [values]);
	return <Bars label={`${what} of each iteration; outliers have another colour${cap ? `, bars over ${amount(cap, "ns")} are cut` : ""}. Click one ${brings}.`} values={values} {...(cap ? { cap } : {})} isMarked={(index) => iterations[index]?.outlier ?? false}
		picked={picked} onOpen={(index) => app.set({ iteration: index, row: null }, true)}
		words={(index) => `iteration ${index}${iterations[index]?.step != null ? `, step ${iterations[index]?.step}` : ""}: ${amount(values[index], "ns")}${iterations[index]?.outlier ? ", an outlier" : ""}`} />;
}

function Strip({ level, track, at, query, isHost }: { level: Level; track: Track; at: number; query: Query; isHost: boolean }) {
	const app = useApp();
	const what = app.state.values["bars"] === "interval" && !isHost ? "interval" : "duration";
	const iterations = level.iterations, picked = app.state.values["iteration"] === undefined ? -1 : Number(app.state.values["iteration"]);
	const { columns, cell } = useMemo(() => columnsOf(level), [level]);
	const open = (index: number) => app.set({ iteration: index }, true);
	return <>
		{!isHost && <div class="tools"><Switches label="Bars show" value={what} options={[["duration", "Durations"], ["interval", "Intervals before"]]} onChange={(next) => app.set({ bars: next === "interval" ? next : null })} /></div>}
		<Durations level={level} what={what} {...(isHost ? { brings: "to find it in the table" } : {})} />
		<div class="split">
			<Table label="Iterations" columns={columns} count={iterations.length} cell={cell}
				sort={app.state.values["sort"] ?? ""} onSort={(sort) => app.set({ sort })} onOpen={open} picked={picked} />
			{!isHost && picked >= 0 && picked < iterations.length && <Why track={track.track} level={at} iteration={picked} query={query} />}
		</div>
	</>;
}

function Why({ track, level, iteration, query }: { track: number; level: number; iteration: number; query: Query }) {
	const app = useApp();
	const asked: Query = { ...query, track, level: level || null, iteration };
	const loaded = useAnswer<Explained>(canonical("explain", asked), (signal) => app.source.json<Explained>("explain", asked, signal));
	const explain = valueOf(loaded)?.explain, marks = useMarks(query["file"]);
	return (
		<aside class="details" aria-label={`Iteration ${iteration}`}>
			<p class="row"><strong>Iteration {iteration}</strong><button type="button" aria-label="Close the details" onClick={() => app.set({ iteration: null })}>×</button></p>
			{loaded.state === "error" && <p>{loaded.error.message}</p>}
			{explain?.iteration === iteration && <>
				<p>{amount(explain.ns, "ns")}; the median iteration ({amount(explain.median_iteration, null)}) takes {amount(explain.median_ns, "ns")}. The differences, the largest first:</p>
				<ol class="findings">{explain.rows.map((row, index) => <li key={index}>{visible(row.text)}{row.name && <>{" "}<FindingMark found={marks.row("kernel", { name: row.name })} />
					<a href={app.link("flame", { search: row.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").slice(0, 400) })}>flame</a></>}</li>)}</ol>
				{explain.rows.length === 0 && <p>It does not differ.</p>}
			</>}
			{level === 0 && <p><a href={app.link("iterations", { show: "path", iteration: String(iteration), track: String(track), ...(query["loop"] ? { loop: String(query["loop"]) } : {}) })}>Its critical path</a></p>}
		</aside>
	);
}

register({ id: "iterations", title: "Iterations", key: "i", needs: { iterations: "plumb run --trace -- PROGRAM" }, follows: [], make: IterationsPage,
	keys: [["arrows", "in the graph of states: to what comes next or before. In the critical path: from segment to segment"], ["+ − 0", "in the critical path: zoom, and show all"]] });
