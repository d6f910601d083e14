// SPDX-License-Identifier: Apache-2.0
// Tracks of spans over time: where each lies, and how they are drawn.
import type { Table } from "../protocol/columns";
import type { Palette } from "./colours";
import { drawCounter, type Counter } from "./counters";
import { drawMark, MARK } from "./mark";
import { fit, prepareText } from "./text";
import { amount, short, visible } from "./words";

export const LINE = 18, HEADER = 20, AXIS = 24, GAP = 6;

export interface TrackRow {
	track: number;
	name: string;
	kind: string;
	rank: number | null;
	process: number | null;
	/** Lines that are shown, and that there are. */
	depth: number;
	lines: number;
	start: number;
	end: number;
	spans: number;
	source: string;
	/** What a counter over time is of; null: it is no counter. */
	counter: { metric: string; unit: string | null; device: number | null } | null;
	/** CSS pixels from the top of those that stay, or of those that scroll. */
	top: number;
	isPinned: boolean;
	/** It stays at the top while the others scroll. */
	isFixed: boolean;
}

/** The tracks that are shown, pinned ones first. */
export interface Layout {
	tracks: TrackRow[];
	/** CSS pixels that those that stay take, and those that scroll. */
	fixed: number;
	scrolled: number;
}

export function readTracks(table: Table): TrackRow[] {
	const column = (name: string) => table.column(name), known = (name: string, row: number) => (column(name).isKnown(row) ? column(name).number(row) : null);
	return Array.from({ length: table.rows }, (_, row) => {
		const depth = Math.max(1, column("depth").number(row) || 1);
		return { track: column("track").number(row), name: visible(column("name").text(row)), kind: column("kind").text(row), rank: known("rank", row),
			process: known("process", row), depth, lines: depth, start: column("start").number(row), end: column("end").number(row), spans: column("spans").number(row),
			source: column("source").text(row), counter: column("kind").text(row) === "counter" ? { metric: visible(column("metric").text(row)),
				unit: column("unit").isKnown(row) ? column("unit").text(row) : null, device: known("device", row) } : null, top: 0, isPinned: false, isFixed: false };
	});
}

/** Whether a track has all words of a filter. "rank:1" and "process:7" are of that rank or process alone. */
function fits(track: TrackRow, words: string[]): boolean {
	const text = `${track.name} ${track.kind}`.toLowerCase();
	return words.every((word) => {
		const [, key, number] = /^(rank|process):(\d+)$/.exec(word) ?? [];
		return key ? String(key === "rank" ? track.rank : track.process) === number : text.includes(word);
	});
}

/** So many lines of a track are shown unless it is pinned. */
const LINES_MOST = 40;

/** Lays out the tracks that fit a filter. Pinned ones come first, whatever the filter; they stay there as long as ROOM lasts. */
export function layTracks(all: TrackRow[], filter: string, pins: number[], room: number): Layout {
	const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
	const pinned = all.filter((track) => pins.includes(track.track)), others = all.filter((track) => !pins.includes(track.track) && fits(track, words));
	let fixed = 0, scrolled = 0;
	const tracks = [...pinned, ...others].map((track, index) => {
		const depth = index < pinned.length ? track.lines : Math.min(track.lines, LINES_MOST);
		const tall = HEADER + depth * LINE + GAP, isFixed = index < pinned.length && scrolled === 0 && fixed + tall <= room;
		const made = { ...track, depth, top: isFixed ? fixed : scrolled, isPinned: index < pinned.length, isFixed };
		if (isFixed) fixed += tall;
		else scrolled += tall;
		return made;
	});
	return { tracks, fixed, scrolled };
}

export class Spans {
	readonly count: number;
	readonly track: Int32Array;
	readonly depth: Int32Array;
	readonly start: Float64Array;
	readonly end: Float64Array;
	readonly layer: Int32Array;
	readonly many: Int32Array;
	/** Its place among the calls: the context of the profile. */
	readonly context: Int32Array;
	/** By span: 1 where it carries the mark of a finding. */
	marked = new Uint8Array();
	/** The spans of a line of a track, by their starts. */
	private readonly lines = new Map<number, Int32Array>();

