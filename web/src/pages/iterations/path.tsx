// SPDX-License-Identifier: Apache-2.0
// The critical path of one iteration as a picture: a line for each kind, segments along time, and what shortening each would save.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { fitCanvas } from "../../draw/canvas";
import { PALETTES, PARTS } from "../../draw/colours";
import { drawMark, MARK } from "../../draw/mark";
import { fit, prepareText } from "../../draw/text";
import { amount, fileName, percent, short, visible } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import type { Table as Answer } from "../../protocol/columns";
import type { Finding } from "../../protocol/types";
import { useAnswer, useApp } from "../../state/app";
import { findingWords, useMarks, type Marks } from "../../shell/marks";
import { CsvButton, Waiting } from "../../shell/parts";
import { Table, type Cell, type TableColumn } from "../../shell/table";

/** Each kind of a segment: its colour, and what it means. */
const KINDS: [string, string, string][] = [["host", "host", "a thread works"], ["launch", "waiting", "a launch is on its way"], ["kernel", "computing", "a kernel runs"],
	["copy", "copies", "a copy runs"], ["communication", "communication", "ranks exchange data"], ["gap", "idle", "the GPU goes from one work to the next"],
	["unknown", "rest", "the profile does not say"]];

interface Row {
	kind: string;
	name: string;
	between: boolean;
	place: string;
	ns: number;
	share: number;
	savingNs: number;
}

interface Path {
	start: Float64Array;
	end: Float64Array;
	kind: string[];
	name: string[];
	row: Int32Array;
	many: Float64Array;
	rows: Row[];
	total: Record<string, number>;
	isMedian: boolean;
}

export function readPath(tables: Answer[]): Path {
	const [segments, rows, total] = ["path", "path.rows", "path.total"].map((id) => tables.find((table) => table.id === id));
	if (!segments || !rows || !total) throw new Error("the answer has no path");
	const texts = (name: string) => Array.from({ length: segments.rows }, (_, row) => segments.column(name).text(row));
	return {
		start: segments.column("start").numbers(), end: segments.column("end").numbers(), kind: texts("kind"), name: texts("name"), row: segments.column("row").integers(),
		many: segments.column("many").numbers(),
		rows: Array.from({ length: rows.rows }, (_, row) => {
			const text = (name: string) => rows.column(name).text(row), line = rows.column("line").number(row);
			const place = text("file") ? `${fileName(text("file"))}${Number.isNaN(line) ? "" : `:${line}`}` : "";
			return { kind: text("kind"), name: text("name"), between: rows.column("between").number(row) === 1, place: text("part") ? text("part") : place,
				ns: rows.column("ns").number(row), share: rows.column("share").number(row), savingNs: rows.column("saving_ns").number(row) };
		}),
		total: Object.fromEntries(total.columns.map((column) => [column.name, column.number(0)])), isMedian: total.column("median").number(0) === 1,
	};
}

export function rowName(row: Row): string {
	if (row.between) return row.name ? `between two spans; most CPU samples hit ${short(visible(row.name))}` : "between two spans of a thread";
	return short(visible(row.name)) || "unknown";
}

export function PathPart({ query, iteration }: { query: Query; iteration: string | undefined }) {
	const app = useApp();
	const asked: Query = { ...query, iteration, px: 4000 };
	const loaded = useAnswer<Path>(canonical("path", asked), async (signal) => {
		try {
			return readPath(await app.source.tables("path", asked, signal));
		} catch (error) {
			// A page that holds its answers has the path of the median iteration.
			if (!app.source.isOffline || iteration === undefined) throw error;
			return readPath(await app.source.tables("path", { ...asked, iteration: undefined }, signal));
		}
	});
	return <Waiting loaded={loaded}>{(path) => <Shown path={path} query={{ ...query, iteration }} />}</Waiting>;
}

/** Of the kernel, copy or operator that a row names; a launch or a gap before it is something else. */
function foundOf(marks: Marks, { kind, name, between }: Row): readonly Finding[] {
	if (between || kind === "launch" || kind === "gap") return [];
	return ["kernel", "operator", "gpu_api"].map((one) => marks.row(one, { name })).find((found) => found.length) ?? [];
}

