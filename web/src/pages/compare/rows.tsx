// SPDX-License-Identifier: Apache-2.0
// The rows of a comparison: what each amounts to before and after, and how sure the change is. A row leads to its boxes.
import { useMemo } from "preact/hooks";
import { amount, short, signedAmount, signedPercent, visible } from "../../draw/words";
import type { Change, Diff, DiffRow, Finding } from "../../protocol/types";
import { useApp } from "../../state/app";
import { useMarks, type Marks } from "../../shell/marks";
import { orderRows, Table, type Cell, type TableColumn } from "../../shell/table";

/** A ratio as a change in percent, with its interval. */
export function changeWords(row: Change): string {
	if (row.ratio === null) return row.before === null || row.before === 0 ? "new" : row.after === null ? "gone" : "unknown";
	const part = (value: number) => signedPercent(value).replace(" %", "");
	const interval = row.low !== null && row.high !== null ? ` (${part(row.low)} to ${part(row.high)})` : "";
	return `${signedPercent(row.ratio - 1)}${interval}`;
}

/** Does the interval lie on one side of zero? */
function isClear(row: Change): string {
	if (row.low === null || row.high === null) return "no interval";
	return row.low > 0 || row.high < 0 ? "yes" : "no";
}

/** What the boxes of a row are called. */
function namesOf(row: DiffRow, by: string): string[] {
	if (by === "line") return [...new Set([row.line, row.after_line])].flatMap((line) => (row.file && line ? [`${row.file}:${line}`] : []));
	const other = [...(row.before_names ?? []), ...(row.after_names ?? []), ...(row.fused_in ?? [])];
	return other.length ? [...new Set([...other, row.name])] : [row.name];
}

/** What the findings of the profile after say of a row. */
function foundAfter(marks: Marks, by: string, row: DiffRow): readonly Finding[] {
	const names = row.after_names?.length ? row.after_names : [row.name], place = { file: row.file, line: row.after_line ?? row.line };
	return [...new Set(names.flatMap((name) => marks.row(by, { ...place, name })))];
}

/** AFTER is the file whose findings the rows are marked with: the one that the graph shows. */
export function Rows({ diff, after }: { diff: Diff; after: number }) {
	const app = useApp();
	const marks = useMarks(String(after), app.state.values["window"]);
	const { unit, rows } = diff, { values } = app.state;
	const sort = values["sort"] ?? "-size", filter = values["filter"] ?? "";
	const most = rows.reduce((max, row) => Math.max(max, Math.abs(row.change ?? 0)), 0) || 1;
	const columns: TableColumn[] = useMemo(() => [
		{ id: "name", title: diff.by, isNumber: false, words: (value) => short(visible(String(value))) },
		{ id: "before", title: "before", isNumber: true, unit }, { id: "after", title: "after", isNumber: true, unit },
		{ id: "change", title: "change", isNumber: true, unit, words: (value) => signedAmount(value as number | null, unit) },
		{ id: "size", title: "size of the change", isNumber: true, unit, bar: (row) => Math.abs(rows[row]?.change ?? 0) / most },
		{ id: "ratio", title: "in percent (95 % interval)", isNumber: true, words: (_, row) => changeWords(rows[row] as Change) },
		{ id: "clear", title: "sure", isNumber: false },
		...(diff.by === "line" || diff.by === "python" ? [{ id: "place", title: "place", isNumber: false }] : []),
	], [diff]);
	const cell = useMemo(() => (index: number, column: number): Cell => {
		const row = rows[index];
		if (!row) return null;
		const place = row.file ? `${row.file}${row.line ? `:${row.line}` : ""}` : null;
		return [row.name, row.before, row.after, row.change, row.change === null ? null : Math.abs(row.change), row.ratio, isClear(row), place][column] ?? null;
	}, [diff]);
	const count = useMemo(() => orderRows(rows.length, cell, columns, "", filter).length, [diff, filter]);
	const marked = values["named"], picked = marked ? rows.findIndex((row) => namesOf(row, diff.by).join("\n") === marked) : -1;
	const open = (index: number) => {
		const names = rows[index] ? namesOf(rows[index], diff.by).join("\n") : "";
		app.set({ named: names === marked ? null : names }, true);
		app.say(names === marked ? "No row is marked" : "The boxes of this row are marked in the graph");
		document.querySelector(".compare .chart")?.scrollIntoView({ block: "nearest" });
	};
	return <>
		<p class="summary">{diff.metric}, {diff.statistic}; {amount(count, null)} rows. Intervals are of 95 %; a change is sure if its interval does not hold zero. Click a row to mark its boxes.</p>
		<Table label="What changed" columns={columns} count={rows.length} cell={cell} sort={sort} onSort={(next) => app.set({ sort: next })} filter={filter}
			onOpen={open} picked={picked} found={(row) => foundAfter(marks, diff.by, rows[row] as DiffRow)} foundIn={marks.file} />
	</>;
}