	constructor(private readonly table: Table, readonly range: [number, number], readonly px: number) {
		this.count = table.rows;
		this.track = table.column("track").integers();
		this.depth = table.column("depth").integers(0);
		this.start = table.column("start").numbers();
		this.end = table.column("end").numbers();
		this.layer = table.column("layer").integers(5);
		this.many = table.column("many").integers(1);
		this.context = table.column("context").integers();
		const lists = new Map<number, number[]>();
		for (let span = 0; span < this.count; span++) {
			const key = (this.track[span] as number) * 65536 + (this.depth[span] as number);
			const list = lists.get(key);
			if (list) list.push(span);
			else lists.set(key, [span]);
		}
		for (const [key, list] of lists) this.lines.set(key, Int32Array.from(list).sort((a, b) => (this.start[a] as number) - (this.start[b] as number)));
	}

	line(track: number, depth: number): Int32Array {
		return this.lines.get(track * 65536 + depth) ?? new Int32Array();
	}

	/** The place in a line of the first span that ends after a time. */
	first(line: Int32Array, time: number): number {
		let low = 0, high = line.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if ((this.end[line[middle] as number] as number) > time) high = middle;
			else low = middle + 1;
		}
		return low;
	}

	at(track: number, depth: number, time: number): number {
		const line = this.line(track, depth), span = line[this.first(line, time)];
		return span !== undefined && (this.start[span] as number) <= time ? span : -1;
	}

	name(span: number): string {
		return visible(this.table.column("name").text(span));
	}

	/** As the profile has it. */
	plainName(span: number): string {
		return this.table.column("name").text(span);
	}

	mark(isFound: (span: number) => boolean): void {
		this.marked = Uint8Array.from({ length: this.count }, (_, span) => Number(isFound(span)));
	}
}

export interface Bands {
	number: Float64Array;
	start: Float64Array;
	end: Float64Array;
}

/** The iterations of the outermost level, by track. */
export function readBands(table: Table): Map<number, Bands> {
	const [track, level, number, start, end] = ["track", "level", "number", "start", "end"].map((name) => table.column(name).numbers()) as
		[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];
	const rows = new Map<number, number[]>();
	for (let row = 0; row < table.rows; row++) {
		if (level[row]) continue;
		const list = rows.get(track[row] as number);
		if (list) list.push(row);
		else rows.set(track[row] as number, [row]);
	}
	const made = new Map<number, Bands>();
	for (const [id, list] of rows) {
		const order = Int32Array.from(list).sort((a, b) => (start[a] as number) - (start[b] as number));
		const pick = (from: Float64Array) => Float64Array.from(order, (row) => from[row] as number);
		made.set(id, { number: pick(number), start: pick(start), end: pick(end) });
	}
	return made;
}

export interface Extra {
	/** Bins of counters, by track. */
	counters: Map<number, Counter>;
	/** Iterations by track, each by their starts. */
	bands: Map<number, Bands>;
	arrows: { fromTrack: number; from: number; toTrack: number; to: number }[];
	selected: { track: number; depth: number; start: number; end: number } | null;
	measure: [number, number] | null;
	/** Times are shown from here. */
	origin: number;
}

const ARROWS_MOST = 60;

export interface Place {
	t0: number;
	t1: number;
	top: number;
	/** Where the names of the tracks end, in CSS pixels. */
	left: number;
}

/** Where a track begins, in CSS pixels of the canvas. */
export function topOf(layout: Layout, place: Place, track: TrackRow): number {
	return AXIS + track.top + (track.isFixed ? 0 : layout.fixed - place.top);
}

/** The track at Y of the canvas. */
export function trackAt(layout: Layout, place: Place, y: number): TrackRow | undefined {
	const isAbove = y < AXIS + layout.fixed;
	if (y < AXIS) return undefined;
	return layout.tracks.find((track) => track.isFixed === isAbove && y >= topOf(layout, place, track) && y < topOf(layout, place, track) + HEADER + track.depth * LINE);
}

