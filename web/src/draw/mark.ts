// SPDX-License-Identifier: Apache-2.0
// The mark of a finding on a canvas: a corner, so that it is told by its shape and not by its colour alone.

export const MARK = 6;

/** Marks the corner at RIGHT, TOP of a box that begins at LEFT. SIZE is in the units of the canvas. The colour is that of the context. */
export function drawMark(context: CanvasRenderingContext2D, left: number, right: number, top: number, size: number): void {
	const wide = Math.min(size, Math.max(2, right - left));
	context.beginPath();
	context.moveTo(right - wide, top);
	context.lineTo(right, top);
	context.lineTo(right, top + wide);
	context.fill();
}
