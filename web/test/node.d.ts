// SPDX-License-Identifier: Apache-2.0
declare module "node:test" {
	export default function test(name: string, act: () => void | Promise<void>): void;
	export default function test(name: string, options: { skip?: boolean }, act: () => void | Promise<void>): void;
}
declare module "node:fs" {
	export function readFileSync(path: string): Uint8Array;
	export function readFileSync(path: string, encoding: "utf8"): string;
}
declare const process: { env: Record<string, string | undefined> };
declare module "node:assert/strict" {
	const assert: {
		equal(a: unknown, b: unknown, words?: string): void;
		deepEqual(a: unknown, b: unknown, words?: string): void;
		ok(a: unknown, words?: string): void;
		throws(act: () => unknown, words?: RegExp): void;
	};
	export default assert;
}
