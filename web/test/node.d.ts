// SPDX-License-Identifier: Apache-2.0
declare module "node:test" {
	export default function test(name: string, act: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
	const assert: {
		equal(a: unknown, b: unknown, words?: string): void;
		deepEqual(a: unknown, b: unknown, words?: string): void;
		ok(a: unknown, words?: string): void;
		throws(act: () => unknown, words?: RegExp): void;
	};
	export default assert;
}
