// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { changeStep, contrast, LAYERS, linearOf, PALETTES } from "../src/draw/colours";

type Three = [number, number, number];
// How people without one kind of cones see linear RGB (Machado and others, 2009, severity 1).
const SEEN: Record<string, Three[]> = {
	all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
	protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
	deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
	tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const times = (matrix: Three[], [a, b, c]: Three) => matrix.map((row) => row[0] * a + row[1] * b + row[2] * c) as Three;

function oklab(rgb: Three): Three {
	const cones = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]],
		rgb.map((value) => Math.max(0, Math.min(1, value))) as Three).map(Math.cbrt) as Three;
	return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], cones);
}

for (const [look, palette] of Object.entries(PALETTES)) {
	test(`${look}: names can be read on each layer, matched or not`, () => {
		for (const colour of [...palette.layers, ...palette.dim, ...palette.changes, ...palette.dimChanges]) assert.ok(contrast(colour, palette.text) >= 4.5, `${colour} ${contrast(colour, palette.text)}`);
		assert.ok(contrast(palette.mark, palette.background) >= 4.5);
		assert.ok(contrast(palette.quiet, palette.background) >= 4.5);
	});
	for (const [kind, matrix] of Object.entries(SEEN)) {
		test(`${look}: more and less differ, and each step is stronger than the one before (${kind})`, () => {
			const seen = palette.changes.map((colour) => oklab(times(matrix, linearOf(colour))));
			const far = (a: number, b: number) => Math.hypot(...[0, 1, 2].map((index) => ((seen[a] as Three)[index] as number) - ((seen[b] as Three)[index] as number)));
			for (let step = 1; step <= 4; step++) {
				assert.ok(far(4 - step, 4 + step) >= 0.04 * step, `${step}: ${far(4 - step, 4 + step).toFixed(3)}`);
				for (const way of [-1, 1]) assert.ok(far(4, 4 + way * step) > far(4, 4 + way * (step - 1)) + 0.01, `${way * step}: ${far(4, 4 + way * step).toFixed(3)}`);
			}
		});
		test(`${look}: layers differ (${kind})`, () => {
			const seen = palette.layers.map((colour) => oklab(times(matrix, linearOf(colour))));
			for (let a = 0; a < LAYERS.length; a++) {
				for (let b = 0; b < a; b++) {
					const far = Math.hypot(...[0, 1, 2].map((index) => ((seen[a] as Three)[index] as number) - ((seen[b] as Three)[index] as number)));
					assert.ok(far >= 0.06, `${LAYERS[a]} and ${LAYERS[b]}: ${far.toFixed(3)}`);
				}
			}
		});
	}
}

test("a change has the step of the part that changed", () => {
	assert.deepEqual([[10, 10], [0, 0], [10.1, 10], [10.3, 10], [11, 10], [15, 10], [20, 10], [5, 0], [10, 10.3], [10, 11], [10, 15], [0, 5], [-5, 5]].map(
		([after, before]) => changeStep(after as number, before as number)), [4, 4, 4, 5, 6, 7, 8, 8, 3, 2, 1, 0, 0]);
});
