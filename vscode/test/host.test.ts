// SPDX-License-Identifier: Apache-2.0
// The extension against a stand-in of the editor, with a real plumb: PLUMB, PROFILE and NATIVE (without Python) name them.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import * as vscode from "vscode";
import { did, documentOf, panelOf, TextEditor, Uri, window } from "../../tests/vscode-mock/vscode";
import { activate } from "../src/extension";
import { isInside } from "../src/open";

const PLUMB = process.env["PLUMB"] ?? "", PROFILE = process.env["PROFILE"] ?? "", NATIVE = process.env["NATIVE"] ?? "", CUDA = process.env["CUDA"] ?? "";
const STALLS = process.env["STALLS"] ?? "", STALLED = process.env["STALLED"] ?? ""; // samples of GPU code, and its source
const FILE = "/home/me/programs/hf_train.py"; // recorded elsewhere, below programs/
const text = Array.from({ length: 80 }, (_, line) => (line === 21 ? "def collate(rows):" : "    work()")).join("\n");
const source = new TextEditor(documentOf(FILE, text)), other = new TextEditor(documentOf("/home/me/other.py", text));
const subscriptions: { dispose(): void }[] = [];
let panel = panelOf();

async function until(is: () => unknown, what: string): Promise<void> {
	for (let tries = 0; tries < 500; tries++) {
		if (is()) return;
		await new Promise((done) => setTimeout(done, 20));
	}
	assert.fail(`it never came: ${what}`);
}

async function open(file = PROFILE) {
	panel = panelOf();
	const editor = did.editor as NonNullable<typeof did.editor>;
	await editor.resolveCustomEditor(editor.openCustomDocument(Uri.file(file)), panel);
}

async function ask(answer: string): Promise<{ status: number; body: ArrayBuffer }> {
	const id = Math.floor(Math.random() * 1e9) + 1;
	panel.say({ type: "ask", id, answer });
	const mine = () => panel.posted.find((one) => one["id"] === id) as { status: number; body: ArrayBuffer } | undefined;
	await until(mine, answer);
	return mine() as { status: number; body: ArrayBuffer };
}

before(async () => {
	assert.ok([PLUMB, PROFILE, NATIVE, CUDA].every(existsSync), "PLUMB, PROFILE, NATIVE and CUDA name the program, two profiles, and the source of the second");
	did.settings["path"] = PLUMB;
	window.visibleTextEditors.push(source, other);
	activate({ extensionUri: Uri.file("/extension"), subscriptions } as unknown as vscode.ExtensionContext);
	await open();
	await until(() => source.decorations.length, "values on lines");
});
after(() => {
	for (const one of subscriptions.reverse()) one.dispose();
});

test("the page is the bundle, and gets its answers", async () => {
	assert.ok(panel.webview.html.includes('src="file:///extension/media/app.js"'));
	assert.deepEqual(JSON.parse(JSON.stringify(panel.webview.options)).localResourceRoots.length, 1);
	const about = await ask("about");
	assert.equal(about.status, 200);
	assert.ok(JSON.parse(new TextDecoder().decode(about.body)).metrics.length > 3);
	const flame = await ask("flame?format=columns&px=400");
	assert.ok(flame.body instanceof ArrayBuffer);
	assert.equal(new TextDecoder().decode(flame.body.slice(0, 8)), "plumbcol");
	assert.equal((await ask("flame?view=none")).status, 400);
	const count = panel.posted.length;
	panel.say({ type: "ask", id: 5, answer: "../quit" });
	await ask("about");
	assert.equal(panel.posted.length, count + 1); // the wrong one has no answer
});

test("lines have values of the profile", async () => {
	const report = JSON.parse(new TextDecoder().decode((await ask("report?by=line&metric=gpu.time&window=loop&top=0")).body));
	const rows = report.rows.filter((row: { file: string | null }) => row.file?.endsWith("/hf_train.py"));
	assert.ok(rows.length > 0);
	const top = rows.reduce((most: { inclusive: Record<string, { sum: number }> }, one: typeof most) =>
		((one.inclusive["gpu.time"]?.sum ?? 0) > (most.inclusive["gpu.time"]?.sum ?? 0) ? one : most));
	const there = source.decorations.find((one) => one.range.startLine === top.line - 1);
	const share = `${(100 * top.inclusive["gpu.time"].sum / report.total.sum).toFixed(1)} %`;
	assert.ok(there?.renderOptions.after.contentText.endsWith(share), there?.renderOptions.after.contentText);
	assert.ok(there?.hoverMessage.value.includes("main loop"));
	assert.equal(other.decorations.length, 0);
});

test("a lens above a function leads to the flame graph", async () => {
	const lenses = did.lenses?.provideCodeLenses(source.document) ?? [];
	const lens = lenses.find((one) => one.range.startLine === 0);
	assert.match(lens?.command?.title ?? "", /^gpu\.time: .+ % of the main loop$/);
	assert.deepEqual(lens?.command?.arguments, ["<module>"]);
	await did.commands.get("plumb.showInFlame")?.("<module>");
	assert.equal(panel.revealed, 1);
	assert.deepEqual(panel.posted.at(-1), { type: "show", fragment: "#1/flame?search=%3Cmodule%3E" });
});

