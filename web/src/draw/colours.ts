// SPDX-License-Identifier: Apache-2.0
// The colours of what is drawn. test/colours.test.ts checks that the layers differ for people with each kind of colour blindness, and
// that names can be read on them.
import type { Look } from "../state/theme";

export const LAYERS = ["python", "module", "operator", "native", "gpu", "other"] as const;
export type Layer = (typeof LAYERS)[number];
export const LAYER_NAMES = ["Python", "module", "operator", "native", "GPU", "other"];

export interface Palette {
	layers: string[];
	/** The layers where a search does not match. */
	dim: string[];
	/** Of two profiles: from "took much less" over "the same" to "took much more". */
	changes: string[];
	dimChanges: string[];
	hatch: string;
	text: string;
	background: string;
	line: string;
	select: string;
	mark: string;
	quiet: string;
}

export const PALETTES: Record<Look, Palette> = {
	light: {
		layers: ["#4d97ea", "#d9adff", "#be8933", "#aaa19a", "#6ada8f", "#eee5e7"],
		dim: [],
		changes: ["#4d97ea", "#78b1ef", "#a3caf4", "#c8dff8", "#e6e6e8", "#fbdcb8", "#f8bf83", "#f2a04b", "#e67e17"],
		dimChanges: [],
		hatch: "#14141466",
		text: "#141414",
		background: "#ffffff",
		line: "#8a8a8a",
		select: "#000000",
		mark: "#a3001b",
		quiet: "#5c5c5c",
	},
	dark: {
		layers: ["#385492", "#572954", "#8f6626", "#766b66", "#284625", "#5b5559"],
		dim: [],
		changes: ["#2f6dbd", "#2f5d9b", "#2e4d79", "#2f3f58", "#3c3d42", "#55402a", "#6f4a20", "#8b5415", "#a65e08"],
		dimChanges: [],
		hatch: "#f4f4f455",
		text: "#f4f4f4",
		background: "#17181a",
		line: "#6d6d6d",
		select: "#ffffff",
		mark: "#ffb3b3",
		quiet: "#a6a6a6",
	},
};

for (const palette of Object.values(PALETTES)) {
	palette.dim = palette.layers.map((colour) => mix(colour, palette.background, 0.25));
	palette.dimChanges = palette.changes.map((colour) => mix(colour, palette.background, 0.25));
}

/** From which part of the larger value on a change has each of the stronger colours. */
export const CHANGE_STEPS = [0.02, 0.05, 0.15, 0.4];

/** The place of a change among the colours of changes; 4: none, or next to none. */
export function changeStep(after: number, before: number): number {
	const most = Math.max(Math.abs(after), Math.abs(before)), part = most > 0 ? Math.abs(after - before) / most : 0;
	const steps = CHANGE_STEPS.filter((step) => part >= step).length;
	return after >= before ? 4 + steps : 4 - steps;
}

/** For what is no layer: parts of a time. */
export const PARTS: Record<Look, Record<string, string>> = {
	light: { computing: "#6ada8f", communication: "#d9adff", waiting: "#c9b6f2", copies: "#be8933", idle: "#e4e4e4", host: "#4d97ea", startup: "#be8933",
		loop: "#6ada8f", "other loop": "#c4efbd", rest: "#a99e99" },
	dark: { computing: "#1f7a4a", communication: "#7d2b96", waiting: "#5a4a86", copies: "#8b4d00", idle: "#3a3c40", host: "#2f66ad", startup: "#8b4d00",
		loop: "#1f7a4a", "other loop": "#12472b", rest: "#726a63" },
};

/** Why warps wait, by class; the names are those of the answers. */
export const STALL_CLASSES = ["memory", "shared", "execution", "barrier", "throttle", "fetch", "flush", "other"] as const;
export const STALLS: Record<Look, string[]> = {
	light: ["#4d97ea", "#8a63d2", "#2fae66", "#d9488b", "#c98a1b", "#14a3a8", "#8c6d5a", "#a29a96"],
	dark: ["#5b93e0", "#a58ae6", "#3fae72", "#df6ea3", "#c9993f", "#37a8ab", "#ab8f7d", "#8f8985"],
};

export function channels(colour: string): [number, number, number] {
	const value = parseInt(colour.slice(1), 16);
	return [value >> 16, (value >> 8) & 255, value & 255];
}

/** `share` of one colour, the rest of another. */
export function mix(colour: string, other: string, share: number): string {
	const a = channels(colour), b = channels(other);
	return `#${a.map((value, index) => Math.round(value * share + (b[index] as number) * (1 - share)).toString(16).padStart(2, "0")).join("")}`;
}

function linear(value: number): number {
	const part = value / 255;
	return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
}

export function luminance(colour: string): number {
	const [red, green, blue] = channels(colour);
	return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

export function contrast(a: string, b: string): number {
	const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
	return (high + 0.05) / (low + 0.05);
}

/** Red, green and blue of a colour, linear. */
export function linearOf(colour: string): [number, number, number] {
	return channels(colour).map(linear) as [number, number, number];
}
