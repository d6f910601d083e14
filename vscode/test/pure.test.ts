// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { candidates, readAddress } from "../src/address";
import { kernelsOf, placeFunctions, placeKernels, plainName } from "../src/functions";
import { commonSuffix, levelOf, LEVELS, LineIndex, linesOf, matchPath, type Report, type Row } from "../src/lines";
import { flameOf, literally, readMessage, stateValue } from "../src/messages";
import { pageHtml } from "../src/page";
import { causesOf, explained, isStall, together, waitingOf, type Why } from "../src/stalls";
import { amount, percent, visible } from "../src/words";

const row = (file: string | null, line: number | null, sum: number | null, name = "f", kind = "python"): Row =>
	({ name, kind, file: kind === "native" ? "0123abcd" : file, source_file: kind === "native" ? file : null, line, share: null, inclusive: { "gpu.time": { sum } }, exclusive: {} });
const report = (rows: Row[], total: number | null = 100): Report => ({ metric: "gpu.time", unit: "ns", total: { sum: total }, rows });

test("rows become lines; what is unknown stays unknown", () => {
	const lines = linesOf(report([row("/a/x.py", 3, 50), row("/a/x.py", 3, 60, "<listcomp>"), row("/a/x.py", 4, null), row(null, 3, 1), row("/a/x.py", null, 1)]));
	assert.deepEqual(lines, [
		{ file: "/a/x.py", line: 3, name: "<listcomp>", value: 60, share: 0.6 },
		{ file: "/a/x.py", line: 4, name: "f", value: null, share: null },
	]);
	assert.equal(linesOf(report([row("/a/x.py", 3, 50)], null))[0]?.share, null);
	assert.equal(linesOf(report([row("/a/x.py", 3, 50)], 0))[0]?.share, null);
});

test("paths match by their longest common end", () => {
	assert.equal(commonSuffix("/home/me/app/net/model.py", "/work/app/net/model.py"), 3);
	const paths = ["/work/app/net/model.py", "/work/app/old/model.py", "/lib/model.py"];
	assert.equal(matchPath("/home/me/app/net/model.py", paths), "/work/app/net/model.py");
	assert.equal(matchPath("/lib/model.py", paths), "/lib/model.py");
	assert.equal(matchPath("C:\\src\\net\\model.py", paths), "/work/app/net/model.py");
	assert.equal(matchPath("/x/model.py", paths), null); // all are equally good
	assert.equal(matchPath("/x/__init__.py", ["/y/__init__.py"]), null); // a name alone
	assert.equal(matchPath("/x/train.py", ["train.py"]), "train.py");
	assert.equal(matchPath("/x/train.py", []), null);
	const index = new LineIndex(linesOf(report([row("/work/app/net/model.py", 7, 5), row("/work/app/old/model.py", 9, 5)])));
	assert.deepEqual(index.of("/home/app/net/model.py").map((one) => one.line), [7]);
	assert.deepEqual(index.of("/home/app/net/other.py"), []);
});

test("a function is placed at its def", () => {
	const text = ["import x", "class A:", "\tdef step(self):", "\t\tpass", "class B:", "\tasync def step (self):", "\t\treturn 1", "f = lambda: 1"];
	const lines = linesOf(report([row("t.py", 4, 1, "A.step"), row("t.py", 7, 2, "B.step"), row("t.py", 8, 2, "<lambda>"), row("t.py", 1, 9, "<module>")]));
	const functions = linesOf(report([row("t.py", null, 1, "A.step"), row("t.py", null, 2, "B.step"), row("t.py", null, 2, "<lambda>"),
		row("t.py", null, 3, "never"), row("t.py", null, 9, "<module>")]), false);
	const placed = placeFunctions(functions, lines, text, true);
	assert.deepEqual(placed.map((one) => [one.name, one.line, one.value]), [["A.step", 3, 1], ["B.step", 6, 2], ["<module>", 1, 9]]);
});

test("names of native functions are as in their source", () => {
	for (const [name, plain] of [["main", "main"], ["compute(float*, int) [clone .constprop.0]", "compute"], ["void ns::A<int, B<2> >::step<float>(int) const", "step"],
		["(anonymous namespace)::run(void (*)(int))", "run"], ["app::net::forward::h0123456789abcdef", "forward"], ["A.step", "step"], ["A::~A()", "~A"],
		["std::function<int (int)>::operator()(int) const", "operator"], ["", ""]]) assert.equal(plainName(name as string), plain);
});

