// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { csvRows, visibleRange } from "../src/pages/flame/csv";
import { make } from "./flames";

test("CSV has one header, and each visible box after its caller with its path", () => {
	const rows = csvRows({ down: make() }, [0, 1]);
	assert.deepEqual(rows[0], ["view", "depth", "name", "layer", "self (ns)", "total (ns)", "share", "boxes", "finding", "match", "path"]);
	assert.deepEqual(rows.slice(1).map((row) => [row[1], row[2], row[4], row[5], row[10]]),
		[[0, "a", 0, 60, "a"], [1, "b", 30, 40, "a;b"], [2, "ab", 10, 10, "a;b;ab"], [1, "c", 20, 20, "a;c"], [0, "d", 40, 40, "d"]]);
	assert.deepEqual(csvRows({ down: make() }, [0.6, 1]).slice(1).map((row) => row[2]), ["d"]);
	assert.deepEqual(csvRows({ down: null }, [0, 1]), []);
});

test("of two graphs each row says which one it is of; of two profiles both values", () => {
	const rows = csvRows({ callers: make(), callees: make() }, [0, 1]);
	assert.equal(rows.length, 11);
	assert.deepEqual(new Set(rows.map((row) => row[0])), new Set(["view", "callers", "callees"]));
	const pair = csvRows({ down: make(true) }, [0, 1]);
	assert.deepEqual([pair[0], pair[1]].map((row) => row?.slice(5, 8)), [["total (ns)", "before (ns)", "change (ns)"], [60, 30, 30]]);
});

test("what is visible is in the address", () => {
	assert.deepEqual(visibleRange({}), [0, 1]);
	assert.deepEqual(visibleRange({ x0: "0.25", x1: "0.5" }), [0.25, 0.5]);
});
