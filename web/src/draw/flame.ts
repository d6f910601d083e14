// SPDX-License-Identifier: Apache-2.0
// A flame graph over the typed arrays of an answer. Boxes lie by depth, then from left to right, so that each row is found by halving.
// All edges are on whole device pixels, and boxes below one pixel become one. Narrow boxes are drawn as pixels of an image.
import type { Table } from "../protocol/columns";
import { changeStep, channels, type Palette } from "./colours";
import { drawMark, MARK } from "./mark";
import { fit, prepareText } from "./text";
import { short, signedPercent, visible } from "./words";

export const FINDING = 1, MATCH = 2, FUSED = 4, MATCH_BELOW = 8, AFTER = 16, BEFORE = 32;
export const ROW = 20; // CSS pixels of a row

export interface View {
	x0: number;
	x1: number;
	/** CSS pixels that are scrolled out at the top. */
	top: number;
}

export class Flame {
	readonly rows: number;
	readonly count: number;
	readonly node: Int32Array;
	readonly parent: Int32Array;
	readonly depth: Int32Array;
	readonly x0: Float64Array;
	readonly x1: Float64Array;
	readonly layer: Int32Array;
	readonly value: Float64Array;
	readonly self: Float64Array;
	readonly many: Int32Array;
	readonly flags: Int32Array;
	readonly frame: Int32Array;
	/** Of two profiles: what the boxes hold in the one before. */
	readonly before: Float64Array | null;
	readonly beforeSelf: Float64Array | null;
	readonly total: { value: number; self: number; unit: string; metric: string; matched: number; depth: number; nodes: number;
		before: number; beforeMatched: number; unseen: number; iterations: number; beforeIterations: number; width: string };
	/** By box: its place among the colours of layers, or of changes. */
	readonly colour: Uint8Array;
	/** The first box of each depth, and the end of the last. */
	readonly start: Int32Array;
	private readonly labels: (string | undefined)[];

	/** `range` and `px` are those of the query: what the answer covers and how finely. */
	constructor(private readonly table: Table, total: Table, readonly range: [number, number], readonly px: number) {
		const integers = (name: string, unknown = -1) => table.column(name).integers(unknown);
		this.count = table.rows;
		this.node = integers("node");
		this.parent = integers("parent");
		this.depth = integers("depth", 0);
		this.x0 = table.column("x0").numbers();
		this.x1 = table.column("x1").numbers();
		this.layer = integers("layer", 5);
		this.value = table.column("value").numbers();
		this.self = table.column("self").numbers();
		this.many = integers("many", 1);
		this.flags = integers("flags", 0);
		this.frame = integers("frame");
		const one = (name: string) => total.column(name).number(0);
		this.total = { value: one("value"), self: one("self"), matched: one("matched"), depth: one("depth"), nodes: one("nodes"),
			unit: total.column("unit").text(0), metric: total.column("metric").text(0), before: one("before"), beforeMatched: one("before_matched"),
			unseen: one("unseen"), iterations: one("iterations"), beforeIterations: one("before_iterations"), width: total.column("width").text(0) };
		const isPair = table.columns.some((column) => column.name === "before");
		this.before = isPair ? table.column("before").numbers() : null;
		this.beforeSelf = isPair ? table.column("before_self").numbers() : null;
		this.colour = Uint8Array.from(this.layer, (layer) => (layer >= 0 && layer < 6 ? layer : 5));
		for (let box = 0; isPair && box < this.count; box++) this.colour[box] = changeStep(this.value[box] as number, this.beforeOf(box));
		this.rows = this.count ? (this.depth[this.count - 1] as number) + 1 : 0;
		this.start = new Int32Array(this.rows + 1);
		for (let box = this.count - 1; box >= 0; box--) this.start[this.depth[box] as number] = box;
		this.start[this.rows] = this.count;
		for (let row = this.rows - 1; row >= 0; row--) {
			if (this.depth[this.start[row] as number] !== row) this.start[row] = this.start[row + 1] as number;
		}
		this.labels = new Array<string | undefined>(this.count);
	}