export function drawTimeline(canvas: HTMLCanvasElement, layout: Layout, spans: Spans | null, place: Place, palette: Palette, extra: Extra): void {
	const context = canvas.getContext("2d", { alpha: false });
	if (!context) return;
	const ratio = window.devicePixelRatio || 1, width = canvas.width / ratio, height = canvas.height / ratio;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	prepareText(context);
	context.textAlign = "left";
	context.fillStyle = palette.background;
	context.fillRect(0, 0, width, height);
	const scale = (width - place.left) / (place.t1 - place.t0), snap = (value: number) => Math.round(value * ratio) / ratio;
	const x = (time: number) => place.left + (time - place.t0) * scale;
	const { tracks } = layout, y = (track: TrackRow) => topOf(layout, place, track);
	context.save();
	context.beginPath();
	context.rect(place.left, AXIS, width - place.left, height - AXIS);
	context.clip();
	const greatest = new Map<number, number>(); // of what is visible of a counter, by track
	const drawTracks = (isFixed: boolean, from: number) => {
		for (const track of tracks) {
			const top = y(track);
			if (track.isFixed !== isFixed || top > height || top + HEADER + track.depth * LINE < from) continue;
			drawBands(context, extra.bands.get(track.track), track, top, place, x, palette);
			const counter = extra.counters.get(track.track), floor = top + HEADER + track.depth * LINE - 1;
			if (counter) greatest.set(track.track, drawCounter(context, counter, [place.t0, place.t1], [place.left, width], [top + 4, floor], palette, ratio));
			if (spans) for (let depth = 0; depth < track.depth; depth++) drawLine(context, spans, spans.line(track.track, depth), place, x, snap, top + HEADER + depth * LINE, palette, ratio, width);
		}
	};
	drawTracks(false, AXIS + layout.fixed);
	if (layout.fixed) {
		context.fillStyle = palette.background;
		context.fillRect(place.left, AXIS, width, layout.fixed);
		drawTracks(true, AXIS);
		context.fillStyle = palette.quiet;
		context.fillRect(place.left, AXIS + layout.fixed - 1, width, 1);
	}
	drawArrows(context, extra, tracks, x, y, palette);
	if (extra.selected) {
		const track = tracks.find((one) => one.track === extra.selected?.track), { depth, start } = extra.selected;
		const span = track && spans ? spans.at(track.track, depth, start) : -1;
		if (track?.counter) {
			context.strokeStyle = palette.select;
			context.lineWidth = 2;
			const a = Math.max(place.left - 2, x(start)), b = Math.min(width + 2, x(extra.selected.end));
			context.strokeRect(a, y(track) + 2, Math.max(2, b - a), HEADER + track.depth * LINE - 3);
		} else if (track && spans && span >= 0) {
			context.strokeStyle = palette.select;
			context.lineWidth = 2;
			const a = Math.max(place.left - 2, x(spans.start[span] as number)), b = Math.min(width + 2, x(spans.end[span] as number));
			context.strokeRect(a, y(track) + HEADER + depth * LINE, Math.max(2, b - a), LINE - 2);
		}
	}
	context.restore();
	drawAxis(context, place, width, x, palette, extra.origin);
	drawNames(context, layout, place, height, y, palette, greatest);
	if (extra.measure) {
		const a = x(Math.min(...extra.measure)), b = x(Math.max(...extra.measure));
		context.fillStyle = palette.select;
		context.globalAlpha = 0.15;
		context.fillRect(a, 0, b - a, height);
		context.globalAlpha = 1;
		context.fillRect(a, 0, 1, height);
		context.fillRect(b, 0, 1, height);
		context.fillText(amount(Math.abs(extra.measure[1] - extra.measure[0]), "ns"), Math.max(place.left, a) + 4, AXIS + 10);
	}
}

