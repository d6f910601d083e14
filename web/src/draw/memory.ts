// SPDX-License-Identifier: Apache-2.0
// Memory over time: what was live in each interval, what the allocator had reserved, and the peak.
import type { Table } from "../protocol/columns";
import { mix, PALETTES, PARTS, type Palette } from "./colours";
import { eachInterval, fillSteps, firstAfter, strokeSteps, type Intervals } from "./series";
import { prepareText } from "./text";
import type { Bands } from "./timeline";
import { amount } from "./words";
import type { Look } from "../state/theme";

/** Intervals in order of time, without gaps. Reserved is NaN if the allocator does not say it. */
export interface Series extends Intervals {
	min: Float64Array;
	max: Float64Array;
	last: Float64Array;
	maxReserved: Float64Array;
	lastReserved: Float64Array;
	hasReserved: boolean;
}

/** The rows of a table, and one more from the last change until the process ended. */
export function readSeries(table: Table, ended: number | null): Series {
	const names = ["start", "end", "min", "max", "last", "max_reserved", "last_reserved"];
	let columns = names.map((name) => table.column(name).numbers());
	const last = table.rows - 1, at = (column: number) => columns[column]?.[last] ?? NaN;
	const isLonger = last >= 0 && ended !== null && ended > at(1);
	if (isLonger) {
		const more = [at(1), ended, at(4), at(4), at(4), at(6), at(6)];
		columns = columns.map((column, index) => Float64Array.of(...column, more[index] as number));
	}
	const [start, end, min, max, lasts, maxReserved, lastReserved] = columns as [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];
	return { count: start.length, start, end, min, max, last: lasts, maxReserved, lastReserved, hasReserved: maxReserved.some((value) => !Number.isNaN(value)) };
}

/** The interval that a time lies in; the nearest one if it lies in none. */
export function intervalAt(series: Series, time: number): number {
	return Math.max(0, Math.min(series.count - 1, firstAfter(series, time)));
}

/** The first interval with the greatest max: that of the peak. */
export function intervalOfPeak(series: Series): number {
	let found = 0;
	for (let index = 1; index < series.count; index++) if ((series.max[index] as number) > (series.max[found] as number)) found = index;
	return found;
}

export interface MemoryView {
	t0: number;
	t1: number;
	/** Interval under the pointer or the keys; -1: none. */
	at: number;
	/** Part that is being chosen. */
	drag: [number, number] | null;
	peak: { time: number; bytes: number } | null;
	bands: Bands | null;
}

export const LEFT = 66, FOOT = 22, TOP = 20;

/** The time at a place of the canvas, in CSS pixels. */
export function timeAt(view: MemoryView, x: number, width: number): number {
	const part = (x - LEFT) / Math.max(1, width - LEFT - 8);
	return view.t0 + Math.max(0, Math.min(1, part)) * (view.t1 - view.t0);
}

/** Up to `most` round values from 0 to the greatest: 1, 2 or 5 times a power of ten, of the unit that fits. */
export function byteTicks(greatest: number, most: number): number[] {
	const unit = 1024 ** Math.max(0, Math.floor(Math.log(Math.max(1, greatest)) / Math.log(1024)));
	const wanted = greatest / unit / most, power = 10 ** Math.floor(Math.log10(wanted));
	const step = ([1, 2, 5, 10].map((part) => part * power).find((one) => one >= wanted) ?? 10 * power) * unit;
	const ticks = [];
	for (let value = 0; value <= greatest * 1.0001; value += step) ticks.push(value);
	return ticks;
}

export function memoryColours(look: Look): { floor: string; swing: string; edge: string; reserved: string } {
	const palette = PALETTES[look], fill = PARTS[look]["host"] as string;
	return { floor: mix(fill, palette.background, 0.8), swing: mix(fill, palette.background, 0.4), edge: look === "light" ? "#1d5fae" : "#a8cbff", reserved: look === "light" ? "#8a4b00" : "#f0a94a" };
}

interface Frame {
	x: (time: number) => number;
	y: (bytes: number) => number;
	right: number;
	floor: number;
	greatest: number;
}

/** The chart without what follows the pointer, as it was drawn last on a canvas. */
interface Base {
	key: unknown[];
	picture: HTMLCanvasElement;
	frame: Frame;
}

const bases = new WeakMap<HTMLCanvasElement, Base>();