	name(box: number): string {
		return visible(this.table.column("name").text(box));
	}

	beforeOf(box: number): number {
		return this.before?.[box] ?? NaN;
	}

	/** Only one of two profiles has it: which one. */
	only(box: number): "after" | "before" | null {
		const there = (this.flags[box] as number) & (AFTER | BEFORE);
		return there === AFTER ? "after" : there === BEFORE ? "before" : null;
	}

	/** How it changed, as people read it: "+12.3 %". */
	changeWords(box: number): string {
		const only = this.only(box), value = this.value[box] as number, before = this.beforeOf(box);
		if (only) return `only ${only}`;
		if (before === 0) return value === 0 ? "no change" : "0 before";
		return signedPercent((value - before) / Math.abs(before));
	}

	label(box: number): string {
		const kept = this.labels[box];
		if (kept !== undefined) return kept;
		const name = short(this.name(box));
		const text = this.before ? `${this.changeWords(box)} ${name}` : name;
		this.labels[box] = text;
		return text;
	}

	/** The first box of a row that ends right of x. */
	first(row: number, x: number): number {
		let low = this.start[row] as number, high = this.start[row + 1] as number;
		while (low < high) {
			const middle = (low + high) >> 1;
			if ((this.x1[middle] as number) > x) high = middle;
			else low = middle + 1;
		}
		return low;
	}

	/** The box at a place, or -1. */
	at(row: number, x: number): number {
		if (row < 0 || row >= this.rows) return -1;
		const box = this.first(row, x);
		return box < (this.start[row + 1] as number) && (this.x0[box] as number) <= x ? box : -1;
	}

	/** Marks what a search matches, where no server does. Returns false if the expression is broken. */
	search(text: string): boolean {
		try {
			const pattern = new RegExp(text);
			this.mark((name) => pattern.test(name));
			return true;
		} catch {
			return false;
		}
	}

	/** Marks the boxes with a name that matches, and adds up what they hold. */
	mark(matches: (name: string) => boolean): void {
		let matched = 0, end = new Float64Array(0); // where the boxes of the row above that match, or lie below one that does, begin and end
		for (let row = 0; row < this.rows; row++) {
			const ends: number[] = [];
			let at = 0;
			for (let box = this.start[row] as number; box < (this.start[row + 1] as number); box++) {
				const middle = ((this.x0[box] as number) + (this.x1[box] as number)) / 2;
				while (at < end.length && (end[at + 1] as number) < middle) at += 2;
				const isBelow = at < end.length && (end[at] as number) <= middle;
				const isMatch = matches(this.name(box));
				if (isMatch) this.flags[box] = (this.flags[box] as number) | MATCH;
				if (isMatch && !isBelow) matched += this.value[box] as number;
				if (isMatch || isBelow) ends.push(this.x0[box] as number, this.x1[box] as number);
			}
			end = Float64Array.from(ends);
		}
		this.total.matched = matched;
	}

	find(node: number): number {
		return node < 0 ? -1 : this.node.indexOf(node);
	}

	/** The box that a box stands on, or -1. */
	parentOf(box: number): number {
		const row = (this.depth[box] as number) - 1;
		return row < 0 ? -1 : this.at(row, ((this.x0[box] as number) + (this.x1[box] as number)) / 2);
	}

	/** The largest box on a box, or -1. */
	childOf(box: number): number {
		const row = (this.depth[box] as number) + 1;
		if (row >= this.rows) return -1;
		let best = -1;
		for (let child = this.first(row, this.x0[box] as number); child < (this.start[row + 1] as number); child++) {
			if ((this.x0[child] as number) >= (this.x1[box] as number) - 1e-12) break;
			if (best < 0 || (this.value[child] as number) > (this.value[best] as number)) best = child;
		}
		return best;
	}

	/** The next box of the row to the left (-1) or right (1), or -1. */
	besides(box: number, way: number): number {
		const next = box + way;
		return next >= 0 && next < this.count && this.depth[next] === this.depth[box] ? next : -1;
	}
}