function drawLine(context: CanvasRenderingContext2D, spans: Spans, line: Int32Array, place: Place, x: (time: number) => number, snap: (value: number) => number, y: number,
	palette: Palette, ratio: number, width: number): void {
	let right = -1, colour = "";
	const marks: number[] = []; // where marked spans begin and end
	for (let at = spans.first(line, place.t0); at < line.length; at++) {
		const span = line[at] as number;
		if ((spans.start[span] as number) > place.t1) break;
		const from = Math.max(place.left, snap(x(spans.start[span] as number)));
		const to = Math.min(width, Math.max(from + 1 / ratio, snap(x(spans.end[span] as number))));
		if (spans.marked[span] && !(to <= (marks[marks.length - 1] ?? -1))) marks.push(from, to);
		if (to <= right) continue; // that pixel is drawn
		right = to;
		const own = palette.layers[spans.layer[span] as number] ?? (palette.layers[5] as string);
		if (own !== colour) context.fillStyle = colour = own;
		context.fillRect(from, y, to - from > 3 ? to - from - 1 / ratio : to - from, LINE - 2);
		if (to - from > 28) {
			const text = fit(short(spans.name(span)), to - from - 6);
			if (text) {
				context.fillStyle = palette.text;
				context.fillText(text, from + 3, y + LINE / 2 - 1);
				colour = "";
			}
		}
	}
	context.fillStyle = palette.mark;
	for (let at = 0; at < marks.length; at += 2) drawMark(context, marks[at] as number, marks[at + 1] as number, y, MARK);
}

function drawBands(context: CanvasRenderingContext2D, bands: Bands | undefined, track: TrackRow, top: number, place: Place, x: (time: number) => number, palette: Palette): void {
	if (!bands) return;
	let low = 0, high = bands.end.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if ((bands.end[middle] as number) > place.t0) high = middle;
		else low = middle + 1;
	}
	const pixel = (place.t1 - place.t0) / 1000;
	for (let at = low, right = -Infinity; at < bands.start.length && (bands.start[at] as number) < place.t1; at++) {
		if ((bands.end[at] as number) - right < pixel) continue; // it would lie on the one before
		right = bands.end[at] as number;
		const number = bands.number[at] as number, a = x(bands.start[at] as number), b = x(right);
		context.fillStyle = palette.line;
		context.globalAlpha = number % 2 ? 0.28 : 0.12;
		context.fillRect(a, top, Math.max(1, b - a), HEADER + track.depth * LINE);
		context.globalAlpha = 1;
		context.fillStyle = palette.quiet;
		if (b - a > 34) context.fillText(String(number), Math.max(a, 0) + 3, top + HEADER / 2);
	}
}

function drawArrows(context: CanvasRenderingContext2D, extra: Extra, tracks: TrackRow[], x: (time: number) => number, y: (track: TrackRow) => number, palette: Palette): void {
	const rows = new Map(tracks.map((track) => [track.track, track]));
	context.strokeStyle = palette.mark;
	context.lineWidth = 1;
	context.globalAlpha = 0.7;
	context.beginPath();
	// Many arrows cover each other and what is below them: then only those of the selected span are drawn.
	const { selected } = extra, isOf = (track: number, time: number) => selected?.track === track && time >= selected.start && time <= selected.end;
	const drawn = extra.arrows.length <= ARROWS_MOST ? extra.arrows : extra.arrows.filter((arrow) => isOf(arrow.fromTrack, arrow.from) || isOf(arrow.toTrack, arrow.to));
	for (const arrow of drawn) {
		const from = rows.get(arrow.fromTrack), to = rows.get(arrow.toTrack);
		if (!from || !to) continue;
		const a = x(arrow.from), b = x(arrow.to), top = y(from) + HEADER + LINE / 2, bottom = y(to) + HEADER + 2;
		context.moveTo(a, top);
		context.bezierCurveTo(a, (top + bottom) / 2, b, (top + bottom) / 2, b, bottom);
	}
	context.stroke();
	context.globalAlpha = 1;
}

