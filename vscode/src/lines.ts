// SPDX-License-Identifier: Apache-2.0
// From the rows of a report to lines of source files. Nothing here knows the editor.

/** A row of report?by=line or by=python, as far as it is used. */
export interface Row {
	name: string;
	kind: string;
	file: string | null;
	line: number | null;
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
}

/** The lines of a report by line, or the functions of a report by function. An unknown value stays unknown. */
export function linesOf(report: Report, isByLine = true): LineValue[] {
	const found = new Map<string, LineValue>();
	const total = report.total?.sum ?? null;
	for (const row of report.rows) {
		if (!row.file || (isByLine && !(row.line && row.line > 0))) continue;
		const value = (row.inclusive[report.metric] ?? row.exclusive[report.metric])?.sum ?? null;
		const share = value !== null && total !== null && total > 0 ? value / total : null;
		const line = isByLine ? row.line ?? 0 : 0;
		const key = `${row.file}\0${isByLine ? line : row.name}`;
		const before = found.get(key);
		// Two functions of one line (a comprehension) may be one within the other: the greater is shown, never their sum.
		if (!before || (value ?? -1) > (before.value ?? -1)) found.set(key, { file: row.file, line, name: row.name, value, share });
	}
	return [...found.values()];
}

/** The functions with the lines where they begin: upwards from their first measured line to `def`. Without one there is no line. */
export function placeFunctions(functions: LineValue[], lines: LineValue[], text: (line: number) => string): LineValue[] {
	return functions.flatMap((one) => {
		const measured = lines.filter((line) => line.name === one.name).map((line) => line.line);
		if (!measured.length) return [];
		if (one.name === "<module>") return [{ ...one, line: 1 }];
		const name = (one.name.split(".").at(-1) ?? "").replace(/[^\w]/g, "");
		const begin = new RegExp(`^\\s*(?:async\\s+)?def\\s+${name}\\s*[\\[(]`);
		for (let line = Math.min(...measured); line > 0; line--) if (begin.test(text(line))) return [{ ...one, line }];
		return [];
	});
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
