// SPDX-License-Identifier: Apache-2.0

/** Gives CANVAS a pixel for each pixel of the screen that it covers. Whether that changed its size. */
export function fitCanvas(canvas: HTMLCanvasElement): boolean {
	const ratio = window.devicePixelRatio || 1;
	const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
	if (width === canvas.width && height === canvas.height) return false;
	canvas.width = width;
	canvas.height = height;
	return true;
}