test("the metric of the page is that of the lines", async () => {
	const words = () => (did.lenses?.provideCodeLenses(source.document) ?? []).map((lens) => lens.command?.title).join();
	panel.say({ type: "state", fragment: "#1/flame?metric=op.time" });
	await until(() => words().includes("op.time"), "another metric");
	did.set("leastShare", 0);
	assert.ok(did.lenses?.provideCodeLenses(source.document).some((lens) => lens.range.startLine === 21 && lens.command?.arguments?.[0] === "collate"));
	did.set("leastShare", 0.1);
	did.answer = "gpu.time";
	await did.commands.get("plumb.chooseMetric")?.();
	assert.ok(words().includes("gpu.time") && !words().includes("op.time"));
	did.answer = undefined;
});

test("a frame opens its line, and outside the workspace only if you say so", async () => {
	did.files = [FILE, "/etc/passwd", "/home/me/programs/train.py"];
	did.folders = ["/home/me"];
	panel.say({ type: "open", file: "/srv/elsewhere/tests/accuracy/programs/hf_train.py", line: 36 });
	await until(() => did.opened.length === 1, "the file of the workspace");
	assert.deepEqual(did.opened.pop(), { path: FILE, line: 36 });
	panel.say({ type: "open", file: "/etc/passwd", line: 1 });
	await until(() => did.asked.length === 1, "a question");
	assert.match(did.asked.pop() ?? "", /^\/etc\/passwd is outside the workspace/);
	assert.equal(did.opened.length, 0);
	did.answer = "Open";
	panel.say({ type: "open", file: "/etc/passwd", line: null });
	await until(() => did.opened.length === 1, "the file that was allowed");
	did.answer = undefined;
	did.asked.pop();
	panel.say({ type: "open", file: "/nowhere/x.py", line: 3 });
	await until(() => did.asked.length === 1, "why not");
	assert.match(did.asked.pop() ?? "", /not on this machine/);
	assert.ok(isInside("/home/me/a", ["/home/me"]) && isInside("/home/me/..a", ["/home/me"]));
	assert.ok(!isInside("/home/me2/a", ["/home/me"]) && !isInside("/home", ["/home/me"]) && !isInside("/a", []));
});

test("a table is saved where you say", async () => {
	panel.say({ type: "save", name: "kernels.csv", text: "a,b\r\n" });
	await until(() => did.saved["/home/me/kernels.csv"], "the file");
	assert.equal(did.saved["/home/me/kernels.csv"], "a,b\r\n");
});

test("values go when you change the file, or switch them off", async () => {
	did.set("showLines", false);
	assert.equal(source.decorations.length, 0);
	did.set("showLines", true);
	assert.ok(source.decorations.length > 0);
	did.editAt(other.document as never);
	assert.ok(source.decorations.length > 0);
	did.editAt(source.document as never);
	assert.equal(source.decorations.length, 0);
	assert.deepEqual(did.lenses?.provideCodeLenses(source.document), []);
});

test("a program without Python has values on its lines, and lenses above its functions and kernels", async () => {
	const text = readFileSync(CUDA, "utf8"), lines = text.split("\n");
	const cuda = new TextEditor(documentOf("/home/me/programs/stages.cu", text));
	window.visibleTextEditors.push(cuda);
	await open(NATIVE);
	await until(() => cuda.decorations.length, "values on native lines");
	const inside = lines.findIndex((line) => line.includes("compute(a, b, n);"));
	assert.ok(cuda.decorations.some((one) => one.range.startLine === inside));
	const found = (did.lenses?.provideCodeLenses(cuda.document) ?? []).map((lens) => [lines[lens.range.startLine]?.replace(/\(.*/, ""), lens.command?.arguments?.[0]]);
	assert.deepEqual(found.sort(), [["__global__ void blur", "blur(float const*, float*, int)"], ["__global__ void scale", "scale(float*, int)"],
		["int main", "main"], ["static __attribute__", "compute(float*, float*, int) [clone .constprop.0]"]]);
	panel.close();
	window.visibleTextEditors.pop();
	await until(() => source.decorations.length, "the values of the profile before");
});

test("what cannot be opened says why", async () => {
	const folder = mkdtempSync(join(tmpdir(), "plumb-"));
	writeFileSync(join(folder, "no.plumb"), "nothing");
	await assert.rejects(open(join(folder, "no.plumb")), /no\.plumb/);
	did.settings["path"] = join(folder, "none");
	await assert.rejects(open(), /correct the setting plumb\.path/);
	did.settings["path"] = PLUMB;
});

test("with its panel, plumb ends", async () => {
	await open();
	await until(() => source.decorations.length, "values again");
	const first = panel;
	first.close();
	assert.equal((await ask("about")).status, 0); // plumb has ended
});

test("waiting GPU code is on its lines, with its causes", async () => {
	const code = new TextEditor(documentOf(STALLED, readFileSync(STALLED, "utf8")));
	window.visibleTextEditors.push(code);
	await open(STALLS);
	did.answer = "stall";
	await did.commands.get("plumb.chooseMetric")?.();
	did.answer = undefined;
	await until(() => code.decorations.some((one) => one.range.startLine === 24), "the line that waits");
	const hover = code.decorations.find((one) => one.range.startLine === 24)?.hoverMessage.value ?? "";
	assert.match(hover, /plumb: stall \(.*: 420 samples?, 100\.0 %/);
	assert.match(hover, /of the waiting: pointer indirection at stalls\.cu:25/);
	window.visibleTextEditors.pop();
});
