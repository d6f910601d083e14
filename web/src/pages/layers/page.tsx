// SPDX-License-Identifier: Apache-2.0
// The page Layers: the standard tables A1 to A15, each with its figure.
import { useMemo } from "preact/hooks";
import { amount, fileName, percent, visible } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import type { Finding, JsonTable, Tables } from "../../protocol/types";
import { common, useAnswer, useApp } from "../../state/app";
import { Choice, CsvButton, Switches, Waiting } from "../../shell/parts";
import { Bars, Roofline, type Roof } from "../../shell/rows";
import { register } from "../../shell/registry";
import { Filter } from "../../shell/filter";
import { useMarks, type Marks } from "../../shell/marks";
import { orderRows, Table, type Cell, type TableColumn } from "../../shell/table";
import { dotsOf, Figure, LACKS, numbers, roofOf, texts } from "./figures";
import { Limits, limitsOf } from "./limits";

const KINDS: [string, string][] = [["A1", "A1 model"], ["A2", "A2 layers"], ["A3", "A3 latency"], ["A4", "A4 memory"], ["A5", "A5 types by occurrence"],
	["A6", "A6 types by latency"], ["A7", "A7 types by memory"], ["A8", "A8 kernels"], ["A9", "A9 kernel roofline"], ["A10", "A10 kernels by name"],
	["A11", "A11 kernels by layer"], ["A12", "A12 GPU metrics"], ["A13", "A13 GPU and other latency"], ["A14", "A14 layer roofline"],
	["A15", "A15 the model's kernels"], ["stages", "thirds of the layers"]];
/** Of all files that are open. */
const SEVERAL: [string, string][] = [["compare", "profiles side by side"], ["swapped", "kernels that changed"]];
const LAYERS: ["either" | "module" | "operator", string][] = [["either", "Either"], ["module", "Modules"], ["operator", "Operators"]];

function LayersPage() {
	const app = useApp();
	const values = app.state.values, isOffline = app.source.isOffline;
	const kinds = app.about.files.length > 1 ? [...KINDS, ...SEVERAL] : KINDS;
	const kind = kinds.find(([id]) => id === values["kind"])?.[0] ?? "A2", layer = LAYERS.find(([id]) => id === values["layer"])?.[0] ?? "either";
	const isRoof = kind === "A9" || kind === "A14" || kind === "A15", isOfAll = app.about.files.length > 1 && (kind === "A1" || SEVERAL.some(([id]) => id === kind));
	const limits = limitsOf(app), own: Query = { layer: layer === "either" ? null : layer, ...(isRoof ? limits : { precision: limits["precision"] }) };
	const query: Query = isOfAll ? { ...own, files: "all", kind: [kind] } : { ...common(app, ["window"]), ...own, kind: [kind] };
	const isSeveral = isRoof && app.about.files.length > 1 && values["files"] !== "one";
	const loaded = useAnswer<Tables>(canonical("tables", query), (signal) => app.source.json<Tables>("tables", query, signal));
	return (
		<div class="page">
			<h1 class="unseen">Layers</h1>
			<div class="tools">
				<Choice label="Table" value={kind} options={kinds} onChange={(next) => app.set({ kind: next, sort: null }, true)} />
				{!isOffline && <Switches label="What is a layer" value={layer} options={LAYERS} onChange={(next) => app.set({ layer: next }, true)} />}
				{isRoof && app.about.files.length > 1 && <Switches label="Roofline of" value={isSeveral ? "all" : "one"} options={[["all", "All files"], ["one", "This file"]]} onChange={(next) => app.set({ files: next === "all" ? null : next }, true)} />}
				{isRoof && <Limits />}
				<Filter />
				<CsvButton name={kind} answer="tables" query={query} rows={() => csvRows(loaded.state === "ready" ? loaded.value : null, kind)} />
			</div>
			<Waiting loaded={loaded}>{(tables) => {
				const table = tables.tables.find((one) => one.id === kind); // a page that holds its answers has all tables in one
				return table ? <Shown tables={tables} table={table} several={isSeveral ? <SeveralFiles kind={kind as "A9" | "A14" | "A15"} query={own} /> : null} /> : <p class="notice">The profile has no such table.</p>;
			}}</Waiting>
		</div>
	);
}

/** What a page saves that holds its answers; otherwise plumb writes the CSV. */
function csvRows(tables: Tables | null, kind: string) {
	const table = tables?.tables.find((one) => one.id === kind);
	return table ? [table.columns.map((column) => column.name), ...table.rows] : [];
}

/** The findings of a row: of its kernel, or of its layer if it is of all that the layer does. */
function foundIn(table: JsonTable, marks: Marks): (row: number) => readonly Finding[] {
	const layers = texts(table, "layer_name"), kernels = texts(table, "kernel_name");
	return (row) => (kernels[row] ? marks.row("kernel", { name: kernels[row] }) : marks.layer(layers[row] ?? ""));
}

