// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { binAt, columnsOf, readCounters, type Counter } from "../src/draw/counters";
import { eachInterval } from "../src/draw/series";
import { amount } from "../src/draw/words";
import { readTables } from "../src/protocol/columns";
import { write } from "./write";

const NAMES = ["track", "start", "end", "mean", "max", "sampled"];

/** Rows of track, start, end, mean, max, sampled. */
function counters(rows: (number | null)[][]): Map<number, Counter> {
	const [table] = readTables(write("timeline.counters", "", NAMES.map((name, index) => ({ name, type: 3, values: rows.map((row) => row[index] ?? 0),
		known: rows.map((row) => Number(row[index] !== null)) }))));
	if (!table) throw new Error("there is no table");
	return readCounters(table);
}

// From 0 to 100: 10 and 30 (a fourth of it sampled), nothing from 40 to 80, 50, unknown.
const ROWS = [[7, 0, 20, 10, 12, 20], [8, 0, 20, 1, 1, 20], [7, 20, 40, 30, 33, 5], [7, 80, 90, 50, 55, 10], [7, 90, 100, null, 99, 0]];

function seven(): Counter {
	const found = counters(ROWS).get(7);
	if (!found) throw new Error("there is no counter");
	return found;
}

test("each counter has its own bins, and a time between bins has none", () => {
	const all = counters(ROWS), one = seven();
	assert.deepEqual([...all.keys()], [7, 8]);
	assert.deepEqual([one.count, all.get(8)?.count], [4, 1]);
	assert.deepEqual([-1, 0, 19, 20, 39, 40, 60, 79, 80, 99, 100].map((time) => binAt(one, time)), [-1, 0, 0, 1, 1, -1, -1, -1, 2, 3, -1]);
});

test("columns of a range are means by the sampled time, and where no sample is they have no value", () => {
	const drawn = columnsOf(seven(), 0, 100, 10);
	assert.deepEqual([...drawn.mean], [10, 10, 30, 30, NaN, NaN, NaN, NaN, 50, NaN]);
	assert.deepEqual([...drawn.max], [12, 12, 33, 33, NaN, NaN, NaN, NaN, 55, NaN]);
	assert.equal(drawn.greatest, 55);
	// Narrower than a column: 20 ns at 10, and 5 ns at 30.
	assert.deepEqual([...columnsOf(seven(), 0, 100, 2).mean], [(20 * 10 + 5 * 30) / 25, 50]);
	// A part of the run: the max is of that part.
	const part = columnsOf(seven(), 10, 30, 4);
	assert.deepEqual([...part.mean], [10, 10, 30, 30]);
	assert.equal(part.greatest, 33);
	assert.deepEqual([...columnsOf(seven(), 45, 75, 3).mean], [NaN, NaN, NaN]);
	assert.equal(columnsOf(seven(), 45, 75, 3).greatest, NaN);
});

test("an interval takes at least one column, and none outside of the range", () => {
	const places = (t0: number, t1: number, count: number) => {
		const found: number[][] = [];
		eachInterval(seven(), t0, t1, count, (index, from, to) => found.push([index, from, to]));
		return found;
	};
	assert.deepEqual(places(0, 100, 10), [[0, 0, 2], [1, 2, 4], [2, 8, 9], [3, 9, 10]]);
	assert.deepEqual(places(0, 100000, 10), [[0, 0, 1], [1, 0, 1], [2, 0, 1], [3, 0, 1]]);
	assert.deepEqual(places(40, 80, 10), []);
});

test("values of counters have the units of the summary", () => {
	assert.deepEqual([amount(430000, "ppm"), amount(0, "ppm"), amount(1.5e12, "byte/s"), amount(0, "byte/s"), amount(58612112, "count/s"), amount(2.5e12, "flop/s"), amount(NaN, "ppm")],
		["43.0 %", "0.0 %", "1.50 TB/s", "0 B/s", "58.6 M/s", "2.50 Tflop/s", "unknown"]);
});
