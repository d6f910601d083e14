// SPDX-License-Identifier: Apache-2.0
// The page Compare: what grew and shrank from one profile to another, with intervals.
import { useMemo } from "preact/hooks";
import { amount, short, visible } from "../draw/words";
import { canonical, type Query } from "../protocol/query";
import type { Change, Diff } from "../protocol/types";
import { useAnswer, useApp } from "../state/app";
import { CsvButton, Switches, Waiting } from "../shell/parts";
import { Filter } from "../shell/filter";
import { register } from "../shell/registry";
import { orderRows, Table, type Cell, type TableColumn } from "../shell/table";

type By = "" | "kernel" | "operator" | "module" | "line" | "python";
const BYS: [By, string][] = [["", "What explains most"], ["kernel", "Kernels"], ["operator", "Operators"], ["module", "Modules"], ["line", "Lines"], ["python", "Functions"]];

function signed(value: number | null, unit: string): string {
	return value === null ? "unknown" : `${value > 0 ? "+" : value < 0 ? "−" : ""}${amount(Math.abs(value), unit)}`;
}

/** A ratio as a change in percent, with its interval. */
function changeWords(row: Change): string {
	const part = (value: number) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${(Math.abs(value) * 100).toFixed(1)}`;
	if (row.ratio === null) return row.before === 0 ? "new" : "unknown";
	const interval = row.low !== null && row.high !== null ? ` (${part(row.low)} to ${part(row.high)})` : "";
	return `${part(row.ratio - 1)} %${interval}`;
}

function ComparePage() {
	const app = useApp();
	const by = BYS.find(([id]) => id === app.state.values["by"])?.[0] ?? "";
	const query: Query = { by, metric: app.state.values["metric"], top: 0 };
	const loaded = useAnswer<Diff>(canonical("diff", query), (signal) => app.source.json<Diff>("diff", query, signal));
	return (
		<div class="page">
			<h1 class="unseen">Compare</h1>
			<div class="tools">
				{!app.source.isOffline && <Switches label="Rows" value={by} options={BYS} onChange={(next) => app.set({ by: next, sort: null }, true)} />}
				<Filter />
				<CsvButton name="compare" answer="diff" query={query} rows={() => []} />
			</div>
			<Waiting loaded={loaded}>{(diff) => <Shown diff={diff} />}</Waiting>
		</div>
	);
}

function Shown({ diff }: { diff: Diff }) {
	const app = useApp();
	const { unit, rows } = diff;
	const sort = app.state.values["sort"] ?? "-size", filter = app.state.values["filter"] ?? "";
	const most = rows.reduce((max, row) => Math.max(max, Math.abs(row.change ?? 0)), 0) || 1;
	const columns: TableColumn[] = useMemo(() => [
		{ id: "name", title: diff.by, isNumber: false, words: (value) => short(visible(String(value))) },
		{ id: "before", title: "before", isNumber: true, unit }, { id: "after", title: "after", isNumber: true, unit },
		{ id: "change", title: "change", isNumber: true, words: (value) => signed(value as number | null, unit) },
		{ id: "size", title: "size of the change", isNumber: true, unit, bar: (row) => Math.abs(rows[row]?.change ?? 0) / most },
		{ id: "ratio", title: "in percent", isNumber: true, words: (_, row) => changeWords(rows[row] as Change) },
	], [diff]);
	const cell = useMemo(() => (index: number, column: number): Cell => {
		const row = rows[index];
		if (!row) return null;
		return [row.name, row.before, row.after, row.change, row.change === null ? null : Math.abs(row.change), row.ratio][column] ?? null;
	}, [diff]);
	const count = useMemo(() => orderRows(rows.length, cell, columns, "", filter).length, [diff, filter]);
	return <>
		<ul class="measures">
			{diff.measures.map((row) => <li key={row.name}><strong>{visible(row.name)}</strong> {amount(row.before, row.unit)} → {amount(row.after, row.unit)}: {signed(row.change, row.unit)}, {changeWords(row)}</li>)}
		</ul>
		{diff.host && diff.host.rows.length > 0 && <>
			<p>The change of an iteration comes from the host ({diff.host.metric} by {diff.host.by}):</p>
			<ul class="findings">{diff.host.rows.slice(0, 10).map((row) => <li key={row.name}>{short(visible(row.name))}: {amount(row.before, "ns")} → {amount(row.after, "ns")} ({signed(row.change, "ns")})</li>)}</ul>
		</>}
		{diff.environment.length > 0 && <details><summary>What else differs: {diff.environment.length}</summary>
			<dl class="facts">{diff.environment.map((one) => <div key={one.key}><dt>{visible(one.key)}</dt><dd>{visible(one.before ?? "unknown")} → {visible(one.after ?? "unknown")}</dd></div>)}</dl></details>}
		<p class="summary">{diff.metric}, {diff.statistic}; {amount(count, null)} rows. Intervals in brackets are of 95 %.</p>
		<Table label="What changed" columns={columns} count={rows.length} cell={cell} sort={sort} onSort={(next) => app.set({ sort: next })} filter={filter} />
	</>;
}

register({ id: "compare", title: "Compare", key: "c", needs: { two_files: "plumb view BEFORE.plumb AFTER.plumb" }, follows: ["metric"], make: ComparePage,
	keys: [["/ or Ctrl+F", "filter the rows"]] });