function Shown({ path, query }: { path: Path; query: Query }) {
	const app = useApp();
	const { total } = path, length = (total["end_ns"] as number) - (total["start_ns"] as number);
	const iteration = total["iteration"] as number;
	const picked = app.state.values["row"] === undefined ? -1 : Number(app.state.values["row"]);
	const open = (row: number) => app.set({ row: row === picked ? null : row });
	const marks = useMarks(query["file"]), found = useMemo(() => path.rows.map((row) => foundOf(marks, row)), [path, marks]);
	const kinds = KINDS.filter(([kind]) => (total[`${kind}_ns`] as number) > 0);
	return <>
		<div class="tools">
			<span>{Number.isNaN(iteration) ? "Critical path of the whole profile" : `Critical path of iteration ${iteration}${path.isMedian ? ", the median one" : ""}`}: {amount(length, "ns")}</span>
			<CsvButton name="path" answer="path" query={query} rows={() => [["kind", "name", "place", "ns", "share", "saving_ns"],
				...path.rows.map((row) => [row.kind, rowName(row), row.place, row.ns, row.share, Number.isNaN(row.savingNs) ? null : row.savingNs])]} />
			{!Number.isNaN(iteration) && !path.isMedian && <button type="button" onClick={() => app.set({ iteration: null, row: null })}>The median iteration</button>}
		</div>
		<p class="summary">The path goes back from the end of the iteration: what did it wait for, what did that wait for. Only what is on the path can make the iteration shorter.
			{(total["inferred"] as number) > 0 && ` ${amount(total["inferred"], null)} waits are inferred, because they are not recorded.`}
			{(total["peer_ns"] as number) > 0 && ` ${amount(total["peer_ns"], "ns")} of it are on other ranks.`}</p>
		<Picture path={path} length={length} kinds={kinds} picked={picked} found={found} onOpen={open} />
		<ul class="legend">{kinds.map(([kind, colour, words]) => <li key={kind}><span class="swatch" style={{ background: PARTS[app.look][colour] }} />
			{kind} ({words}): {amount(total[`${kind}_ns`], "ns")} ({percent((total[`${kind}_ns`] as number) / length)})</li>)}</ul>
		<RowTable rows={path.rows} picked={picked} found={found} onOpen={open} />
	</>;
}

function RowTable({ rows, picked, found, onOpen }: { rows: Row[]; picked: number; found: (readonly Finding[])[]; onOpen: (row: number) => void }) {
	const app = useApp();
	const most = Math.max(0, ...rows.map((row) => row.share));
	const columns: TableColumn[] = useMemo(() => [
		{ id: "name", title: "on the path", isNumber: false }, { id: "kind", title: "kind", isNumber: false },
		{ id: "ns", title: "time on it", isNumber: true, unit: "ns" },
		{ id: "share", title: "share", isNumber: true, words: (value) => percent(value as number), bar: (row) => (rows[row]?.share ?? 0) / (most || 1) },
		{ id: "saving", title: "would save in each iteration", isNumber: true, unit: "ns" }, { id: "place", title: "line of your code", isNumber: false },
	], [rows]);
	const cell = useMemo(() => (row: number, column: number): Cell => {
		const one = rows[row];
		if (!one) return null;
		return [rowName(one), one.kind, one.ns, one.share, Number.isNaN(one.savingNs) ? null : one.savingNs, one.place || null][column] ?? null;
	}, [rows]);
	return <Table label="What is on the critical path" columns={columns} count={rows.length} cell={cell} sort={app.state.values["sort"] ?? ""}
		onSort={(sort) => app.set({ sort })} onOpen={onOpen} picked={picked} found={(row) => found[row] ?? []} />;
}

const LINE = 30, LEFT = 104, AXIS = 18;

