// SPDX-License-Identifier: Apache-2.0
// Heat maps: colours by the logarithm of a value, and the picture of a matrix.
import type { Look } from "../state/theme";
import { contrast, mix, PALETTES } from "./colours";

const HOT: Record<Look, string> = { light: "#0b3f86", dark: "#9cc4ff" };
export const STEPS = 8;

/** Colours from little to much. */
export function heatColours(look: Look): string[] {
	return Array.from({ length: STEPS }, (_, step) => mix(HOT[look], PALETTES[look].background, 0.16 + (0.84 * step) / (STEPS - 1)));
}

/** Each step is so many times the one before, up to the greatest value. */
export interface HeatScale {
	most: number;
	times: number;
}

/** A scale for VALUES: from the least to the greatest, if these are neither almost equal nor very far apart. */
export function scaleOf(values: Iterable<number>): HeatScale {
	let most = 0, least = Infinity;
	for (const value of values) {
		if (!(value > 0)) continue;
		most = Math.max(most, value);
		least = Math.min(least, value);
	}
	return { most, times: most > 0 ? Math.max(1.3, Math.min(8, (most / least) ** (1 / (STEPS - 1)))) : 2 };
}

/** The step of a value: 0 to STEPS − 1. -1: nothing. */
export function heatStep(value: number, scale: HeatScale): number {
	if (!(value > 0) || !(scale.most > 0)) return -1;
	return Math.max(0, Math.min(STEPS - 1, STEPS - 1 - Math.floor(Math.log(scale.most / value) / Math.log(scale.times) + 1e-9)));
}

/** Values of a step are greater than this, and those of the last step at most `most`. */
export function leastOf(step: number, scale: HeatScale): number {
	return scale.most / scale.times ** (STEPS - step);
}

/** The colour of words on a colour. */
export function inkOn(colour: string): string {
	return contrast(colour, "#ffffff") >= contrast(colour, "#000000") ? "#ffffff" : "#000000";
}

export interface MatrixLayout {
	/** The pixels of a cell, and of the labels beside and above. */
	cell: number;
	left: number;
	top: number;
	width: number;
	height: number;
	/** Of the labels of rows and columns, every such one is written. */
	down: number;
	across: number;
}

/** Room for COUNT rows and columns, whose longest label has LETTERS. */
export function layOut(count: number, letters: number): MatrixLayout {
	const cell = Math.max(7, Math.min(46, Math.floor(420 / Math.max(1, count))));
	const left = Math.min(90, 14 + letters * 7), top = 20, down = Math.ceil(13 / cell), across = Math.ceil((Math.min(letters, 6) * 7 + 4) / cell);
	return { cell, left, top, width: left + count * cell + 2, height: top + count * cell + 2, down, across };
}

/** The cell below a place of the picture; null: none. */
export function cellAt(layout: MatrixLayout, count: number, x: number, y: number): [number, number] | null {
	const row = Math.floor((y - layout.top) / layout.cell), column = Math.floor((x - layout.left) / layout.cell);
	return row >= 0 && column >= 0 && row < count && column < count ? [row, column] : null;
}
