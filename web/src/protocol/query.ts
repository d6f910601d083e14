// SPDX-License-Identifier: Apache-2.0
// The query of an answer. Its canonical form (keys sorted, defaults left out, percent-encoded) is also its key in the caches and in
// a page that holds its answers.

export type Query = Record<string, string | number | null | undefined | string[]>;

/** Values that say nothing: an answer without them is the same. */
const DEFAULTS: Record<string, string> = {
	file: "0", view: "down", format: "json", phase: "joined", layers: "python,module,operator,native,gpu,other", x0: "0", x1: "1",
	level: "0", width: "after",
};

export function canonical(answer: string, query: Query = {}): string {
	const parts: string[] = [];
	for (const key of Object.keys(query).sort()) {
		const value = query[key];
		for (const one of Array.isArray(value) ? value : [value]) {
			if (one === null || one === undefined || one === "" || String(one) === DEFAULTS[key]) continue;
			parts.push(`${encodeURIComponent(key)}=${encodeURIComponent(String(one))}`);
		}
	}
	return parts.length ? `${answer}?${parts.join("&")}` : answer;
}
