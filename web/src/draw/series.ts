// SPDX-License-Identifier: Apache-2.0
// Values over time as steps. Memory and hardware counters are drawn by it.

/** Intervals in order of time, which do not overlap. */
export interface Intervals {
	count: number;
	start: Float64Array;
	end: Float64Array;
}

/** The first interval that ends after a time; their number if none does. */
export function firstAfter({ count, end }: Intervals, time: number): number {
	let low = 0, high = count;
	while (low < high) {
		const middle = (low + high) >> 1;
		if ((end[middle] as number) > time) high = middle;
		else low = middle + 1;
	}
	return low;
}

/** Each interval that touches a range of time, with the columns that it takes of COUNT that are as wide as the range. */
export function eachInterval(series: Intervals, t0: number, t1: number, count: number, act: (index: number, from: number, to: number) => void): void {
	const scale = count / (t1 - t0);
	for (let index = firstAfter(series, t0); index < series.count && (series.start[index] as number) < t1; index++) {
		const from = Math.max(0, Math.floor(((series.start[index] as number) - t0) * scale));
		act(index, from, Math.min(count, Math.max(from + 1, Math.round(((series.end[index] as number) - t0) * scale))));
	}
}

/** Neighbours with one value. */
export function eachRun(values: Float64Array, act: (from: number, to: number, value: number) => void): void {
	for (let from = 0, to = 0; from < values.length; from = to) {
		const value = values[from] as number;
		while (to < values.length && Object.is(values[to], value)) to++;
		act(from, to, value);
	}
}

/** Where columns of values lie: the first one at LEFT, each STEP wide, in CSS pixels. */
export interface Steps {
	left: number;
	step: number;
	y: (value: number) => number;
}

/** Fills columns from FLOOR up to their values. Those without a value are left out. */
export function fillSteps(context: CanvasRenderingContext2D, values: Float64Array, { left, step, y }: Steps, floor: number, colour: string): void {
	context.fillStyle = colour;
	eachRun(values, (from, to, value) => value > 0 && context.fillRect(left + from * step, y(value), (to - from) * step, floor - y(value)));
}

/** A line along the values. It ends where one is not known. */
export function strokeSteps(context: CanvasRenderingContext2D, values: Float64Array, { left, step, y }: Steps, colour: string, wide: number, dashes: number[] = []): void {
	context.strokeStyle = colour;
	context.lineWidth = wide;
	context.setLineDash(dashes);
	context.beginPath();
	let isOn = false;
	eachRun(values, (from, to, value) => {
		if (!Number.isNaN(value)) {
			if (isOn) context.lineTo(left + from * step, y(value));
			else context.moveTo(left + from * step, y(value));
			context.lineTo(left + to * step, y(value));
		}
		isOn = !Number.isNaN(value);
	});
	context.stroke();
	context.setLineDash([]);
}