test("a native function is placed where it begins", () => {
	const text = ["/* compute( is below */", "static void compute(int n);", "", "static __attribute__((noinline)) void", "compute(int n)", "{", "\tif (n)", "\t\tcompute(n - 1);", "}",
		"template <class T> T ns::A<T>::step(T x) const {", "\treturn helper(x);", "}", "int a = only(1);", "int only(int x) {", "\treturn", "\t\tonly(2); }", "fn forward<T>(x: T) {"];
	const native = (line: number | null, sum: number, name: string) => row("/src/a.cu", line, sum, name, "native");
	const lines = linesOf(report([native(8, 5, "compute(int)"), native(11, 3, "float ns::A<float>::step(float) const"), native(2, 1, "gone(int)")]));
	assert.equal(lines[0]?.file, "/src/a.cu");
	const functions = linesOf(report([native(null, 5, "compute(int)"), native(null, 3, "float ns::A<float>::step(float) const"), native(null, 2, "only(int)"),
		native(null, 1, "gone(int)"), native(null, 1, "helper(float)"), native(null, 4, "app::forward::h0123456789abcdef"), native(null, 9, "only(int) [clone .cold]")]), false);
	assert.deepEqual(placeFunctions(functions, lines, text, false).map((one) => [one.name, one.line]),
		[["compute(int)", 5], ["float ns::A<float>::step(float) const", 10], ["only(int) [clone .cold]", 14], ["app::forward::h0123456789abcdef", 17]]);
});

test("kernels are placed by their name and their mark", () => {
	const kernels = kernelsOf(report([row(null, null, 10, "blur(float const*, float*, int)"), row(null, null, 20, "void scale<float>(float*)"), row(null, null, 30, "void scale<double>(double*)"),
		row(null, null, 4, "softmax_kernel"), row(null, null, 5, "host"), row(null, null, null, "unknown")]));
	const cuda = ["__global__ void blur(const float *in)", "{ host(); }", "template <class T>", "__global__", "__launch_bounds__(256)", "void", "scale(T *x)", "{}", "void host() {}", "__global__ void unknown() {}"].join("\n");
	assert.deepEqual(placeKernels(kernels, cuda).map((one) => [one.name, one.line, one.value, one.share]),
		[["blur(float const*, float*, int)", 1, 10, 0.1], ["scale", 7, 50, 0.5]]);
	const triton = ["@triton.autotune(configs=[])", "@triton.jit", "def softmax_kernel(x):", "    pass", "def host():", "    pass"].join("\n");
	assert.deepEqual(placeKernels(kernels, triton).map((one) => [one.name, one.line]), [["softmax_kernel", 3]]);
});

test("the background is stronger for more", () => {
	const levels = [0.001, 0.01, 0.05, 0.2, 0.5, 1].map((share) => levelOf(share, 0.001) as number);
	assert.deepEqual(levels, [...levels].sort());
	assert.equal(levels.at(-1), LEVELS - 1);
	assert.equal(levelOf(0.0005, 0.001), null);
	assert.equal(levelOf(null, 0), null);
	assert.equal(levelOf(NaN, 0), null);
});

test("numbers as text", () => {
	assert.deepEqual([amount(1234567, "ns"), amount(12, "ns"), amount(3 << 20, "byte"), amount(1500, "count"), amount(null, "ns"), amount(5, "ppm")],
		["1.23 ms", "12 ns", "3.00 MiB", "1500", "unknown", "5 ppm"]);
	assert.deepEqual([percent(0.1234), percent(null), percent(NaN)], ["12.3 %", "unknown", "unknown"]);
	assert.equal(visible("a\u202eb\n"), "a\\u202eb\\u000a");
});

test("only messages of the protocol are taken", () => {
	assert.deepEqual(readMessage({ type: "ask", id: 1, answer: "timeline/spans?format=columns&t0=1", more: 1 }), { type: "ask", id: 1, answer: "timeline/spans?format=columns&t0=1" });
	assert.deepEqual(readMessage({ type: "save", name: "../../.bashrc x", text: "a" }), { type: "save", name: "-..-.bashrc-x", text: "a" });
	assert.deepEqual(readMessage({ type: "open", file: "/a", line: -1 }), { type: "open", file: "/a", line: null });
	for (const bad of [null, 1, "ask", {}, { type: "ask", id: 1, answer: "../quit" }, { type: "ask", id: 1, answer: "about HTTP/1.1\r\nX: y" },
		{ type: "ask", id: 0, answer: "about" }, { type: "ask", id: 1, answer: "a/b/c" }, { type: "open", file: "a\0b" }, { type: "run", command: "x" }]) {
		assert.equal(readMessage(bad), null, JSON.stringify(bad));
	}
});