export function drawMemory(canvas: HTMLCanvasElement, series: Series, view: MemoryView, look: Look): void {
	const context = canvas.getContext("2d", { alpha: false });
	if (!context || !canvas.width || !canvas.height) return;
	const key = [series, view.t0, view.t1, view.bands, view.peak, look, canvas.width, canvas.height];
	let base = bases.get(canvas);
	if (!base || base.key.some((value, index) => value !== key[index])) bases.set(canvas, (base = drawBase(canvas, series, view, look, key)));
	const ratio = window.devicePixelRatio || 1, palette = PALETTES[look], { x, y, floor } = base.frame;
	context.setTransform(1, 0, 0, 1, 0, 0);
	context.drawImage(base.picture, 0, 0);
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	if (view.drag) {
		const [a, b] = [x(Math.min(...view.drag)), x(Math.max(...view.drag))];
		context.globalAlpha = 0.15;
		context.fillStyle = palette.select;
		context.fillRect(a, TOP, b - a, floor - TOP);
		context.globalAlpha = 1;
	}
	drawCursor(context, series, view, x, y, floor, palette);
}

function drawBase(canvas: HTMLCanvasElement, series: Series, view: MemoryView, look: Look, key: unknown[]): Base {
	const picture = document.createElement("canvas");
	[picture.width, picture.height] = [canvas.width, canvas.height];
	const ratio = window.devicePixelRatio || 1, width = canvas.width / ratio, height = canvas.height / ratio;
	const palette = PALETTES[look], right = width - 8, floor = height - FOOT;
	const columns = columnsOf(series, view, Math.max(1, Math.round((right - LEFT) * ratio)));
	const top = Math.max(1, columns.greatest) * 1.02;
	const frame: Frame = { right, floor, greatest: columns.greatest, x: (time) => LEFT + ((time - view.t0) / (view.t1 - view.t0)) * (right - LEFT),
		y: (bytes) => floor - (bytes / top) * (floor - TOP) };
	const context = picture.getContext("2d", { alpha: false });
	if (!context) return { key, picture, frame };
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	prepareText(context);
	context.fillStyle = palette.background;
	context.fillRect(0, 0, width, height);
	context.save();
	context.beginPath();
	context.rect(LEFT, 0, right - LEFT + 1, height);
	context.clip();
	drawBands(context, view, frame.x, floor, palette);
	drawArea(context, columns, ratio, frame.y, floor, memoryColours(look));
	context.restore();
	drawAxes(context, view, frame, palette);
	drawPeak(context, view, frame.x, frame.y, right, palette);
	return { key, picture, frame };
}

interface Columns {
	min: Float64Array;
	max: Float64Array;
	reserved: Float64Array;
	greatest: number;
}

/** What the columns of device pixels show: the least and the greatest of all intervals that touch one. */
function columnsOf(series: Series, view: MemoryView, count: number): Columns {
	const min = new Float64Array(count).fill(NaN), max = new Float64Array(count).fill(NaN), reserved = new Float64Array(count).fill(NaN);
	let greatest = 0;
	eachInterval(series, view.t0, view.t1, count, (index, from, to) => {
		const low = series.min[index] as number, high = series.max[index] as number, held = series.maxReserved[index] as number;
		for (let column = from; column < to; column++) {
			if (!((min[column] as number) <= low)) min[column] = low;
			if (!((max[column] as number) >= high)) max[column] = high;
			if (!((reserved[column] as number) >= held)) reserved[column] = held;
		}
		greatest = Math.max(greatest, high, Number.isNaN(held) ? 0 : held);
	});
	return { min, max, reserved, greatest };
}

function drawArea(context: CanvasRenderingContext2D, columns: Columns, ratio: number, y: (bytes: number) => number, floor: number,
	colours: ReturnType<typeof memoryColours>): void {
	const steps = { left: LEFT, step: 1 / ratio, y };
	fillSteps(context, columns.max, steps, floor, colours.swing);
	fillSteps(context, columns.min, steps, floor, colours.floor);
	strokeSteps(context, columns.max, steps, colours.edge, 1.25);
	strokeSteps(context, columns.reserved, steps, colours.reserved, 1.25, [7, 4]);
}