export interface Marks {
	/** The node that is selected, and the box under the pointer; -1: none. */
	selected: number;
	hovered: number;
	searching: boolean;
}

export function drawFlame(canvas: HTMLCanvasElement, flame: Flame, view: View, palette: Palette, marks: Marks): void {
	const context = canvas.getContext("2d", { alpha: false });
	if (!context) return;
	const ratio = window.devicePixelRatio || 1, width = canvas.width, height = canvas.height;
	context.setTransform(1, 0, 0, 1, 0, 0);
	context.fillStyle = palette.background;
	context.fillRect(0, 0, width, height);
	const row = Math.round(ROW * ratio), scale = width / (view.x1 - view.x0), top = Math.round(view.top * ratio);
	const firstRow = Math.max(0, Math.floor(top / row)), lastRow = Math.min(flame.rows, Math.ceil((top + height) / row));
	const named: number[] = [];
	const hatch = flame.before ? hatching(context, palette, ratio) : null;
	const rows = Math.max(0, lastRow - firstRow), narrow = narrowPixels(width, rows);
	for (let depth = firstRow; depth < lastRow; depth++) {
		drawRow(context, flame, depth, view, scale, width, depth * row - top, row - 1, palette, marks.searching, named, ratio, hatch,
			narrow.subarray((depth - firstRow) * width, (depth - firstRow + 1) * width));
	}
	drawNarrow(context, narrow, width, rows, firstRow * row - top, row);
	drawMarks(context, flame, view, scale, row, top, palette, marks, ratio, width);
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	prepareText(context);
	context.fillStyle = palette.text;
	for (const box of named) {
		const left = Math.max(0, ((flame.x0[box] as number) - view.x0) * scale), right = Math.min(width, ((flame.x1[box] as number) - view.x0) * scale);
		const text = fit(flame.label(box), (right - left) / ratio - 8);
		if (text) context.fillText(text, left / ratio + 4, ((flame.depth[box] as number) * row - top + row / 2) / ratio);
	}
}

/** For boxes that only one of two profiles has: their colour alone would not tell them from a large change. */
function hatching(context: CanvasRenderingContext2D, palette: Palette, ratio: number): CanvasPattern | null {
	const size = Math.round(7 * ratio), tile = document.createElement("canvas"), on = tile.getContext("2d");
	tile.width = tile.height = size;
	if (!on) return null;
	on.strokeStyle = palette.hatch;
	on.lineWidth = ratio;
	on.beginPath();
	for (const from of [-size, 0, size]) {
		on.moveTo(from, size);
		on.lineTo(from + size, 0);
	}
	on.stroke();
	return context.createPattern(tile, "repeat");
}

let kept: { canvas: HTMLCanvasElement; pixels: Uint32Array<ArrayBuffer>; width: number } | null = null;

/** A pixel for each pixel of each row, 0: none. */
function narrowPixels(width: number, rows: number): Uint32Array<ArrayBuffer> {
	if (!kept || kept.width !== width || kept.pixels.length < width * rows) {
		kept = { canvas: document.createElement("canvas"), pixels: new Uint32Array(width * (rows + 8)), width };
	}
	return kept.pixels.fill(0).subarray(0, width * rows);
}

/** Boxes that are narrower than 3 pixels, all at once: thousands of small rectangles take much longer. Each row is one pixel high, and stretched. */
function drawNarrow(context: CanvasRenderingContext2D, pixels: Uint32Array<ArrayBuffer>, width: number, rows: number, y: number, row: number): void {
	const canvas = kept?.canvas, on = canvas?.getContext("2d");
	if (!canvas || !on || rows === 0 || !pixels.some((pixel) => pixel !== 0)) return;
	if (canvas.width !== width || canvas.height < rows) {
		canvas.width = width;
		canvas.height = rows + 8;
	}
	on.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer, 0, 4 * width * rows), width, rows), 0, 0);
	context.imageSmoothingEnabled = false;
	for (let at = 0; at < rows; at++) context.drawImage(canvas, 0, at, width, 1, 0, y + at * row, width, row - 1);
}

