// SPDX-License-Identifier: Apache-2.0
// Where functions and kernels begin in a source file. The profile has measured lines and names; the text has the rest. Nothing here
// knows the editor.
import { greater, measured, type LineValue, type Report } from "./lines";

/** What is the same in a name of a profile and in the source: "step" of "A.step", "ns::A<int>::step(int) [clone .cold]". */
export function plainName(name: string): string {
	let plain = name.replace(/ \[clone [^\]]*\]/g, "").replace(/\(anonymous namespace\)|\{lambda[^}]*\}/g, "");
	for (let before = ""; before !== plain;) {
		before = plain;
		plain = plain.replace(/<[^<>]*>|\([^()]*\)/g, "");
	}
	plain = plain.replace(/::h[0-9a-f]{16}$/, "").replace(/ const$/, "").trim();
	return /^[\w$~]+/.exec(plain.split(/::|\.| /).at(-1) ?? "")?.[0] ?? "";
}

const escaped = (name: string) => name.replace(/[$]/g, "\\$");

const NOT_FIRST = "(?:return|if|for|while|else|switch|case|throw|new)\\b|//|/?\\*|#";

/** What a line looks like in which NAME begins. A call ends with a semicolon, or is part of a statement. */
function beginning(name: string, isPython: boolean): (text: string) => boolean {
	if (isPython) {
		const begin = new RegExp(`^\\s*(?:async\\s+)?def\\s+${escaped(name)}\\s*[\\[(]`);
		return (text) => begin.test(text);
	}
	const begin = new RegExp(`^(?!\\s*(?:${NOT_FIRST}))[^=;()"]*(?<![\\w.>$])${escaped(name)}\\s*(?:<[^()]*>)?\\s*\\(`);
	return (text) => begin.test(text.replace(/__\w+__\s*\(+[^()]*\)+/g, "")) && !/^[^{]*;/.test(text);
}

/**
 * FUNCTIONS of a file with the lines where they begin: upwards from the first measured line of each. A native function without a measured
 * line is where the file has its only beginning. Functions that are not found are left out; of two at one line the greater is taken.
 */
export function placeFunctions(functions: LineValue[], lines: LineValue[], text: string[], isPython: boolean): LineValue[] {
	const placed = new Map<number, LineValue>();
	for (const one of functions) {
		const line = placeOf(one.name, lines, text, isPython);
		if (line) placed.set(line, greater(placed.get(line), { ...one, line }));
	}
	return [...placed.values()];
}

function placeOf(name: string, lines: LineValue[], text: string[], isPython: boolean): number | null {
	const first = Math.min(...lines.filter((line) => line.name === name).map((line) => line.line));
	const isMeasured = Number.isFinite(first);
	if (isPython && name === "<module>") return isMeasured ? 1 : null;
	const plain = plainName(name);
	if (!plain || (isPython && !isMeasured)) return null;
	const begins = beginning(plain, isPython);
	if (isMeasured) {
		for (let line = first; line > 0; line--) if (begins(text[line - 1] ?? "")) return line;
		return null;
	}
	const found = text.flatMap((one, index) => (begins(one) ? [index + 1] : []));
	return found.length === 1 ? found[0] as number : null;
}

/** The kernels of a report by their plain names. Kernels do not contain each other, so those of one name (of a template) add up. */
export function kernelsOf(report: Report): Map<string, LineValue> {
	const found = new Map<string, LineValue>();
	for (const row of report.rows) {
		const key = plainName(row.name), before = found.get(key), now = measured(report, row);
		if (!key || now.value === null) continue;
		if (!before) found.set(key, { file: "", line: 0, name: row.name, ...now });
		else found.set(key, { ...before, name: key, value: (before.value ?? 0) + now.value,
			share: before.share === null || now.share === null ? null : before.share + now.share });
	}
	return found;
}

const KERNELS = [
	/__global__\b[^;{}=]*?\bvoid\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(/dg, // CUDA and HIP
	/^[ \t]*@[\w.]*\bjit\b.*\n(?:[ \t]*@.*\n)*[ \t]*def[ \t]+(\w+)[ \t]*\(/dgm, // Triton and Numba
];

/** The kernels that begin in TEXT. A profile does not say in which file a kernel is, but its name and its mark do. */
export function placeKernels(kernels: Map<string, LineValue>, text: string): LineValue[] {
	return KERNELS.flatMap((begin) => [...text.matchAll(begin)].flatMap((match) => {
		const one = kernels.get(match[1] ?? "");
		if (!one) return [];
		const at = (match as RegExpMatchArray & { indices: [number, number][] }).indices[1]?.[0] ?? 0;
		return [{ ...one, line: text.slice(0, at).split("\n").length }];
	}));
}
