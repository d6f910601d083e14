// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { heightOf, placesOf, slopesOf } from "../src/draw/slope";
import { axisOf, placeOn, type Axis } from "../src/draw/whisker";
import { correctedOf, ofRoof, stepsOf, type Levels, type LevelValue } from "../src/pages/levels/data";
import { whiskerWords } from "../src/pages/levels/whiskers";
import type { JsonTable } from "../src/protocol/types";

const of = (value: number | null, low: number | null = null, high: number | null = null) => ({ value, low, high });

test("an axis has 0, all values and all intervals", () => {
	const axis = axisOf([of(9, 8, 27), of(11), of(null)]) as Axis;
	assert.deepEqual([axis.low, axis.high, axis.ticks], [0, 27, [0, 10, 20]]);
	assert.deepEqual([0, 13.5, 27].map((value) => placeOn(axis, value)), [0, 0.5, 1]);
	assert.deepEqual([placeOn(axis, -5), placeOn(axis, 99)], [0, 1]);
	const both = axisOf([of(1, -8, 11), of(0.1, -5, 5)]) as Axis;
	assert.deepEqual([both.low, both.high, both.ticks], [-8, 11, [-5, 0, 5, 10]]);
	assert.deepEqual(axisOf([of(-3)])?.ticks, [-3, -2, -1, 0]);
});

test("ticks are round and few at each size", () => {
	for (let size = 1; size < 1e12; size *= 3.7) {
		const axis = axisOf([of(size)]) as Axis, step = (axis.ticks[1] as number) - (axis.ticks[0] as number);
		assert.ok(axis.ticks.length >= 2 && axis.ticks.length <= 6, `${size}: ${axis.ticks}`);
		assert.ok([1, 2, 5].includes(Math.round(step / 10 ** Math.floor(Math.log10(step) + 1e-9))), String(step));
		assert.ok(axis.ticks.every((tick) => tick >= axis.low && tick <= axis.high * (1 + 1e-9)));
	}
});

test("without known values there is no axis, and no time is one", () => {
	assert.equal(axisOf([of(null), of(null)]), null);
	assert.equal(axisOf([]), null);
	assert.deepEqual(axisOf([of(0, 0, 0)]), { low: 0, high: 1, ticks: [0] });
	assert.equal(whiskerWords(of(null)), "unknown");
	assert.equal(whiskerWords(of(1.5e6)), "1.50 ms");
	assert.equal(whiskerWords(of(1.5e6, 1e6, 2e6)), "1.50 ms (1.00 ms to 2.00 ms)");
});

test("places, the greatest first; what is unknown has none", () => {
	assert.deepEqual(placesOf([3, null, 9, 3, 0]), [2, null, 1, 3, 4]);
});

test("lines lead from place to place, or to the lower edge", () => {
	const before = placesOf([10, 9, 8, 1]), after = placesOf([1, 9, 8, 10]);
	assert.deepEqual(slopesOf(before, after, 2), [{ row: 3, before: 4, after: 1 }, { row: 1, before: 2, after: 2 }, { row: 0, before: 1, after: 4 }]);
	assert.deepEqual(slopesOf(before, after, 1), [{ row: 3, before: 4, after: 1 }, { row: 0, before: 1, after: 4 }]);
	assert.deepEqual(slopesOf([1, null], [null, 1], 2), []);
	assert.deepEqual([heightOf(1, 2), heightOf(2, 2), heightOf(3, 2), heightOf(99, 2)], [0.5, 1.5, 2.75, 2.75]);
});

test("GPU work shows its own time, layers all that is in them", () => {
	const row = { metric: "gpu.time", corrected_ns: 9, own_ns: 4 } as LevelValue;
	assert.equal(correctedOf(row), 4);
	assert.equal(correctedOf({ ...row, own_ns: null }), 9);
	assert.equal(correctedOf({ ...row, metric: "op.time" }), 9);
	assert.equal(stepsOf({ measured: [] as unknown } as Levels), 1);
	assert.equal(stepsOf({ measured: [{ steps: 300 }] } as unknown as Levels), 300);
});

test("the part of the roof is that of what the bandwidth or the peak allows", () => {
	const table: JsonTable = { id: "A14", title: "", columns: [["layer_arithmetic_intensity (flops/byte)", "flop/byte"], ["layer_arithmetic_throughput (GFlops)", "Gflop/s"],
		["GPU_theoretical_flops (GFLOPS)", "Gflop/s"], ["GPU_memory_bandwidth (GB/s)", "GB/s"]].map(([name, unit]) => ({ name: name as string, unit: unit as string, source: "measured" })),
		rows: [[2, 100, 1000, 100], [50, 500, 1000, 100], [null, 500, 1000, 100]] };
	assert.deepEqual(ofRoof(table), [0.5, 0.5, NaN]);
	assert.deepEqual(ofRoof({ ...table, rows: table.rows.map((row) => [row[0] as number, row[1] as number, null, null]) }), [NaN, NaN, NaN]);
});
