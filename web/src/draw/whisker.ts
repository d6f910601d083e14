// SPDX-License-Identifier: Apache-2.0
// Values with their intervals on one axis.
import type { Known } from "../protocol/types";

export interface Whisker {
	value: Known<number>;
	low: Known<number>;
	high: Known<number>;
}

export interface Axis {
	low: number;
	high: number;
	/** Round values between them. */
	ticks: number[];
}

/** 1, 2 or 5 times a power of ten: the least such step that gives at most MOST of them in a range. */
function stepOf(range: number, most: number): number {
	const wanted = range / most, power = 10 ** Math.floor(Math.log10(wanted));
	return ([1, 2, 5].map((part) => part * power).find((one) => one >= wanted * (1 - 1e-9)) ?? 10 * power);
}

/** An axis that has 0, all values and all intervals. null: no value is known. */
export function axisOf(whiskers: readonly Whisker[], most = 5): Axis | null {
	const known = whiskers.flatMap((one) => [one.value, one.low, one.high]).filter((value): value is number => value !== null && Number.isFinite(value));
	const low = Math.min(0, ...known), high = Math.max(0, ...known);
	if (known.length === 0) return null;
	if (high === low) return { low: 0, high: 1, ticks: [0] };
	const step = stepOf(high - low, most), ticks: number[] = [];
	for (let at = Math.ceil(low / step - 1e-9); at * step <= high * (1 + 1e-9); at++) ticks.push(at * step || 0);
	return { low, high, ticks };
}

/** Where a value is on an axis, as a part of its length. */
export function placeOn(axis: Axis, value: number): number {
	return Math.max(0, Math.min(1, (value - axis.low) / (axis.high - axis.low)));
}