function drawAxis(context: CanvasRenderingContext2D, place: Place, width: number, x: (time: number) => number, palette: Palette, origin: number): void {
	context.fillStyle = palette.background;
	context.fillRect(0, 0, width, AXIS);
	const wanted = ((place.t1 - place.t0) / Math.max(1, width - place.left)) * 110, power = 10 ** Math.floor(Math.log10(wanted));
	const step = [1, 2, 5, 10].map((part) => part * power).find((one) => one >= wanted) ?? 10 * power;
	for (let time = origin + Math.ceil((place.t0 - origin) / step) * step; time < place.t1; time += step) {
		context.fillStyle = palette.line;
		context.fillRect(Math.round(x(time)), AXIS - 6, 1, 6);
		context.fillStyle = palette.quiet;
		context.fillText(amount(Math.round(time - origin), "ns"), x(time) + 3, AXIS / 2);
	}
	context.fillStyle = palette.line;
	context.fillRect(0, AXIS - 1, width, 1);
}

function drawNames(context: CanvasRenderingContext2D, layout: Layout, place: Place, height: number, y: (track: TrackRow) => number, palette: Palette,
	greatest: Map<number, number>): void {
	context.save();
	context.beginPath();
	context.rect(0, AXIS, place.left, height);
	context.clip();
	context.fillStyle = palette.background;
	context.fillRect(0, AXIS, place.left, height);
	// Those that stay lie on those that scroll.
	for (const track of [...layout.tracks.filter((one) => !one.isFixed), null, ...layout.tracks.filter((one) => one.isFixed)]) {
		if (!track) {
			context.fillStyle = palette.background;
			context.fillRect(0, AXIS, place.left, layout.fixed);
			continue;
		}
		if (y(track) > height) continue;
		context.fillStyle = palette.text;
		context.fillText(fit(track.counter?.metric ?? track.name, place.left - (track.isPinned ? 24 : 10)), 4, y(track) + HEADER / 2);
		if (track.isPinned) drawPin(context, place.left - 14, y(track) + HEADER / 2, palette);
		context.fillStyle = palette.quiet;
		const more = track.counter ? [greatest.has(track.track) && `max ${amount(greatest.get(track.track), track.counter.unit)}`, track.counter.device !== null && `GPU ${track.counter.device}`, track.rank !== null && `rank ${track.rank}`].filter(Boolean).join(", ")
			: [track.rank === null ? "" : `rank ${track.rank}`, track.process === null ? "" : `process ${track.process}`].filter(Boolean).join(", ");
		context.fillText(fit(more, place.left - 10), 4, y(track) + HEADER + LINE / 2);
		if (track.depth < track.lines) context.fillText(fit(`${track.depth} of ${track.lines} lines: pin it`, place.left - 10), 4, y(track) + HEADER + 1.5 * LINE);
		context.fillStyle = palette.line;
		context.fillRect(0, y(track) + HEADER + track.depth * LINE + GAP / 2, place.left, 1);
	}
	context.fillRect(place.left - 1, AXIS, 1, height);
	context.restore();
}

function drawPin(context: CanvasRenderingContext2D, x: number, y: number, palette: Palette): void {
	context.fillStyle = palette.select;
	context.beginPath();
	context.arc(x + 3, y - 3, 3.5, 0, 7);
	context.fill();
	context.fillRect(x + 2, y, 2, 7);
}

/** Draws all spans of the outermost rows of all tracks small, from T0 to T1: the strip that shows where you are. */
export function drawStrip(canvas: HTMLCanvasElement, tracks: TrackRow[], spans: Spans, range: [number, number], palette: Palette): void {
	const context = canvas.getContext("2d", { alpha: false });
	if (!context) return;
	const { width, height } = canvas, tall = Math.max(1, Math.floor(height / Math.max(1, tracks.length))), scale = width / (range[1] - range[0]);
	context.fillStyle = palette.background;
	context.fillRect(0, 0, width, height);
	tracks.forEach((track, index) => {
		const top = Math.floor((index * height) / tracks.length), line = spans.line(track.track, 0);
		let right = -1;
		for (const span of line) {
			const from = Math.floor(((spans.start[span] as number) - range[0]) * scale), to = Math.max(from + 1, Math.round(((spans.end[span] as number) - range[0]) * scale));
			if (to <= right) continue;
			right = to;
			context.fillStyle = palette.layers[spans.layer[span] as number] ?? (palette.layers[5] as string);
			context.fillRect(from, top, to - from, Math.max(1, tall - 1));
		}
	});
}