function Picture({ path, length, kinds, picked, found, onOpen }: { path: Path; length: number; kinds: [string, string, string][]; picked: number; found: (readonly Finding[])[]; onOpen: (row: number) => void }) {
	const app = useApp();
	const canvas = useRef<HTMLCanvasElement>(null);
	const [place, setPlace] = useState<[number, number]>([0, length]);
	const [at, setAt] = useState(-1);
	const lineOf = useMemo(() => new Map(kinds.map(([kind], index) => [kind, index])), [kinds]);
	const height = AXIS + kinds.length * LINE + 2;
	const [from, to] = place;
	useEffect(() => setPlace([0, length]), [path]);
	useEffect(() => {
		const element = canvas.current;
		if (!element) return;
		const paint = () => {
			fitCanvas(element);
			draw(element, { path, kinds, lineOf, place: [from, to], picked, at, found, look: app.look });
		};
		const watcher = new ResizeObserver(paint);
		watcher.observe(element);
		paint();
		return () => watcher.disconnect();
	}, [path, place, picked, at, found, app.look]);
	const show = (t0: number, t1: number) => {
		const wide = Math.max(100, Math.min(length, t1 - t0)), start = Math.max(0, Math.min(length - wide, t0));
		setPlace([start, start + wide]);
	};
	const timeAt = (event: MouseEvent) => {
		const frame = (event.currentTarget as Element).getBoundingClientRect();
		return from + ((event.clientX - frame.left - LEFT) / (frame.width - LEFT)) * (to - from);
	};
	const segmentAt = (time: number) => {
		let low = 0, high = path.end.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if ((path.end[middle] as number) > time) high = middle;
			else low = middle + 1;
		}
		return time < 0 || low >= path.end.length ? -1 : low;
	};
	const step = (way: number) => {
		const next = Math.max(0, Math.min(path.start.length - 1, at < 0 ? segmentAt(from) : at + way));
		setAt(next);
		const [a, b] = [path.start[next] as number, path.end[next] as number];
		if (a < from || b > to) show((a + b - (to - from)) / 2, (a + b + (to - from)) / 2);
		app.say(words(path, next, found));
	};
	const zoom = (factor: number, time = at >= 0 ? ((path.start[at] as number) + (path.end[at] as number)) / 2 : (from + to) / 2) => show(time - (time - from) * factor, time + (to - time) * factor);
	const key = (event: KeyboardEvent) => {
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		const acts: Record<string, () => void> = { ArrowRight: () => step(1), ArrowLeft: () => step(-1), "+": () => zoom(0.6), w: () => zoom(0.6), "-": () => zoom(1 / 0.6), s: () => zoom(1 / 0.6),
			a: () => show(from - (to - from) / 5, to - (to - from) / 5), d: () => show(from + (to - from) / 5, to + (to - from) / 5), 0: () => show(0, length),
			Enter: () => at >= 0 && (path.row[at] as number) >= 0 && onOpen(path.row[at] as number), Escape: () => setAt(-1) };
		const act = acts[event.key];
		if (!act) return;
		event.preventDefault();
		act();
	};
	return (
		<figure class="bars">
			<canvas ref={canvas} class="path-picture" style={{ height: `${height}px` }} tabIndex={0} role="application"
				aria-label={`The critical path along time, ${path.start.length} segments. Arrows go from segment to segment, + and − zoom. The table below has what is on it.`}
				onKeyDown={key} onPointerMove={(event) => setAt(segmentAt(timeAt(event)))} onPointerLeave={() => setAt(-1)}
				onClick={(event) => { const row = path.row[segmentAt(timeAt(event))] ?? -1; if (row >= 0) onOpen(row); }}
				onWheel={(event) => { if (event.ctrlKey || event.shiftKey) { event.preventDefault(); if (event.ctrlKey) zoom(Math.exp(event.deltaY * 0.004), timeAt(event)); else { const part = ((event.deltaY || event.deltaX) / 600) * (to - from); show(from + part, to + part); } } }}
				onDblClick={() => show(0, length)} />
			<figcaption>{at >= 0 ? words(path, at, found) : "Point at a segment to read it. Click it to mark all of its row. + and − zoom, 0 shows all."}</figcaption>
		</figure>
	);
}

