// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { MATCH } from "../src/draw/flame";
import { treeOrder } from "../src/pages/flame/boxes";
import { make } from "./flames";

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
