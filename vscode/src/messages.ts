// SPDX-License-Identifier: Apache-2.0
// What the page says. It shows a file that may come from anybody, so each message is checked. web/src/protocol/editor.ts has the
// other end.

export type FromPage =
	| { type: "ask"; id: number; answer: string }
	| { type: "stop"; id: number }
	| { type: "open"; file: string; line: number | null }
	| { type: "save"; name: string; text: string }
	| { type: "state"; fragment: string };

export type ToPage =
	| { type: "answer"; id: number; status: number; body: ArrayBuffer }
	| { type: "show"; fragment: string };

const ANSWER = /^[a-z]+(?:\/[a-z]+)?(?:\?[\w.~!*'()%=&-]*)?$/;
const LONGEST_ANSWER = 16000;

/** The message, or null if it is not one. */
export function readMessage(message: unknown): FromPage | null {
	if (typeof message !== "object" || message === null) return null;
	const { type, id, answer, file, line, name, text, fragment } = message as Record<string, unknown>;
	const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isSafeInteger(value) && value > 0;
	if (type === "ask" && isNumber(id) && typeof answer === "string" && answer.length <= LONGEST_ANSWER && ANSWER.test(answer)) {
		return { type, id, answer };
	}
	if (type === "stop" && isNumber(id)) return { type, id };
	if (type === "open" && typeof file === "string" && file && !file.includes("\0")) return { type, file, line: isNumber(line) ? line : null };
	if (type === "save" && typeof name === "string" && typeof text === "string") return { type, name: plainName(name), text };
	if (type === "state" && typeof fragment === "string") return { type, fragment };
	return null;
}

/** A name without a folder. */
function plainName(name: string): string {
	return name.replace(/[^\w.-]+/g, "-").replace(/^\.+/, "") || "plumb.csv";
}

/** A value of the page's state, such as its metric. */
export function stateValue(fragment: string, key: string): string | null {
	return new URLSearchParams(fragment.split("?")[1] ?? "").get(key);
}

/** The page with a search in the flame graph. */
export function flameOf(search: string, metric: string | null, window: string | null): string {
	const values = new URLSearchParams();
	if (metric) values.set("metric", metric);
	values.set("search", search);
	if (window) values.set("window", window);
	return `#1/flame?${values.toString()}`;
}

/** TEXT as an extended regular expression that matches it and nothing else. */
export function literally(text: string): string {
	return text.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&");
}