const packs = new WeakMap<string[], Uint32Array>();

/** Colours as pixels of an image. */
function packed(colours: string[]): Uint32Array {
	let pack = packs.get(colours);
	if (!pack) {
		const bytes = new Uint8Array(4 * colours.length);
		colours.forEach((colour, index) => bytes.set([...channels(colour), 255], 4 * index));
		packs.set(colours, (pack = new Uint32Array(bytes.buffer)));
	}
	return pack;
}

function drawRow(context: CanvasRenderingContext2D, flame: Flame, depth: number, view: View, scale: number, width: number, y: number, height: number,
	palette: Palette, searching: boolean, named: number[], ratio: number, hatch: CanvasPattern | null, narrow: Uint32Array): void {
	const end = flame.start[depth + 1] as number, wide = 26 * ratio;
	const colours = flame.before ? palette.changes : palette.layers, dim = flame.before ? palette.dimChanges : palette.dim;
	const pixels = packed(colours), dimPixels = packed(dim);
	let right = -1; // what is left of it is drawn
	for (let box = flame.first(depth, view.x0); box < end; box++) {
		const x0 = ((flame.x0[box] as number) - view.x0) * scale;
		if (x0 >= width) break;
		const a = Math.max(0, Math.round(x0));
		let b = Math.min(width, Math.round(((flame.x1[box] as number) - view.x0) * scale));
		if (b <= a) b = a + 1;
		if (b <= right) continue; // narrower than a pixel, and that pixel is drawn
		const isDim = searching && !((flame.flags[box] as number) & MATCH), colour = flame.colour[box] as number, left = Math.max(a, right);
		right = b;
		if (b - a < 3) {
			narrow.fill((isDim ? dimPixels : pixels)[colour] as number, left, b);
			continue;
		}
		// A gap of one pixel parts it from the next one.
		context.fillStyle = (isDim ? dim : colours)[colour] as string;
		context.fillRect(left, y, b - 1 - left, height);
		if (hatch && flame.only(box)) {
			context.fillStyle = hatch;
			context.fillRect(left, y, b - 1 - left, height);
		}
		if (b - a >= wide) named.push(box);
	}
}

function drawMarks(context: CanvasRenderingContext2D, flame: Flame, view: View, scale: number, row: number, top: number, palette: Palette, marks: Marks,
	ratio: number, width: number): void {
	const size = Math.round(MARK * ratio);
	const first = Math.max(0, Math.floor(top / row)), last = Math.min(flame.rows, Math.ceil((top + context.canvas.height) / row));
	context.fillStyle = palette.mark;
	for (let depth = first; depth < last; depth++) {
		const end = flame.start[depth + 1] as number;
		for (let box = flame.first(depth, view.x0); box < end && (flame.x0[box] as number) < view.x1; box++) {
			if (!((flame.flags[box] as number) & FINDING)) continue;
			const b = Math.min(width, Math.round(((flame.x1[box] as number) - view.x0) * scale)) - 1, y = depth * row - top;
			const a = Math.max(0, Math.round(((flame.x0[box] as number) - view.x0) * scale));
			drawMark(context, a, b, y, size);
		}
	}
	for (const [box, thick] of [[marks.hovered, 1], [flame.find(marks.selected), 2]] as const) {
		if (box < 0 || box >= flame.count) continue;
		const line = Math.max(1, Math.round(thick * ratio));
		const a = Math.round(((flame.x0[box] as number) - view.x0) * scale), b = Math.round(((flame.x1[box] as number) - view.x0) * scale);
		if (b < 0 || a > width) continue;
		context.strokeStyle = palette.select;
		context.lineWidth = line;
		context.strokeRect(Math.max(-line, a) + line / 2, (flame.depth[box] as number) * row - top + line / 2, Math.max(2, Math.min(width + line, b) - Math.max(-line, a)) - line, row - 1 - line);
	}
}
