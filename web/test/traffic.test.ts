// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { heatStep, layOut, cellAt, leastOf, scaleOf, STEPS } from "../src/draw/heat";
import { lineKeys, readCell, readShape, segmentsIn, segmentsOf, total, type Line } from "../src/pages/traffic/data";

test("colours tell values apart, from the least to the greatest", () => {
	const scale = scaleOf([0, 1, 10, 1000]);
	assert.deepEqual([heatStep(0, scale), heatStep(1, scale), heatStep(1000, scale)], [-1, 0, STEPS - 1]);
	assert.ok(heatStep(10, scale) > 0 && heatStep(10, scale) < STEPS - 1);
	for (let step = 1; step < STEPS; step++) {
		assert.equal(heatStep(leastOf(step, scale) * 1.001, scale), step);
		assert.equal(heatStep(leastOf(step, scale) * 0.999, scale), step - 1);
	}
	// What is almost equal looks equal.
	assert.equal(heatStep(99, scaleOf([99, 100])), heatStep(100, scaleOf([99, 100])));
	assert.equal(heatStep(5, scaleOf([])), -1);
});

test("a cell is found where it is drawn", () => {
	const layout = layOut(72, 2);
	for (const [row, column] of [[0, 0], [3, 70], [71, 71]] as [number, number][])
		assert.deepEqual(cellAt(layout, 72, layout.left + (column + 0.5) * layout.cell, layout.top + (row + 0.5) * layout.cell), [row, column]);
	assert.equal(cellAt(layout, 72, 1, 1), null);
	assert.ok(layout.width < 640);
});

test("parts of several GPUs that are cut differently", () => {
	const segments = segmentsOf([{ initiator: 0, kind: "load", offset: 0, width: 100, accesses: 100 }, { initiator: 1, kind: "store", offset: 50, width: 100, accesses: 300 }]);
	assert.deepEqual(segments.map((one) => [one.start, one.end, one.density]), [[0, 50, 1], [50, 100, 4], [100, 150, 3]]);
	assert.equal(segments.reduce((sum, one) => sum + one.density * (one.end - one.start), 0), 400);
	assert.deepEqual(segmentsIn(segments, 100, 101).map((one) => one.start), [100]);
	assert.deepEqual(segmentsIn(segments, 150, 200), []);
});

test("the address", () => {
	assert.deepEqual(readShape("64×128"), [64, 128]);
	assert.deepEqual(readShape(" 64 x 128 "), [64, 128]);
	for (const bad of ["", "64", "0x3", "axb", "1x2x3", "-1x2"]) assert.equal(readShape(bad), null);
	assert.deepEqual(readCell("flow:1:0", 2), { matrix: "flow", row: 1, column: 0 });
	for (const bad of [undefined, "flow:2:0", "flow:1", "other:0:0"]) assert.equal(readCell(bad, 2), null);
	assert.deepEqual(lineKeys([{ label: "a" }, { label: "b" }, { label: "a" }] as Line[]), ["a", "b", "a (2)"]);
});

test("errors add as squares, and what is unknown stays unknown", () => {
	const one = { bytes: 10, accesses: 3, warps: 1, error_bytes: 3 };
	assert.deepEqual(total([one, { ...one, error_bytes: 4, warps: null }]), { bytes: 20, accesses: 6, warps: null, error_bytes: 5 });
});
