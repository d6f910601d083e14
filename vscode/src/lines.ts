// SPDX-License-Identifier: Apache-2.0
// From the rows of a report to lines of source files. Nothing here knows the editor.

/** A row of report?by=line, python, native or kernel, as far as it is used. */
export interface Row {
	name: string;
	kind: string;
	/** Of a native function this is its library, and source_file its file. */
	file: string | null;
	line: number | null;
	source_file: string | null;
	share: number | null;
	inclusive: Record<string, { sum: number | null } | undefined>;
	exclusive: Record<string, { sum: number | null } | undefined>;
}

export interface Report {
	metric: string;
	unit: string;
	total: { sum: number | null } | null;
	rows: Row[];
}

export interface LineValue {
	file: string;
	/** From 1; 0: the report does not say (functions). */
	line: number;
	name: string;
	/** Of the metric, with everything below; null: unknown. */
	value: number | null;
	/** Of the total, 0 to 1; null: unknown. */
	share: number | null;
	/** Why it waits, if it is GPU code with samples. */
	causes?: string[];
}

const isNative = (row: Row) => row.kind === "native" || row.kind === "inline";

/** The value of ROW, with its share of the total. What is unknown stays unknown. */
export function measured(report: Report, row: Row): { value: number | null; share: number | null } {
	const total = report.total?.sum ?? null;
	const value = (row.inclusive[report.metric] ?? row.exclusive[report.metric])?.sum ?? null;
	return { value, share: value !== null && total !== null && total > 0 ? value / total : null };
}

/** The lines of a report by line, or the functions of a report by function. */
export function linesOf(report: Report, isByLine = true): LineValue[] {
	const found = new Map<string, LineValue>();
	for (const row of report.rows) {
		const file = isNative(row) ? row.source_file : row.file;
		if (!file || (isByLine && !(row.line && row.line > 0))) continue;
		const one = { file, line: isByLine ? row.line ?? 0 : 0, name: row.name, ...measured(report, row) };
		const key = `${file}\0${isByLine ? one.line : one.name}`;
		// Two functions of one line (a comprehension) may be one within the other: the greater is shown, never their sum.
		found.set(key, greater(found.get(key), one));
	}
	return [...found.values()];
}

export function greater<T extends { value: number | null }>(one: T | undefined, other: T): T {
	return one && (one.value ?? -1) >= (other.value ?? -1) ? one : other;
}

const parts = (path: string) => path.replaceAll("\\", "/").split("/").filter((part) => part && part !== ".");

/** How many parts two paths have in common, from the end. */
export function commonSuffix(one: string, other: string): number {
	const a = parts(one), b = parts(other);
	let count = 0;
	while (count < a.length && count < b.length && a[a.length - 1 - count] === b[b.length - 1 - count]) count++;
	return count;
}

/** The path of PATHS that is OPEN: the same path, else the one with the longest common end. Two that are equally good are none. */
export function matchPath(open: string, paths: Iterable<string>): string | null {
	let best: string | null = null, most = 0, isUnique = false;
	for (const path of paths) {
		if (path === open) return path;
		const count = commonSuffix(open, path);
		if (count > most) [best, most, isUnique] = [path, count, true];
		else if (count === most && count > 0) isUnique = false;
	}
	if (!best || !isUnique) return null;
	// A name alone, such as __init__.py, says too little, unless it is all that the profile has.
	return most > 1 || parts(best).length === 1 ? best : null;
}

/** Values by file, for what the editor has open. */
export class LineIndex {
	private readonly files = new Map<string, LineValue[]>();
	private readonly byName = new Map<string, string[]>();

	constructor(lines: LineValue[]) {
		for (const line of lines) {
			const list = this.files.get(line.file);
			if (list) list.push(line);
			else {
				this.files.set(line.file, [line]);
				const name = parts(line.file).at(-1) ?? "";
				this.byName.set(name, [...(this.byName.get(name) ?? []), line.file]);
			}
		}
	}

	/** The lines of the file that is open at PATH. */
	of(path: string): LineValue[] {
		const file = matchPath(path, this.byName.get(parts(path).at(-1) ?? "") ?? []);
		return file ? this.files.get(file) ?? [] : [];
	}
}

/** How strong the background of a line is: 0 (nothing) to LEVELS - 1. */
export const LEVELS = 6;
export function levelOf(share: number | null, least: number): number | null {
	if (share === null || !(share >= least)) return null;
	// By steps of the square root, so that small parts differ.
	return Math.min(LEVELS - 1, Math.floor(Math.sqrt(Math.min(share, 1)) * LEVELS));
}