test("the state of the page and a place in it", () => {
	assert.equal(stateValue("#1/flame?metric=op.time&x0=0", "metric"), "op.time");
	assert.equal(stateValue("#1/flame", "metric"), null);
	assert.equal(flameOf(literally("A.f[0]"), "op.time", null), "#1/flame?metric=op.time&search=A%5C.f%5C%5B0%5C%5D");
});

test("which plumb, and its address", () => {
	assert.deepEqual(candidates("/opt/plumb", ["/w"], { VIRTUAL_ENV: "/v" }), ["/opt/plumb"]);
	assert.deepEqual(candidates("", ["/w"], { VIRTUAL_ENV: "/v" }), ["/w/.venv/bin/plumb", "/w/venv/bin/plumb", "/v/bin/plumb", "plumb"]);
	assert.deepEqual(readAddress("http://127.0.0.1:4711/ab-_9/\n"), { port: 4711, path: "/ab-_9/" });
	for (const bad of ["http://127.0.0.1:4711/ab", "http://example.org:1/ab/\n", ""]) assert.equal(readAddress(bad), null);
});

test("the page runs nothing but its own two files", () => {
	const html = pageHtml("N0", "https://file.test", "app.js", "app.css");
	assert.ok(html.includes("default-src 'none'; script-src 'nonce-N0'; style-src https://file.test; img-src data:;"));
	assert.equal(html.match(/<script/g)?.length, 1);
	assert.ok(!html.includes("unsafe") && !html.includes("connect-src"));
});

test("waiting of all classes is one metric, and what is unknown stays unknown", () => {
	const sums = (values: Record<string, number | null>) => Object.fromEntries(Object.entries(values).map(([name, sum]) => [name, { sum }]));
	const of = (line: number, values: Record<string, number | null>): Row => ({ ...row("/a/x.cu", line, null), inclusive: sums(values) });
	const rows = [of(3, { "stall.memory": 60, "stall.fetch": 20, "gpu.time": 9 }), of(4, { "gpu.time": 9 }), of(5, { "stall.memory": null })];
	assert.equal(waitingOf(report(rows)), 80);
	assert.equal(waitingOf(report(rows.slice(1))), null);
	const lines = linesOf(together(report(rows), 160));
	assert.deepEqual(lines.map((one) => [one.line, one.value, one.share]), [[3, 80, 0.5], [4, null, null], [5, null, null]]);
	assert.ok(isStall("stall") && isStall("stall.memory") && !isStall("gpu.time") && !isStall("stalled"));
});

test("a line has the causes of its stalls, the greatest first", () => {
	const cause = (name: string | null, line: number, samples: number) => ({ name, kind: "data", samples, evidence: null, file: line ? "/a/rows.h" : null, line: line || null, offset: 16 });
	const why: Why = { kernels: [{ stalls: [
		{ file: "/a/rows.h", line: 9, offset: 32, inlined: [{ file: "/a/x.cu", line: 3 }], samples: 90, causes: [cause("spill", 8, 30), cause(null, 0, 60)] },
		{ file: "/a/x.cu", line: 3, offset: 64, samples: 10, causes: [cause("spill", 8, 10)] },
		{ file: null, line: null, offset: 80, samples: 10, causes: [] }] }] };
	const causes = causesOf([why]);
	assert.deepEqual(causes.get("/a/x.cu\0" + "3"), ["60.0 % of the waiting: data", "40.0 % of the waiting: spill at rows.h:8"]);
	assert.equal(causes.get("/a/rows.h\0" + "9")?.length, 2);
	const lines = [{ file: "/a/x.cu", line: 3, name: "f", value: 1, share: 1 }, { file: "/a/x.cu", line: 4, name: "f", value: 1, share: 1 }];
	assert.deepEqual(explained(lines, causes).map((one) => one.causes?.length ?? 0), [2, 0]);
});