function Shown({ tables, table, several }: { tables: Tables; table: JsonTable; several: preact.JSX.Element | null }) {
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
	const marks = useMarks(app.state.values["file"], app.state.values["window"]), found = useMemo(() => foundIn(table, marks), [table, marks]);
	const name = (row: number) => visible(String(cell(row, 0) ?? ""));
	const open = /name/.test(columns[0]?.title ?? "") ? (row: number) => app.go("flame", { search: name(row).replace(/[.*+?^${}()|[\]\\]/g, "\\$&").slice(0, 400) }) : undefined;
	if (table.rows.length === 0) return <p class="notice">The profile has no rows for this table: {table.title}.</p>;
	return <>
		<p class="summary">{table.id} {table.title}{tables.model ? ` of ${visible(tables.model)}` : ""}{tables.runs ? `, ${amount(tables.runs, null)} runs` : ""}
			{missing.length > 0 && `; unknown: ${missing.join(", ")}`}
			{tables.order === "context" && table.columns.some((column) => column.name === "layer_index") && "; layers are in the order of call paths, not of execution"}</p>
		{several}
		{(!several || table.id === "A15") && <Figure table={table} order={order} onOpen={open} />}
		<Table label={`${table.id} ${table.title}`} columns={columns} count={table.rows.length} cell={cell} sort={sort} onSort={(next) => app.set({ sort: next })} filter={filter}
			onOpen={open} found={found} />
	</>;
}

// ---- rooflines of several profiles ----

interface OfFile {
	name: string;
	batch: number;
	tables: JsonTable[];
}

const ROOFS_MOST = 16;

/** The roofline of all files that are open: the rows of each, or the models as a whole. */
function SeveralFiles({ kind, query }: { kind: "A9" | "A14" | "A15"; query: Query }) {
	const app = useApp();
	const files = app.about.files.slice(0, ROOFS_MOST);
	const asked: Query = { ...query, kind: ["A1", kind === "A9" ? "A9" : "A14", "A15"] };
	const loaded = useAnswer<OfFile[]>(canonical("several", asked), (signal) => Promise.all(files.map(async (file, index) => {
		const { tables } = await app.source.json<Tables>("tables", { ...asked, file: index ? String(index) : null }, signal);
		const one = tables.find((table) => table.id === "A1");
		return { name: fileName(visible(file.name)), batch: (one && numbers(one, "batch_size")[0]) ?? NaN, tables };
	})));
	return <Waiting loaded={loaded}>{(all) => {
		const groups = all.map((one) => (Number.isNaN(one.batch) ? one.name : `batch ${one.batch} (${one.name})`));
		const found = all.map((one) => one.tables.find((table) => table.id === (kind === "A9" ? "A9" : "A14")));
		const roofs = found.map((table, index) => (table ? roofOf(table, all.length > 1 ? all[index]?.name ?? "" : "") : null)).filter((roof) => roof !== null);
		const isSame = roofs.every((roof) => roof.peak === roofs[0]?.peak && roof.bandwidth === roofs[0]?.bandwidth);
		const dots = all.flatMap((one, group) => {
			const rows = kind === "A15" ? undefined : found[group], model = one.tables.find((table) => table.id === "A15");
			return [...(rows ? dotsOf(rows, group).map((dot) => ({ ...dot, name: `${dot.name}, ${groups[group]}` })) : []),
				...(model ? dotsOf(model, group, undefined, Number.isNaN(one.batch) ? one.name : String(one.batch)).map((dot) => ({ ...dot, name: groups[group] ?? dot.name })) : [])];
		});
		if (!dots.length) return <OfPeak all={all} peak={roofs[0]?.peak ?? NaN} />;
		if (!roofs.length) return <p class="notice">No roofline of several profiles: plumb does not know the peak and the bandwidth of these GPUs. Set both above.</p>;
		return <>
			<p class="summary">Large marks are whole models, with {all.some((one) => !Number.isNaN(one.batch)) ? "their batch sizes" : "the names of their files"}.
				{app.about.files.length > ROOFS_MOST && ` Only the first ${ROOFS_MOST} files are shown.`}</p>
			<Roofline dots={dots} roofs={isSame ? [{ ...(roofs[0] as Roof), name: "" }] : roofs} groups={groups} />
		</>;
	}}</Waiting>;
}

/** Without bytes: what each model achieves of the peak. */
function OfPeak({ all, peak }: { all: OfFile[]; peak: number }) {
	const values = all.map((one) => { const model = one.tables.find((table) => table.id === "A15"); return (model && numbers(model, "model_arithmetic_throughput (GFlops)")[0]) ?? NaN; });
	const name = (index: number) => { const one = all[index] as OfFile; return Number.isNaN(one.batch) ? one.name : `batch ${one.batch}`; };
	return <>
		{values.some((value) => value > 0) && <Bars label="Gflop/s of the model in each profile" values={values.map((value) => value || 0)} name={name} {...(peak > 0 ? { limit: { value: peak, name: `peak: ${amount(peak, null)} Gflop/s` } } : {})}
			words={(index) => `${name(index)}: ${amount(values[index], null)} Gflop/s${peak > 0 ? `, ${percent((values[index] || 0) / peak)} of the peak` : ""}`} />}
		<p class="notice">No roofline of several profiles. {LACKS["counters"]}</p>
	</>;
}

register({ id: "layers", title: "Layers", key: "l", needs: { layers: "plumb run -- PROGRAM" }, follows: ["window"], usualWindow: "all", make: LayersPage,
	keys: [["/ or Ctrl+F", "filter the rows"]] });