function words(path: Path, at: number, found: (readonly Finding[])[]): string {
	const [start, end] = [path.start[at] as number, path.end[at] as number], row = path.rows[path.row[at] as number], kind = path.kind[at];
	const name = short(visible(path.name[at] ?? "")) || (kind === "host" ? "between two spans of a thread" : "");
	const what = kind === "launch" ? `launch of ${name}` : kind === "gap" ? `gap before ${name}` : `${kind}: ${name}`;
	const said = findingWords(found[path.row[at] as number] ?? []);
	return `${what}${said ? `; ${said}` : ""}; ${amount(end - start, "ns")} from ${amount(start, "ns")}${row?.place ? `; ${row.place}` : ""}${
		row ? `; without it each iteration would save ${Number.isNaN(row.savingNs) ? "an unknown time" : `at most ${amount(row.savingNs, "ns")}`}` : ""}${
		(path.many[at] as number) > 1 ? `; the longest of ${amount(path.many[at], null)} segments that are narrower than a pixel` : ""}`;
}

function draw(canvas: HTMLCanvasElement, view: { path: Path; kinds: [string, string, string][]; lineOf: Map<string, number>; place: [number, number]; picked: number; at: number; found: (readonly Finding[])[]; look: "light" | "dark" }): void {
	const context = canvas.getContext("2d", { alpha: false });
	if (!context) return;
	const { path, kinds, lineOf, place: [from, to] } = view, palette = PALETTES[view.look], colours = PARTS[view.look];
	const ratio = window.devicePixelRatio || 1, width = canvas.width / ratio, height = canvas.height / ratio;
	const x = (time: number) => LEFT + ((time - from) / (to - from)) * (width - LEFT), top = (line: number) => AXIS + line * LINE;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	prepareText(context);
	context.fillStyle = palette.background;
	context.fillRect(0, 0, width, height);
	drawTimes(context, palette, from, to, width, height, x);
	kinds.forEach(([kind], line) => {
		context.fillStyle = palette.text;
		context.fillText(kind, 2, top(line) + LINE / 2);
		context.fillStyle = palette.line;
		context.fillRect(0, top(line) + LINE - 1, width, 0.5);
	});
	context.save();
	context.beginPath();
	context.rect(LEFT, 0, width - LEFT, height);
	context.clip();
	for (let at = 0, last = -1; at < path.start.length; at++) {
		const [a, b] = [path.start[at] as number, path.end[at] as number];
		if (b < from || a > to) continue;
		const line = lineOf.get(path.kind[at] ?? "");
		if (line === undefined) continue;
		const left = x(a), right = Math.max(left + 1 / ratio, x(b)), isOther = view.picked >= 0 && path.row[at] !== view.picked;
		// The path as a line from segment to segment.
		if (last >= 0 && last !== line) {
			context.fillStyle = palette.line;
			context.fillRect(left - 0.5, top(Math.min(last, line)) + LINE / 2, 1, Math.abs(last - line) * LINE);
		}
		last = line;
		context.globalAlpha = isOther ? 0.3 : 1;
		context.fillStyle = at === view.at ? palette.select : (colours[(kinds[line] as [string, string, string])[1]] as string);
		context.fillRect(left, top(line) + 4, right - left > 3 ? right - left - 1 / ratio : right - left, LINE - 9);
		if (right - left > 34 && at !== view.at) {
			context.fillStyle = palette.text;
			context.fillText(fit(short(visible(path.name[at] ?? "")), Math.min(width, right) - Math.max(LEFT, left) - 6), Math.max(LEFT, left) + 3, top(line) + LINE / 2);
		}
		if (view.found[path.row[at] as number]?.length) {
			context.fillStyle = palette.mark;
			drawMark(context, left, right, top(line) + 4, MARK);
		}
		context.globalAlpha = 1;
	}
	context.restore();
}

function drawTimes(context: CanvasRenderingContext2D, palette: (typeof PALETTES)["light"], from: number, to: number, width: number, height: number, x: (time: number) => number): void {
	const wanted = ((to - from) / Math.max(1, width - LEFT)) * 110, power = 10 ** Math.floor(Math.log10(wanted));
	const step = [1, 2, 5, 10].map((part) => part * power).find((one) => one >= wanted) ?? 10 * power;
	for (let time = Math.ceil(from / step) * step; time < to; time += step) {
		context.fillStyle = palette.line;
		context.globalAlpha = 0.4;
		context.fillRect(Math.round(x(time)), 0, 1, height);
		context.globalAlpha = 1;
		context.fillStyle = palette.quiet;
		if (x(time) + 50 < width) context.fillText(amount(Math.round(time), "ns"), x(time) + 3, AXIS / 2);
	}
}
