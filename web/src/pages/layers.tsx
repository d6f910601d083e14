// SPDX-License-Identifier: Apache-2.0
// The page Layers: the standard tables A1 to A15, each with its figure.
import { useMemo } from "preact/hooks";
import { amount, visible } from "../draw/words";
import { canonical, type Query } from "../protocol/query";
import type { JsonTable, Tables } from "../protocol/types";
import { common, useAnswer, useApp } from "../state/app";
import { Choice, CsvButton, Switches, Waiting } from "../shell/parts";
import { Bars, Roofline, type Dot } from "../shell/rows";
import { register } from "../shell/registry";
import { Filter } from "../shell/filter";
import { orderRows, Table, type Cell, type TableColumn } from "../shell/table";

const KINDS: [string, string][] = [["A1", "A1 model"], ["A2", "A2 layers"], ["A3", "A3 latency"], ["A4", "A4 memory"], ["A5", "A5 types by occurrence"],
	["A6", "A6 types by latency"], ["A7", "A7 types by memory"], ["A8", "A8 kernels"], ["A9", "A9 kernel roofline"], ["A10", "A10 kernels by name"],
	["A11", "A11 kernels by layer"], ["A12", "A12 GPU metrics"], ["A13", "A13 GPU and other latency"], ["A14", "A14 layer roofline"],
	["A15", "A15 the model's kernels"], ["stages", "thirds of the layers"]];
const LAYERS: ["either" | "module" | "operator", string][] = [["either", "Either"], ["module", "Modules"], ["operator", "Operators"]];

function LayersPage() {
	const app = useApp();
	const values = app.state.values;
	const kind = KINDS.find(([id]) => id === values["kind"])?.[0] ?? "A2", layer = LAYERS.find(([id]) => id === values["layer"])?.[0] ?? "either";
	const query: Query = { ...common(app, ["window"]), kind: [kind], layer: layer === "either" ? null : layer };
	const loaded = useAnswer<Tables>(canonical("tables", query), (signal) => app.source.json<Tables>("tables", query, signal));
	return (
		<div class="page">
			<h1 class="unseen">Layers</h1>
			<div class="tools">
				<Choice label="Table" value={kind} options={KINDS} onChange={(next) => app.set({ kind: next, sort: null }, true)} />
				<Switches label="What is a layer" value={layer} options={LAYERS} onChange={(next) => app.set({ layer: next }, true)} />
				<Filter />
				<CsvButton name={kind} answer="tables" query={query} />
			</div>
			<Waiting loaded={loaded}>{(tables) => {
				const table = tables.tables.find((one) => one.id === kind); // a page that holds its answers has all tables in one
				return table ? <Shown tables={tables} table={table} /> : <p class="notice">The profile has no such table.</p>;
			}}</Waiting>
		</div>
	);
}

function Shown({ tables, table }: { tables: Tables; table: JsonTable }) {
	const app = useApp();
	const sort = app.state.values["sort"] ?? "", filter = app.state.values["filter"] ?? "";
	const { shown, missing } = useMemo(() => {
		const known = table.columns.map((_, index) => table.rows.some((row) => row[index] !== null && row[index] !== undefined));
		const shown = table.columns.flatMap((_, index) => (known[index] ? [index] : []));
		// What names a row comes first.
		const name = shown.findIndex((index) => /name|^type$|^stage$/.test(table.columns[index]?.name ?? ""));
		if (name > 0) shown.unshift(...shown.splice(name, 1));
		return { shown, missing: table.columns.filter((_, index) => !known[index]).map((column) => column.name) };
	}, [table]);
	const columns: TableColumn[] = useMemo(() => shown.map((index) => {
		const column = table.columns[index] as JsonTable["columns"][number];
		const isNumber = table.rows.every((row) => row[index] === null || typeof row[index] === "number");
		const scale = column.unit === "us" || column.unit === "byte" || column.unit === "ms" ? column.unit : null;
		return { id: String(index), title: column.name.replaceAll("_", " ").replace(/ \((us|ms|bytes)\)$/, ""), isNumber, unit: scale };
	}), [table]);
	const cell = useMemo(() => (row: number, column: number): Cell => table.rows[row]?.[shown[column] as number] ?? null, [table]);
	const order = useMemo(() => orderRows(table.rows.length, cell, columns, sort, filter), [table, sort, filter]);
	const name = (row: number) => visible(String(cell(row, 0) ?? ""));
	if (table.rows.length === 0) return <p class="notice">The profile has no rows for this table: {table.title}.</p>;
	return <>
		<p class="summary">{table.id} {table.title}{tables.model ? ` of ${visible(tables.model)}` : ""}{tables.runs ? `, ${amount(tables.runs, null)} runs` : ""}
			{missing.length > 0 && `; unknown: ${missing.join(", ")}`}
			{tables.order === "context" && table.columns.some((column) => column.name === "layer_index") && "; layers are in the order of call paths, not of execution"}</p>
		<Figure table={table} columns={columns} cell={cell} order={order} name={name} sort={sort} />
		<Table label={`${table.id} ${table.title}`} columns={columns} count={table.rows.length} cell={cell} sort={sort} onSort={(next) => app.set({ sort: next })} filter={filter}
			onOpen={/name/.test(columns[0]?.title ?? "") ? (row) => app.go("flame", { search: name(row).replace(/[.*+?^${}()|[\]\\]/g, "\\$&").slice(0, 400) }) : undefined} />
	</>;
}

function Figure({ table, columns, cell, order, name, sort }: {
	table: JsonTable; columns: TableColumn[]; cell: (row: number, column: number) => Cell; order: number[]; name: (row: number) => string; sort: string;
}) {
	const index = (pattern: RegExp) => table.columns.findIndex((column) => pattern.test(column.name));
	const intensity = index(/arithmetic_intensity/), throughput = index(/arithmetic_throughput/), peak = index(/theoretical_flops/), bandwidth = index(/memory_bandwidth/);
	if (peak >= 0 && bandwidth >= 0) {
		const value = (row: number, column: number) => Number(table.rows[row]?.[column] ?? NaN);
		const dots: Dot[] = order.flatMap((row) => value(row, intensity) > 0 && value(row, throughput) > 0
			? [{ intensity: value(row, intensity), throughput: value(row, throughput), name: name(row) }] : []);
		if (!dots.length || !(value(0, peak) > 0)) return <p class="notice">A roofline needs counts of operations and bytes, which this profile does not have.</p>;
		return <Roofline dots={dots} peak={value(0, peak)} bandwidth={value(0, bandwidth)} />;
	}
	const sorted = columns.findIndex((column) => column.id === sort.replace("-", "") && column.isNumber);
	const usual = columns.findIndex((column) => column.isNumber && /duration|allocated|occurrences|occupancy|flops/.test(column.title) && column.title !== "layer index");
	const at = sorted >= 0 ? sorted : usual;
	const column = columns[at];
	if (!column || order.length < 2) return null;
	const values = order.map((row) => Number(cell(row, at) ?? 0));
	return <Bars label={column.title} values={values} words={(place) => `${name(order[place] as number)}: ${amount(values[place], column.unit ?? null)}`} />;
}

register({ id: "layers", title: "Layers", key: "l", needs: { layers: "plumb run -- PROGRAM" }, follows: ["window"], usualWindow: "all", make: LayersPage,
	keys: [["/ or Ctrl+F", "filter the rows"]] });
