// SPDX-License-Identifier: Apache-2.0
// Hardware counters over time: what a row of the timeline shows of one.
import type { Table } from "../protocol/columns";
import { mix, type Palette } from "./colours";
import { eachInterval, fillSteps, firstAfter, strokeSteps, type Intervals } from "./series";

/** The bins of one counter. Between bins its value is not known. */
export interface Counter extends Intervals {
	mean: Float64Array;
	max: Float64Array;
	/** How long samples cover each bin, in ns. */
	sampled: Float64Array;
}

/** The bins of each counter, by its track. */
export function readCounters(table: Table): Map<number, Counter> {
	const track = table.column("track").numbers(), rows = new Map<number, number[]>(), made = new Map<number, Counter>();
	track.forEach((id, row) => {
		const list = rows.get(id);
		if (list) list.push(row);
		else rows.set(id, [row]);
	});
	const columns = ["start", "end", "mean", "max", "sampled"].map((name) => table.column(name).numbers());
	for (const [id, list] of rows) {
		const [start, end, mean, max, sampled] = columns.map((column) => Float64Array.from(list, (row) => column[row] as number)) as
			[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];
		made.set(id, { count: list.length, start, end, mean, max, sampled });
	}
	return made;
}

/** The bin that has this time in it, or -1 if no bin has. */
export function binAt(counter: Counter, time: number): number {
	const at = firstAfter(counter, time);
	return at < counter.count && (counter.start[at] as number) <= time ? at : -1;
}

export interface Columns {
	/** By the time that samples cover; NaN: no sample. */
	mean: Float64Array;
	max: Float64Array;
	/** Of what is visible; NaN: nothing is. */
	greatest: number;
}

/** What the columns of pixels from T0 to T1 show. */
export function columnsOf(counter: Counter, t0: number, t1: number, count: number): Columns {
	const mean = new Float64Array(count), max = new Float64Array(count).fill(NaN), covered = new Float64Array(count), wide = (t1 - t0) / count;
	let greatest = NaN;
	eachInterval(counter, t0, t1, count, (index, from, to) => {
		const start = counter.start[index] as number, end = counter.end[index] as number, value = counter.mean[index] as number, high = counter.max[index] as number;
		if (Number.isNaN(value)) return;
		if (!(greatest >= high)) greatest = high;
		for (let column = from; column < to; column++) {
			const left = t0 + column * wide, within = Math.min(end, left + wide) - Math.max(start, left);
			const weight = (Math.max(0, within) * (counter.sampled[index] as number)) / (end - start);
			mean[column] = (mean[column] as number) + value * weight;
			covered[column] = (covered[column] as number) + weight;
			if (!((max[column] as number) >= high)) max[column] = high;
		}
	});
	return { mean: mean.map((sum, column) => ((covered[column] as number) > 0 ? sum / (covered[column] as number) : NaN)), max, greatest };
}

/** Draws a counter between TOP and FLOOR, from LEFT to RIGHT; the row reaches from 0 to the max of what is visible, which it returns. */
export function drawCounter(context: CanvasRenderingContext2D, counter: Counter, [t0, t1]: readonly [number, number], [left, right]: readonly [number, number],
	[top, floor]: readonly [number, number], palette: Palette, ratio: number): number {
	const columns = columnsOf(counter, t0, t1, Math.max(1, Math.round((right - left) * ratio))), colour = palette.layers[4] as string;
	const scale = columns.greatest > 0 ? (floor - top) / columns.greatest : 0;
	const steps = { left, step: 1 / ratio, y: (value: number) => floor - Math.max(0, value) * scale };
	fillSteps(context, columns.max, steps, floor, mix(colour, palette.background, 0.4));
	fillSteps(context, columns.mean, steps, floor, colour);
	strokeSteps(context, columns.mean, steps, palette.quiet, 1);
	return columns.greatest;
}
