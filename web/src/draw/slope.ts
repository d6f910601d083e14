// SPDX-License-Identifier: Apache-2.0
// The places of rows by one value and by another, as lines from place to place.
import type { Known } from "../protocol/types";

/** The place of each row, the greatest value first, from 1; null: its value is not known. */
export function placesOf(values: readonly Known<number>[]): Known<number>[] {
	const known = values.flatMap((value, row) => (value === null ? [] : [row])).sort((a, b) => (values[b] as number) - (values[a] as number) || a - b);
	const places = new Array<Known<number>>(values.length).fill(null);
	known.forEach((row, at) => { places[row] = at + 1; });
	return places;
}

export interface Slope {
	row: number;
	before: number;
	after: number;
}

/** Rows that are among the first MOST before or after; those first that are first after. */
export function slopesOf(before: readonly Known<number>[], after: readonly Known<number>[], most: number): Slope[] {
	return before.flatMap((from, row) => {
		const to = after[row] ?? null;
		return from !== null && to !== null && (from <= most || to <= most) ? [{ row, before: from, after: to }] : [];
	}).sort((a, b) => a.after - b.after);
}

/** The height of a place, in rows; places beyond MOST are at the lower edge. */
export function heightOf(place: number, most: number): number {
	return place <= most ? place - 0.5 : most + 0.75;
}
