// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import type { Finding } from "../src/protocol/types";
import { findingWords, Marks } from "../src/shell/marks";

const finding = (id: string, frame: Finding["frame"], evidence: Record<string, unknown> = {}): Finding => ({ id, rule: id, severity: "note", title: `title of ${id}`, advice: null,
	saving_ns: null, window: null, confidence: null, evidence, context: frame ? ["main", frame.name] : [], frame });
const frame = (kind: string, name: string, context: number, file: string | null = null, line: number | null = null) => ({ id: 100 + context, kind, name, file, line, context });
const ids = (found: readonly Finding[]) => found.map((one) => one.id).join(" ");

const marks = new Marks([
	finding("hot", frame("kernel", "gemm", 7), { name: "gemm", user_file: "/a/train.py", user_line: 12 }),
	finding("copy", frame("copy", "copy pageable→device", 9), { user_file: "/a/train.py", user_line: 12 }),
	finding("line", frame("python", "step", 3, "/a/train.py", 20), { name: "step" }),
	finding("short", frame("module", "norm", 5), { names: [{ name: "add", ns: 4 }, { name: "gemm", ns: 2 }] }),
	finding("run", null, { kernels: 4, names: null }),
	finding("ranks", frame("kernel", "late", 11), { operation: "AllReduce", ranks: [{ rank: 0, late_times: 0 }, { rank: 1, late_times: 9 }] }),
]);

test("rows are found by what they are", () => {
	assert.equal(ids(marks.row("kernel", { name: "gemm" })), "hot short");
	assert.equal(ids(marks.row("kernel", { name: "add" })), "short");
	assert.equal(ids(marks.row("kernel", { name: "copy pageable→device" })), "copy");
	assert.equal(ids(marks.row("operator", { name: "gemm" })), "");
	assert.equal(ids(marks.row("module", { name: "norm" })), "short");
	assert.equal(ids(marks.layer("norm")), "short");
	assert.equal(ids(marks.row("line", { file: "/a/train.py", line: 12 })), "hot copy");
	assert.equal(ids(marks.row("line", { file: "/a/train.py", line: 20 })), "line");
	assert.equal(ids(marks.row("line", { file: "/b/train.py", line: 12 })), "");
	assert.equal(ids(marks.row("python", { file: "/a/train.py", name: "step" })), "line");
	assert.equal(ids(marks.row("python", { file: null, name: "step" })), "");
	assert.equal(ids(marks.row("line", { file: null, line: null })), "");
	assert.equal(ids(marks.frame(103)), "line");
	assert.equal(ids(marks.wait(1, "AllReduce")), "ranks");
	assert.equal(ids(marks.wait(0, "AllReduce")), "");
});

test("a span is found by its place, or by its name if the finding is about all of that name", () => {
	assert.equal(ids(marks.span(7, 4, "gemm")), "hot");
	assert.equal(ids(marks.span(8, 4, "gemm")), "hot");
	assert.equal(ids(marks.span(8, 2, "gemm")), "");
	assert.equal(ids(marks.span(9, 4, "copy pageable→device")), "copy");
	assert.equal(ids(marks.span(10, 4, "copy pageable→device")), "");
	assert.equal(ids(marks.span(-1, 4, "add")), "");
});

test("the words name the findings, the first ones of many", () => {
	const found = ["a", "b", "c", "d"].map((id) => finding(id, null));
	assert.equal(findingWords([]), "");
	assert.equal(findingWords(found.slice(0, 1)), "finding: title of a");
	assert.equal(findingWords(found), "4 findings: title of a; title of b; title of c; and 1 more");
	assert.ok(new Marks([]).isEmpty);
});
