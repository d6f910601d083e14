// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { Editor, type Port } from "../src/protocol/editor";
import { LiveSource, NoAnswer } from "../src/protocol/source";
import { write } from "./write";

const text = (words: string) => new TextEncoder().encode(words).buffer as ArrayBuffer;

function opened() {
	const said: Record<string, unknown>[] = [];
	let state: unknown;
	const port: Port = { postMessage: (message) => said.push(message as Record<string, unknown>), getState: () => state, setState: (to) => { state = to; } };
	const editor = new Editor(port);
	return { said, editor, source: new LiveSource((key, signal) => editor.ask(key, signal), editor) };
}

async function failure(of: Promise<unknown>): Promise<Error> {
	try {
		await of;
	} catch (error) {
		return error as Error;
	}
	throw new Error("it did not fail");
}

test("answers come by messages, in any order", async () => {
	const { said, editor, source } = opened();
	const rows = source.tables("flame", { px: 100 }), about = source.json<{ schema: number }>("about");
	assert.deepEqual(said, [{ type: "ask", id: 1, answer: "flame?format=columns&px=100" }, { type: "ask", id: 2, answer: "about" }]);
	editor.take({ type: "answer", id: 2, status: 200, body: text('{"schema": 1}') });
	const table = write("t", "", [{ name: "x", type: 2, values: [7] }]);
	editor.take({ type: "answer", id: 1, status: 200, body: table.slice().buffer as ArrayBuffer });
	assert.equal((await about).schema, 1);
	assert.equal((await rows)[0]?.column("x").number(0), 7);
});

test("a cancelled question is taken back", async () => {
	const { said, editor, source } = opened();
	const stop = new AbortController();
	const asked = source.json("overview", {}, stop.signal);
	stop.abort();
	assert.equal((await failure(asked)).name, "AbortError");
	assert.deepEqual(said.at(-1), { type: "stop", id: 1 });
	editor.take({ type: "answer", id: 1, status: 200, body: text("{}") }); // too late
	const again = source.json("overview");
	editor.take({ type: "answer", id: 2, status: 200, body: text('{"a": 2}') });
	assert.deepEqual(await again, { a: 2 });
});

test("why there is no answer", async () => {
	const { editor, source } = opened();
	const said = source.json("iters"), line = source.json("flame"), ended = source.json("about");
	editor.take({ type: "answer", id: 1, status: 404, body: text('{"why": "no spans", "remedy": "plumb run --trace"}') });
	editor.take({ type: "answer", id: 2, status: 400, body: text("flame: no view x\n") });
	editor.take({ type: "answer", id: 3, status: 0, body: new ArrayBuffer(0) });
	const why = await failure(said) as NoAnswer;
	assert.deepEqual([why.message, why.remedy, why.status], ["no spans", "plumb run --trace", 404]);
	assert.equal((await failure(line)).message, "flame: no view x");
	assert.ok((await failure(ended)).message.includes("it has ended"));
});

test("the editor keeps the state, and shows a place", () => {
	const { said, editor } = opened();
	assert.equal(editor.kept(), "");
	editor.keep("#1/kernels");
	assert.equal(editor.kept(), "#1/kernels");
	assert.deepEqual(said, [{ type: "state", fragment: "#1/kernels" }]);
	let shown = "";
	editor.take({ type: "show", fragment: "#1/early" });
	editor.onShow((fragment) => { shown = fragment; });
	assert.equal(shown, "#1/early");
	editor.onShow((fragment) => { shown = fragment; });
	editor.take({ type: "show", fragment: "#1/flame?search=x" });
	editor.take(null);
	assert.equal(shown, "#1/flame?search=x");
});
