// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { byteTicks, intervalAt, intervalOfPeak, readSeries, timeAt, timeWords, LEFT } from "../src/draw/memory";
import { readTables } from "../src/protocol/columns";
import { write } from "./write";

const NAMES = ["start", "end", "min", "max", "last", "max_reserved", "last_reserved"];

/** Rows of start, end, min, max, last, max_reserved, last_reserved. */
function series(rows: (number | null)[][], ended: number | null) {
	const [table] = readTables(write("memory.series", "", NAMES.map((name, index) => ({ name, type: 2, values: rows.map((row) => row[index] ?? 0),
		known: rows.map((row) => Number(row[index] !== null)) }))));
	if (!table) throw new Error("there is no table");
	return readSeries(table, ended);
}

test("what lives at the end lives until the process ends", () => {
	const made = series([[0, 10, 0, 7, 5, null, null], [10, 20, 2, 9, 3, null, null]], 50);
	assert.equal(made.count, 3);
	assert.deepEqual([made.start[2], made.end[2], made.min[2], made.max[2]], [20, 50, 3, 3]);
	assert.equal(made.hasReserved, false);
	assert.equal(series([[0, 10, 0, 7, 5, 8, 8]], 10).count, 1);
	assert.equal(series([[0, 10, 0, 7, 5, 8, 8]], null).hasReserved, true);
	assert.equal(series([], 50).count, 0);
});

test("the interval of a time, and that of the peak", () => {
	const made = series([[0, 10, 0, 7, 5, 1, 1], [10, 20, 2, 9, 3, 1, 1], [20, 30, 3, 9, 3, 1, 1]], null);
	assert.deepEqual([-5, 0, 9, 10, 19, 29, 99].map((time) => intervalAt(made, time)), [0, 0, 0, 1, 1, 2, 2]);
	assert.equal(intervalOfPeak(made), 1);
	const view = { t0: 100, t1: 200, at: -1, drag: null, peak: null, bands: null };
	assert.deepEqual([0, LEFT, 1000 - 8, 2000].map((x) => timeAt(view, x, 1000)), [100, 100, 200, 200]);
});

test("axes have round values that differ", () => {
	const ticks = byteTicks(3.2 * 2 ** 30, 5);
	assert.deepEqual(ticks, [0, 2 ** 30, 2 * 2 ** 30, 3 * 2 ** 30]);
	for (const greatest of [1, 3, 1023, 1024, 5e5, 2 ** 40, 7e12]) {
		const made = byteTicks(greatest, 5);
		assert.ok(made.length >= 1 && made.length <= 11 && (made[made.length - 1] as number) <= greatest * 1.001, String(greatest));
	}
	assert.deepEqual([timeWords(1.234e9, 2e7), timeWords(5e8, 5e8), timeWords(2e12, 1e12), timeWords(19e9, 4e6)], ["1.23 s", "0.5 s", "2,000 s", "19.000 s"]);
});
