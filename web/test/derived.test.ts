// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { readTables, type Table } from "../src/protocol/columns";
import { baseOf, deriveFlame } from "../src/protocol/derived";
import type { Query } from "../src/protocol/query";
import { FINDING, FUSED } from "../src/draw/flame";
import { write } from "./write";

type Boxes = Map<number, (number | string)[]>;

/** Paths as numbers: that of the path above, and the last step, have one. Whole paths as text would take most of the test's time. */
const paths = new Map<string, number>();

function pathOf(above: number, step: string): number {
	const key = `${above}/${step}`, known = paths.get(key) ?? paths.size + 1;
	paths.set(key, known);
	return known;
}

function textOf(path: number): string {
	const [key] = [...paths].find((one) => one[1] === path) ?? ["/?"], [, above, step] = /^(\d*)\/(.*)$/su.exec(key) ?? [];
	return above && above !== "0" ? `${textOf(Number(above))}/${step}` : `${step}`;
}

/** By path: what a box says, and last its flags. Siblings that are equally wide may be in any order. */
function boxesOf(boxes: Table): Boxes {
	const column = (name: string) => boxes.column(name).numbers(), found: Boxes = new Map(), pathOfNode = new Map<number, number>();
	const node = column("node"), parent = column("parent"), x0 = column("x0"), x1 = column("x1"), flags = column("flags");
	const frame = boxes.column("frame"), name = boxes.column("name");
	const rest = ["depth", "layer", "value", "self", "many", "frame"].map(column);
	for (let row = 0; row < boxes.rows; row++) {
		const path = pathOf(pathOfNode.get(parent[row] as number) ?? 0, `${frame.number(row)} ${name.text(row)}`);
		pathOfNode.set(node[row] as number, path);
		if (found.has(path)) assert.ok(false, textOf(path));
		found.set(path, [...rest.map((one) => one[row] as number), ((x1[row] as number) - (x0[row] as number)).toFixed(9), flags[row] as number]);
	}
	return found;
}

function totalOf(total: Table): unknown[] {
	return ["value", "self", "unit", "metric", "depth", "nodes", "cut"].map((name) => total.column(name).cell(0));
}

function check([made, madeTotal]: Table[], [want, wantTotal]: Table[], what: string, hides: boolean): void {
	if (!made || !madeTotal || !want || !wantTotal) throw new Error("no table");
	assert.deepEqual(totalOf(madeTotal), totalOf(wantTotal), what);
	const ours = boxesOf(made), theirs = boxesOf(want);
	assert.equal(ours.size, theirs.size, what);
	for (const [path, box] of theirs) {
		const own = ours.get(path) ?? [], flags = box.pop() as number, has = own.pop() as number;
		if (JSON.stringify(own) !== JSON.stringify(box)) assert.deepEqual(own, box, `${what} ${textOf(path)}`);
		// A finding, or what compiled code was made from, may be of a hidden frame that holds nothing, which no answer has.
		const hidden = hides && (has & flags) === has && (flags & ~has & ~(FINDING | FUSED)) === 0;
		if (has !== flags && !hidden) assert.ok(false, `${what} ${textOf(path)}: ${has} ${flags}`);
	}
	const starts = made.column("x0").numbers(), depth = made.column("depth").integers();
	for (let row = 1; row < made.rows; row++) {
		if ((depth[row] as number) <= (depth[row - 1] as number) && (starts[row] as number) < (starts[row - 1] as number)) assert.ok(false, what);
	}
}

/** PLUMB_DERIVED names a list of answers that plumb gave: the top-down graph, and what another query had to be. */
test("what the page makes is what plumb answers", { skip: !process.env["PLUMB_DERIVED"] }, () => {
	const list = JSON.parse(readFileSync(process.env["PLUMB_DERIVED"] as string, "utf8")) as { what: string; query: Query; base: string; frames: string; want: string }[];
	const read = (file: string) => readTables(new Uint8Array(readFileSync(file)));
	assert.ok(list.length > 10);
	for (const { what, query, base, frames, want } of list) {
		const [boxes, total] = read(base), [files] = read(frames);
		assert.ok(baseOf({ ...query, view: query["view"] ?? "down", layers: query["layers"] ?? "all" }));
		check(deriveFlame(boxes as Table, total as Table, files as Table, query), read(want), what, "layers" in query || "hide" in query);
	}
});

test("merged boxes count as the widest of them", () => {
	// a: 60, of which b has 30 with two narrow ones merged into it, and c (native) 10.
	const boxes = write("flame", "", [
		{ name: "node", type: 2, values: [1, 2, 3] }, { name: "parent", type: 2, values: [0, 1, 1], known: [0, 1, 1] }, { name: "depth", type: 2, values: [0, 1, 1] },
		{ name: "x0", type: 3, values: [0, 0, 0.5] }, { name: "x1", type: 3, values: [1, 0.5, 0.7] }, { name: "name", type: 1, values: ["a", "b [backward]", "c"] },
		{ name: "layer", type: 2, values: [0, 2, 3] }, { name: "value", type: 3, values: [60, 30, 10] }, { name: "self", type: 3, values: [20, 12, 10] },
		{ name: "many", type: 2, values: [1, 3, 1] }, { name: "flags", type: 2, values: [0, 64, 1] }, { name: "frame", type: 2, values: [1, 2, 3] },
	]);
	const total = write("flame.total", "", [{ name: "value", type: 3, values: [60] }, { name: "self", type: 3, values: [0] }, { name: "unit", type: 1, values: ["ns"] }, { name: "metric", type: 1, values: ["op.time"] }]);
	const tables = readTables(new Uint8Array([...boxes, ...total])), derive = (query: Query) => {
		const made = deriveFlame(tables[0] as Table, tables[1] as Table, null, query)[0] as Table;
		return Array.from({ length: made.rows }, (_, row) => [made.column("name").text(row), made.column("value").number(row), made.column("self").number(row), made.column("many").number(row)]);
	};
	assert.deepEqual(derive({ layers: "python,operator" }), [["a", 60, 30, 1], ["b [backward]", 30, 30, 3]]);
	assert.deepEqual(derive({ layers: "operator" }), [["b [backward]", 30, 30, 3]]);
	assert.deepEqual(derive({ view: "callers", of: "3" }), [["c", 10, 0, 1], ["a", 10, 10, 1]]);
	assert.deepEqual(derive({ view: "callees", of: 1 }), [["a", 60, 20, 1], ["b", 30, 30, 3], ["c", 10, 10, 1]]);
	assert.throws(() => derive({ hide: "x" }), /does not know the files/u);
	assert.equal(baseOf({ view: "up", metric: "op.time" }), null);
	assert.equal(baseOf({ view: "up", layers: "gpu", recursion: "collapse" }), null);
	assert.deepEqual(baseOf({ view: "callers", of: 3, file: 1, window: "all" }), { file: 1, window: "all" });
});