function drawBands(context: CanvasRenderingContext2D, view: MemoryView, x: (time: number) => number, floor: number, palette: Palette): void {
	const { bands } = view, pixel = (view.t1 - view.t0) / 1000;
	for (let at = 0, right = -Infinity; bands && at < bands.start.length; at++) {
		const start = bands.start[at] as number, end = bands.end[at] as number;
		if (end < view.t0 || start > view.t1 || end - right < pixel) continue;
		right = end;
		const number = bands.number[at] as number, a = x(start), b = x(end);
		context.fillStyle = palette.line;
		context.globalAlpha = number % 2 ? 0.26 : 0.1;
		context.fillRect(a, 2, Math.max(1, b - a), floor - 2);
		context.globalAlpha = 1;
		context.fillStyle = palette.quiet;
		context.textAlign = "left";
		if (b - a > 30) context.fillText(String(number), a + 3, TOP - 9);
	}
}

/** A time, as exact as steps of STEP need it: 0.02 s. */
export function timeWords(time: number, step: number): string {
	const digits = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(step) - 1e-9)));
	return `${(time / 1e9).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} s`;
}

function drawAxes(context: CanvasRenderingContext2D, view: MemoryView, place: Frame, palette: Palette): void {
	const { x, y, right, floor } = place;
	context.textAlign = "right";
	for (const bytes of byteTicks(place.greatest, Math.max(2, Math.floor((floor - TOP) / 40)))) {
		context.globalAlpha = 0.4;
		context.fillStyle = palette.line;
		context.fillRect(LEFT, Math.round(y(bytes)), right - LEFT, 1);
		context.globalAlpha = 1;
		context.fillStyle = palette.quiet;
		context.fillText(bytes ? amount(bytes, "byte").replace(/\.0+ /, " ") : "0", LEFT - 6, y(bytes));
	}
	context.textAlign = "center";
	const wanted = (view.t1 - view.t0) / Math.max(1, Math.floor((right - LEFT) / 90)), power = 10 ** Math.floor(Math.log10(wanted));
	const step = [1, 2, 5, 10].map((part) => part * power).find((one) => one >= wanted) ?? 10 * power;
	for (let time = Math.ceil(view.t0 / step) * step; time <= view.t1; time += step) {
		context.fillStyle = palette.line;
		context.fillRect(Math.round(x(time)), floor, 1, 5);
		context.fillStyle = palette.quiet;
		const text = timeWords(time, step), half = context.measureText(text).width / 2;
		context.fillText(text, Math.max(LEFT + half, Math.min(right - half, x(time))), floor + 13);
	}
	context.fillStyle = palette.line;
	context.fillRect(LEFT, floor, right - LEFT, 1);
	context.textAlign = "left";
}

function drawPeak(context: CanvasRenderingContext2D, view: MemoryView, x: (time: number) => number, y: (bytes: number) => number, right: number, palette: Palette): void {
	const { peak } = view;
	if (!peak || peak.time < view.t0 || peak.time > view.t1) return;
	const a = x(peak.time), b = y(peak.bytes), text = `peak ${amount(peak.bytes, "byte")}`, wide = context.measureText(text).width;
	context.fillStyle = palette.mark;
	context.beginPath();
	context.moveTo(a, b);
	context.lineTo(a - 5, b - 9);
	context.lineTo(a + 5, b - 9);
	context.fill();
	const from = Math.max(LEFT, Math.min(right - wide, a + 8 + wide > right ? a - wide - 8 : a + 8)), top = Math.max(8, b - 8);
	context.fillStyle = palette.background;
	context.globalAlpha = 0.8;
	context.fillRect(from - 2, top - 8, wide + 4, 16);
	context.globalAlpha = 1;
	context.fillStyle = palette.mark;
	context.fillText(text, from, top);
}

function drawCursor(context: CanvasRenderingContext2D, series: Series, view: MemoryView, x: (time: number) => number, y: (bytes: number) => number, floor: number, palette: Palette): void {
	if (view.at < 0 || view.at >= series.count) return;
	const middle = ((series.start[view.at] as number) + (series.end[view.at] as number)) / 2;
	if (middle < view.t0 || middle > view.t1) return;
	context.fillStyle = palette.select;
	context.fillRect(Math.round(x(middle)), TOP, 1, floor - TOP);
	context.beginPath();
	context.arc(x(middle), y(series.max[view.at] as number), 3.5, 0, 7);
	context.fill();
}
