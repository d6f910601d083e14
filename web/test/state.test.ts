// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { amount, percent, short, visible } from "../src/draw/words";
import { canonical } from "../src/protocol/query";
import { orderRows } from "../src/shell/table";
import { csvField } from "../src/shell/parts";
import { lacks, pageOf, pages, register } from "../src/shell/registry";
import { change, format, parse, turn } from "../src/state/fragment";

test("a link brings the state back", () => {
	const state = { page: "flame", values: { search: "a&b=c #%ü", x0: "0.25" } };
	assert.deepEqual(parse(format(state)), state);
	assert.equal(format({ page: "flame", values: {} }), "#1/flame");
	assert.deepEqual(parse(""), { page: "", values: {} });
});

test("older links are upgraded, one version after the other", () => {
	const upgrades = {
		0: (state: { page: string; values: Record<string, string> }) => state,
		1: (state: { page: string; values: Record<string, string> }) => ({ ...state, page: `${state.page}-2` }),
		2: (state: { page: string; values: Record<string, string> }) => change(state, { three: "3" }),
	};
	assert.deepEqual(parse("#1/flame?a=1", upgrades, 3), { page: "flame-2", values: { a: "1", three: "3" } });
	assert.deepEqual(parse("#3/flame?a=1", upgrades, 3), { page: "flame", values: { a: "1" } });
	assert.deepEqual(parse("flame", upgrades, 1), { page: "flame", values: {} });
});

test("another page keeps what all share", () => {
	const state = { page: "flame", values: { metric: "op.time", x0: "0.5" } };
	assert.deepEqual(turn(state, "kernels", { sort: "name" }), { page: "kernels", values: { metric: "op.time", sort: "name" } });
});

test("a canonical query is sorted and has no defaults", () => {
	assert.equal(canonical("flame", { window: "loop", file: 0, metric: "gpu.time", view: "down", search: "a b&c" }), "flame?metric=gpu.time&search=a%20b%26c&window=loop");
	assert.equal(canonical("tables", { kind: ["A2", "A3"] }), "tables?kind=A2&kind=A3");
	assert.equal(canonical("about"), "about");
});

test("amounts have three digits and a unit; unknown is unknown", () => {
	assert.deepEqual([12_700_000, 1.5e9, 999, 61e9, 0].map((value) => amount(value, "ns")), ["12.7 ms", "1.50 s", "999 ns", "1.02 min", "0 s"]);
	assert.deepEqual([1536, 360430376].map((value) => amount(value, "byte")), ["1.50 KiB", "344 MiB"]);
	assert.equal(amount(5616, "count"), "5,616");
	assert.equal(amount(null, "ns"), "unknown");
	assert.deepEqual([percent(0.2167), percent(NaN), percent(0.0001)], ["21.7 %", "unknown", "< 0.1 %"]);
});

test("what turns or hides text is shown", () => {
	assert.equal(visible("a\u202eb\u0000\u200bc<b>"), "a\\u{202e}b\\u{0}\\u{200b}c<b>");
});

test("signatures are short", () => {
	assert.equal(short("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, float)"),
		"vectorized_elementwise_kernel<4, FillFunctor<…>, array<…> >");
	assert.equal(short("aten::mm"), "aten::mm");
	assert.equal(short("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"), "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
	assert.equal(short("cublas::gemm_of_many_parts(float const*, int)"), "cublas::gemm_of_many_parts");
});

test("rows are sorted and filtered; unknown comes last", () => {
	const rows: [string, number | null][] = [["b x", 2], ["a y", null], ["c x", 3]];
	const columns = [{ id: "name", title: "", isNumber: false }, { id: "n", title: "", isNumber: true }];
	const cell = (row: number, column: number) => rows[row]?.[column] ?? null;
	assert.deepEqual(orderRows(3, cell, columns, "-n", ""), [2, 0, 1]);
	assert.deepEqual(orderRows(3, cell, columns, "n", ""), [0, 2, 1]);
	assert.deepEqual(orderRows(3, cell, columns, "name", "X"), [0, 2]);
});

test("a name is no formula in a spreadsheet", () => {
	assert.deepEqual([csvField('=1"'), csvField("a,b"), csvField(-1), csvField(null)], [`"'=1"""`, '"a,b"', "-1", ""]);
});

test("a page registers once and says what it needs", () => {
	const page = { id: "mine", title: "Mine", key: "m", needs: { spans: "plumb run --trace -- PROGRAM" }, follows: [], make: () => null };
	register(page);
	assert.equal(pageOf("mine"), page);
	assert.equal(pages().length, 1);
	assert.throws(() => register(page), /registered already/);
	assert.deepEqual(lacks(page, { has: { spans: false } }), { need: "spans", remedy: "plumb run --trace -- PROGRAM" });
	assert.equal(lacks(page, { has: { spans: true } }), null);
});
