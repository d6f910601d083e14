// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { AFTER, BEFORE, Flame, MATCH } from "../src/draw/flame";
import { treeOrder } from "../src/pages/flame/boxes";
import { readTables } from "../src/protocol/columns";
import { write } from "./write";

// a: 0 to 0.6, with b (0 to 0.4) and c (0.4 to 0.6); d: 0.6 to 1; b has e (0.1 to 0.2).
function make(pair = false): Flame {
	const before = pair ? [{ name: "before", type: 3, values: [30, 50, 40, 0, 0] }, { name: "before_self", type: 3, values: [0, 50, 40, 0, 0] }] : [];
	const flags = pair ? [AFTER | BEFORE, AFTER | BEFORE, AFTER | BEFORE, AFTER, AFTER | BEFORE] : [0, 0, 0, 0, 0];
	const boxes = write("flame", "", [...before,
		{ name: "node", type: 2, values: [1, 2, 3, 4, 5] }, { name: "parent", type: 2, values: [0, 0, 1, 1, 3], known: [0, 0, 1, 1, 1] },
		{ name: "depth", type: 2, values: [0, 0, 1, 1, 2] },
		{ name: "x0", type: 3, values: [0, 0.6, 0, 0.4, 0.1] }, { name: "x1", type: 3, values: [0.6, 1, 0.4, 0.6, 0.2] },
		{ name: "name", type: 1, values: ["a", "d", "b", "c", "ab"] }, { name: "layer", type: 2, values: [0, 0, 2, 2, 4] },
		{ name: "value", type: 3, values: [60, 40, 40, 20, 10] }, { name: "self", type: 3, values: [0, 40, 30, 20, 10] },
		{ name: "many", type: 2, values: [1, 1, 1, 1, 1] }, { name: "flags", type: 2, values: flags }, { name: "frame", type: 2, values: [1, 2, 3, 4, 5] },
	]);
	const total = write("flame.total", "", [{ name: "value", type: 3, values: [100] }, { name: "unit", type: 1, values: ["ns"] }, { name: "metric", type: 1, values: ["op.time"] }]);
	const [table, totals] = readTables(new Uint8Array([...boxes, ...total]));
	if (!table || !totals) throw new Error("no table");
	return new Flame(table, totals, [0, 1], 1000);
}

test("boxes are found where they lie", () => {
	const flame = make(), name = (box: number) => (box < 0 ? "" : flame.name(box));
	assert.equal(flame.rows, 3);
	assert.deepEqual([flame.at(0, 0.5), flame.at(0, 0.7), flame.at(1, 0.45), flame.at(2, 0.15), flame.at(1, 0.7), flame.at(2, 0.25), flame.at(9, 0)].map(name),
		["a", "d", "c", "ab", "", "", ""]);
});

test("keys go to callers, callees and neighbours", () => {
	const flame = make();
	const b = flame.find(3);
	assert.deepEqual([flame.parentOf(b), flame.childOf(b), flame.besides(b, 1), flame.besides(b, -1)].map((box) => (box < 0 ? "" : flame.name(box))), ["a", "ab", "c", ""]);
});

test("the table has each box after its caller", () => {
	const flame = make();
	assert.deepEqual(treeOrder(flame).map((box) => flame.name(box)), ["a", "b", "ab", "c", "d"]);
});

test("a search counts no part twice", () => {
	const flame = make();
	assert.ok(flame.search("a|c"));
	assert.equal(flame.total.matched, 60);
	assert.deepEqual([0, 1, 2, 3, 4].map((box) => (flame.flags[box] as number) & MATCH), [MATCH, 0, 0, MATCH, MATCH]);
	assert.ok(!make().search("("));
});

test("boxes of two profiles say how they changed", () => {
	const flame = make(true);
	assert.deepEqual([0, 1, 2, 3, 4].map((box) => flame.changeWords(box)), ["+100.0 %", "−20.0 %", "0.0 %", "only after", "0 before"]);
	assert.deepEqual([...flame.colour], [8, 1, 4, 8, 8]);
	assert.equal(flame.label(0), "+100.0 % a");
	assert.equal(make().label(0), "a");
});
