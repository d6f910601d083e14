// SPDX-License-Identifier: Apache-2.0
// The page Kernels: rows of a report, sorted and filtered. A row leads to its place in the flame graph.
import { useMemo } from "preact/hooks";
import { amount, fileName, percent, short, visible } from "../draw/words";
import { canonical, type Query } from "../protocol/query";
import type { Report } from "../protocol/types";
import { common, useAnswer, useApp } from "../state/app";
import { CsvButton, Switches, Waiting } from "../shell/parts";
import { Bars } from "../shell/rows";
import { register } from "../shell/registry";
import { Filter } from "../shell/filter";
import { useMarks } from "../shell/marks";
import { useSampled } from "../shell/sampled";
import { orderRows, Table, type Cell, type TableColumn } from "../shell/table";

type By = "kernel" | "operator" | "module" | "line" | "python" | "native" | "library";
const BYS: [By, string][] = [["kernel", "Kernels"], ["operator", "Operators"], ["module", "Modules"], ["line", "Lines"], ["python", "Functions"],
	["native", "Native"], ["library", "Libraries"]];

function KernelsPage() {
	const app = useApp();
	const by = BYS.find(([id]) => id === app.state.values["by"])?.[0] ?? "kernel";
	const query: Query = { ...common(app, ["metric", "window"]), by, top: 0 };
	const loaded = useAnswer<Report>(canonical("report", query), (signal) => app.source.json<Report>("report", query, signal));
	return (
		<div class="page">
			<h1 class="unseen">Kernels</h1>
			<div class="tools">
				<Switches label="Rows" value={by} options={BYS} onChange={(next) => app.set({ by: next === "kernel" ? null : next, sort: null }, true)} />
				<Filter />
				<CsvButton name={by} answer="report" query={query} />
			</div>
			<Waiting loaded={loaded}>{(report) => <Rows report={report} by={by} />}</Waiting>
		</div>
	);
}

function Rows({ report, by }: { report: Report; by: By }) {
	const app = useApp();
	const { rows, metric, unit } = report;
	const marks = useMarks(app.state.values["file"], app.state.values["window"] ?? null);
	const sampled = useSampled(), isSampled = by === "kernel" && rows.some((row) => sampled(row.name));
	const sort = app.state.values["sort"] ?? "-self", filter = app.state.values["filter"] ?? "";
	const most = rows.reduce((max, row) => Math.max(max, row.share ?? 0), 0);
	const columns: TableColumn[] = useMemo(() => [
		{ id: "name", title: by, isNumber: false, words: (value) => short(visible(String(value))) },
		{ id: "share", title: "share", isNumber: true, words: (value) => percent(value as number | null), bar: (row) => (rows[row]?.share ?? 0) / (most || 1) },
		...["self", "total", "count", "mean", "min", "max"].map((id): TableColumn => ({ id, title: id, isNumber: true, unit: id === "count" ? null : unit })),
		{ id: "place", title: "line of your code", isNumber: false, words: (value) => (value === null ? "unknown" : fileName(visible(String(value)))) },
		...(isSampled ? [{ id: "why", title: "why", isNumber: true, words: (value: Cell) => (value === null ? "no samples" : `${percent(value as number)} waiting`),
			href: (row: number) => sampled(rows[row]?.name)?.href ?? null }] : []),
	], [report, isSampled, sampled]);
	const cell = useMemo(() => (index: number, column: number): Cell => {
		const row = rows[index];
		if (!row) return null;
		const self = row.exclusive[metric], total = row.inclusive[metric];
		switch (column) {
			case 0: return row.name;
			case 1: return row.share;
			case 2: return self?.sum ?? null;
			case 3: return total?.sum ?? null;
			case 4: return self?.count ?? null;
			case 5: return self?.mean ?? null;
			case 6: return self?.min ?? null;
			case 7: return self?.max ?? null;
			case 9: {
				const found = sampled(row.name)?.kernel;
				return found ? found.waiting / found.samples : null;
			}
			default: return row.user_file ? `${row.user_file}${row.user_line ? `:${row.user_line}` : ""}` : null;
		}
	}, [report, sampled]);
	const order = useMemo(() => orderRows(rows.length, cell, columns, sort, filter), [report, sort, filter, columns]);
	const at = Math.max(2, columns.findIndex((column) => column.id === sort.replace("-", "") && column.isNumber));
	const values = useMemo(() => order.map((row) => Number(cell(row, at) ?? 0)), [order, at]);
	const open = (row: number) => {
		const one = rows[row];
		if (one) app.go("flame", { search: `^${one.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`.slice(0, 400) });
	};
	const sum = order.reduce((all, row) => all + (rows[row]?.share ?? 0), 0);
	return <>
		<p class="summary">{metric}: {amount(report.total?.sum, unit)} in all; the {amount(order.length, null)} rows shown have {percent(sum)}</p>
		<Bars label={`${columns[at]?.title} of ${metric}`} values={values} onOpen={(index) => open(order[index] as number)}
			words={(index) => `${short(visible(rows[order[index] as number]?.name ?? ""))}: ${amount(values[index], at === 4 ? null : unit)}`} />
		<Table label={`Report by ${by}`} columns={columns} count={rows.length} cell={cell} sort={sort} onSort={(next) => app.set({ sort: next })} filter={filter} onOpen={open}
			found={(row) => marks.row(by, rows[row] ?? {})} />
	</>;
}

register({ id: "kernels", title: "Kernels", key: "k", needs: {}, follows: ["metric", "window"], make: KernelsPage,
	keys: [["/ or Ctrl+F", "filter the rows"]] });
