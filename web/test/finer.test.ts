// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { Finer, type Covering } from "../src/state/finer";

Object.assign(globalThis, { window: globalThis });
const soon = (ms = 90) => new Promise((resolve) => setTimeout(resolve, ms));

function make(isOffline = false, fails = () => false) {
	const asked: string[] = [], errors: string[] = [];
	const finer = new Finer<Covering>({
		all: [0, 1], isOffline, onAnswer: () => undefined, onError: (error) => errors.push(error.message),
		ask: async (range, px) => {
			asked.push(`${range[0].toFixed(3)}-${range[1].toFixed(3)} ${px}`);
			if (fails()) throw new Error("no answer");
			return { range, px };
		},
	});
	return { finer, asked, errors };
}

test("first the whole, then a part with a margin, and nothing again that is fine enough", async () => {
	const { finer, asked } = make();
	finer.need(0.25, 0.375, 1000);
	await soon(20);
	assert.deepEqual(asked, ["0.000-1.000 1000"]);
	assert.deepEqual(finer.best(0.25, 0.375)?.range, [0, 1]); // until the part is there
	await soon();
	assert.deepEqual(asked.slice(1), ["0.188-0.438 2000"]);
	assert.deepEqual(finer.best(0.26, 0.38)?.range, [0.1875, 0.4375]);
	finer.need(0.3125, 0.4375, 1000);
	await soon();
	assert.equal(asked.length, 2);
	assert.deepEqual(finer.best(0.1, 0.38)?.range, [0, 1]); // beside the part
	finer.end();
});

test("only the newest need is asked for", async () => {
	const { finer, asked } = make();
	finer.need(0, 1, 1000);
	await soon(20);
	for (const from of [0.125, 0.25, 0.5]) finer.need(from, from + 0.125, 1000);
	await soon();
	assert.deepEqual(asked.slice(1), ["0.438-0.688 2000"]);
	finer.end();
});

test("offline there is one answer", async () => {
	const { finer, asked } = make(true);
	finer.need(0.4, 0.5, 1000);
	await soon();
	assert.deepEqual(asked, ["0.000-1.000 1000"]);
	finer.end();
});

test("an error is told, and the same is asked for again when it is needed", async () => {
	let broken = true;
	const { finer, asked, errors } = make(false, () => broken);
	finer.need(0, 1, 1000);
	await soon(20);
	assert.deepEqual(errors, ["no answer"]);
	broken = false;
	finer.need(0, 1, 1000);
	await soon(20);
	assert.equal(asked.length, 2);
	assert.ok(finer.best(0, 1));
	finer.end();
});
