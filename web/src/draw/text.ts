// SPDX-License-Identifier: Apache-2.0
// Names on a canvas. Widths come from a table of letters, because measuring each name takes longer than drawing it.

export const FONT = '12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

let widths: Float64Array | null = null;
let wide = 12;

export function prepareText(context: CanvasRenderingContext2D): void {
	context.font = FONT;
	context.textBaseline = "middle";
	if (widths) return;
	widths = new Float64Array(127);
	for (let code = 32; code < 127; code++) widths[code] = context.measureText(String.fromCharCode(code)).width;
	wide = context.measureText("漢").width;
}

/** As much of a text as fits, with an ellipsis; "" if next to nothing fits. */
export function fit(text: string, room: number): string {
	if (!widths || room < 14) return "";
	const dots = 10;
	let used = 0, cut = -1;
	for (let at = 0; at < text.length; at++) {
		const code = text.charCodeAt(at);
		const next = used + (code < 127 ? (widths[code] as number) : wide);
		if (next > room - dots && cut < 0) cut = at;
		if (next > room) return cut < 2 ? "" : `${text.slice(0, cut)}…`;
		used = next;
	}
	return text;
}
