// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { readTables } from "../src/protocol/columns";
import { write } from "./write";

const bytes = () => write("t", "a title", [
	{ name: "name", type: 1, values: ["a", "", "größer"], known: [1, 0, 1] },
	{ name: "count", unit: "ns", type: 2, values: [1, 2, -3] },
	{ name: "share", type: 3, values: [0.5, 0, 0.25], known: [1, 0, 1] },
	{ name: "is", type: 4, values: [1, 0, 1] },
	{ name: "nothing", type: 0, values: [] },
]);

test("columns are read as they were written", () => {
	const [table, second] = readTables(new Uint8Array([...bytes(), ...bytes()]));
	assert.ok(table && second);
	assert.equal(table?.title, "a title");
	assert.deepEqual([0, 1, 2].map((row) => table?.column("name").cell(row)), ["a", null, "größer"]);
	assert.deepEqual([0, 1, 2].map((row) => second?.column("count").cell(row)), [1, 2, -3]);
	assert.deepEqual([0, 1, 2].map((row) => table?.column("share").cell(row)), [0.5, null, 0.25]);
	assert.deepEqual([0, 1].map((row) => table?.column("is").cell(row)), [true, false]);
	assert.equal(table?.column("count").unit, "ns");
	assert.equal(table?.column("nothing").cell(0), null);
	assert.equal(table?.column("there is none").cell(0), null);
	assert.deepEqual([...table?.column("count").numbers() ?? []], [1, 2, -3]);
	assert.deepEqual([...table?.column("share").integers(7) ?? []], [0, 7, 0]);
	assert.ok(Number.isNaN(table?.column("share").numbers()[1]));
});

test("an answer that does not start at a multiple of 8 is read, too", () => {
	const all = bytes(), shifted = new Uint8Array(all.length + 3);
	shifted.set(all, 3);
	assert.equal(readTables(shifted.subarray(3))[0]?.column("count").number(2), -3);
});

test("each damaged answer is an error or has the old shape", () => {
	const all = bytes();
	for (let length = 1; length < all.length; length += 7) assert.throws(() => readTables(all.slice(0, length)));
	for (let at = 0; at < all.length; at++) {
		const damaged = all.slice();
		damaged[at] = 255;
		try {
			for (const table of readTables(damaged)) for (const column of table.columns) for (let row = 0; row < 3; row++) column.cell(row);
		} catch (error) {
			assert.ok(error instanceof Error);
		}
	}
});
