// SPDX-License-Identifier: Apache-2.0
// The figure of each table, A1 to A15. What a figure needs and nobody recorded is said in its place.
import { useMemo } from "preact/hooks";
import { PALETTES, PARTS } from "../../draw/colours";
import { amount, percent, short, visible } from "../../draw/words";
import type { JsonTable } from "../../protocol/types";
import { useApp } from "../../state/app";
import { StackedBar, type Part } from "../../shell/bars";
import { Bars, Roofline, type Dot, type Roof } from "../../shell/rows";

export interface FigureProps {
	table: JsonTable;
	/** The rows that are shown, in their order. */
	order: number[];
	onOpen?: ((row: number) => void) | undefined;
}

type Made = (props: FigureProps) => preact.JSX.Element | null;

// ---- columns ----

function indexOf(table: JsonTable, name: string): number {
	return table.columns.findIndex((column) => column.name.replace(/ \([^)]*\)$/, "") === name.replace(/ \([^)]*\)$/, "") && (!name.includes("(") || column.name === name));
}

function unitOf(table: JsonTable, name: string): string | null {
	return table.columns[indexOf(table, name)]?.unit ?? null;
}

/** The number of each row; NaN where it is unknown. */
export function numbers(table: JsonTable, name: string): number[] {
	const at = indexOf(table, name);
	return table.rows.map((row) => (typeof row[at] === "number" ? (row[at] as number) : NaN));
}

export function texts(table: JsonTable, name: string): string[] {
	const at = indexOf(table, name);
	return table.rows.map((row) => (typeof row[at] === "string" ? (row[at] as string) : ""));
}

function isKnown(values: number[]): boolean {
	return values.some((value) => !Number.isNaN(value));
}

function nameOf(table: JsonTable, row: number): string {
	const layer = texts(table, "layer_name")[row] ?? "", kernel = texts(table, "kernel_name")[row] ?? "";
	const name = kernel ? `${short(visible(kernel))}${layer ? ` in ${visible(layer)}` : ""}` : visible(layer || texts(table, "type")[row] || texts(table, "stage")[row] || texts(table, "profile")[row] || "");
	return name || `row ${row}`;
}

// ---- kinds of figures ----

export const LACKS: Record<string, string> = {
	memory: "Nobody recorded the memory of layers: record with plumb run --memory.",
	counters: "Nobody counted bytes or occupancy: record with plumb run --counters, or import a trace with counters. Floating-point operations also come with plumb run --shapes.",
	other: "The profile does not have these values.",
};

function Lacking({ what, why = "other" }: { what: string; why?: keyof typeof LACKS }) {
	return <p class="notice">No figure of {what}. {LACKS[why]}</p>;
}

/** The types of layers with most of a value have colours; the others share one. */
function useTypes(table: JsonTable, values: number[]) {
	const app = useApp();
	return useMemo(() => {
		const types = texts(table, "layer_type"), sums = new Map<string, number>();
		types.forEach((type, row) => sums.set(type, (sums.get(type) ?? 0) + (values[row] || 0)));
		const first = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 5).map(([type]) => type);
		const colours = PALETTES[app.look].layers;
		const colour = (row: number) => colours[first.indexOf(types[row] ?? "")] ?? (colours[5] as string);
		const legend = [...first.map((type, index): [string, string] => [visible(type) || "without type", colours[index] as string]), ...(sums.size > 5 ? [["other types", colours[5] as string] as [string, string]] : [])];
		return { colour, legend };
	}, [table, app.look]);
}

function Legend({ items }: { items: [string, string][] }) {
	return <ul class="legend">{items.map(([name, colour]) => <li key={name}><span class="swatch" style={{ background: colour }} />{name}</li>)}</ul>;
}

/** A bar for each row, in the colour of its layer's type. */
function TypedBars({ table, order, onOpen, column, title }: FigureProps & { column: string; title: string }) {
	const values = useMemo(() => numbers(table, column), [table, column]);
	const { colour, legend } = useTypes(table, values);
	if (!isKnown(values)) return null;
	return <>
		<Bars label={title} values={order.map((row) => values[row] || 0)} colour={(index) => colour(order[index] as number)} onOpen={onOpen && ((index) => onOpen(order[index] as number))}
			words={(index) => `${nameOf(table, order[index] as number)}: ${amount(values[order[index] as number], unitOf(table, column))}`} />
		<Legend items={legend} />
	</>;
}

/** Several values of the same rows, below each other. */
function Strips({ table, order, onOpen, columns, why }: FigureProps & { columns: [string, string][]; why?: keyof typeof LACKS }) {
	const shown = useMemo(() => columns.map(([column, title]) => ({ title, unit: unitOf(table, column), values: numbers(table, column) })), [table]);
	const known = shown.filter((one) => isKnown(one.values)), lacking = shown.filter((one) => !isKnown(one.values));
	return <>
		{known.map(({ title, unit, values }) => <Bars key={title} isLow={known.length > 1} label={title} values={order.map((row) => values[row] || 0)} onOpen={onOpen && ((index) => onOpen(order[index] as number))}
			words={(index) => `${nameOf(table, order[index] as number)}: ${title} ${amount(values[order[index] as number], unit)}`} />)}
		{lacking.length > 0 && (why || known.length === 0) && <Lacking what={lacking.map((one) => one.title).join(", ")} why={why ?? "other"} />}
	</>;
}

/** The shares of types as one bar. */
function Shares({ table, order, column, title, why }: FigureProps & { column: string; title: string; why?: keyof typeof LACKS }) {
	const app = useApp();
	const values = numbers(table, column), total = values.reduce((sum, value) => sum + (value || 0), 0);
	if (!isKnown(values) || total <= 0) return <Lacking what={title} why={why ?? "other"} />;
	const sorted = [...order].sort((a, b) => (values[b] || 0) - (values[a] || 0)), shown = sorted.slice(0, 8), rest = sorted.slice(8);
	const colours = PALETTES[app.look].layers;
	const parts: Part[] = shown.map((row, index) => ({ name: nameOf(table, row), value: values[row] || 0, colour: "", fill: colours[index % 5] as string }));
	if (rest.length) parts.push({ name: `${rest.length} other types`, value: rest.reduce((sum, row) => sum + (values[row] || 0), 0), colour: "rest" });
	return <StackedBar title={title} total={total} unit={unitOf(table, column) ?? "count"} parts={parts} />;
}

/** The rows by their size, with the share of all rows so far as a line. */
function Pareto({ table, order, onOpen, column, title }: FigureProps & { column: string; title: string }) {
	const values = numbers(table, column);
	if (!isKnown(values)) return <Lacking what={title} />;
	const sorted = [...order].sort((a, b) => (values[b] || 0) - (values[a] || 0)), total = sorted.reduce((sum, row) => sum + (values[row] || 0), 0);
	let sum = 0;
	const line = sorted.map((row) => (sum += values[row] || 0) / (total || 1));
	return <Bars label={`${title}, the greatest first; the line is the share of all so far`} values={sorted.map((row) => values[row] || 0)} line={line} onOpen={onOpen && ((index) => onOpen(sorted[index] as number))}
		words={(index) => `${nameOf(table, sorted[index] as number)}: ${amount(values[sorted[index] as number], unitOf(table, column))}; up to here ${percent(line[index])}`} />;
}

/** GPU and other time of each layer, one upon the other. */
function GpuAndOther({ table, order, onOpen }: FigureProps) {
	const app = useApp();
	const whole = numbers(table, "layer_duration (us)"), gpu = numbers(table, "layer_gpu_duration (us)"), other = numbers(table, "layer_cpu_duration (us)");
	const stack = useMemo(() => [{ colour: PARTS[app.look]["computing"] as string, values: order.map((row) => gpu[row] || 0) }, { colour: PARTS[app.look]["host"] as string, values: order.map((row) => other[row] || 0) }], [table, order, app.look]);
	if (!isKnown(gpu)) return <Lacking what="GPU and other latency" />;
	return <>
		<Bars label="Latency of each layer: GPU work, and the rest" values={order.map((row) => whole[row] || 0)} stack={stack} onOpen={onOpen && ((index) => onOpen(order[index] as number))}
			words={(index) => { const row = order[index] as number; return `${nameOf(table, row)}: ${amount(whole[row], "us")}, of this GPU ${amount(gpu[row], "us")}, other ${amount(other[row], "us")}`; }} />
		<Legend items={[["GPU", PARTS[app.look]["computing"] as string], ["other", PARTS[app.look]["host"] as string]]} />
	</>;
}

// ---- rooflines ----

/** What a roofline is made of: the rows of A9 or A14, or the model of A15. */
export function dotsOf(table: JsonTable, group: number, order: number[] = table.rows.map((_, row) => row), label?: string): Dot[] {
	const kind = table.id === "A9" ? "kernel" : table.id === "A14" ? "layer" : "model";
	const intensity = numbers(table, `${kind}_arithmetic_intensity (flops/byte)`), throughput = numbers(table, `${kind}_arithmetic_throughput (GFlops)`);
	return order.flatMap((row) => ((intensity[row] as number) > 0 && (throughput[row] as number) > 0
		? [{ intensity: intensity[row] as number, throughput: throughput[row] as number, group, name: kind === "model" ? label ?? "the model" : nameOf(table, row), ...(kind === "model" && label !== undefined ? { label } : {}) }] : []));
}

export function roofOf(table: JsonTable, name: string): Roof | null {
	const peak = numbers(table, "GPU_theoretical_flops (GFLOPS)")[0] ?? NaN, bandwidth = numbers(table, "GPU_memory_bandwidth (GB/s)")[0] ?? NaN;
	return peak > 0 && bandwidth > 0 ? { peak, bandwidth, name } : null;
}

/** Without bytes there is no intensity: what each row achieves of the peak is known all the same. */
function Achieved({ table, order, onOpen }: FigureProps) {
	const column = table.id === "A9" ? "kernel_arithmetic_throughput (GFlops)" : "layer_arithmetic_throughput (GFlops)";
	const values = numbers(table, column), peak = numbers(table, "GPU_theoretical_flops (GFLOPS)")[0] ?? NaN;
	if (!isKnown(values)) return <Lacking what="the roofline" why="counters" />;
	return <>
		<Bars label={`Gflop/s of each ${table.id === "A9" ? "kernel" : "layer"}`} values={order.map((row) => values[row] || 0)} onOpen={onOpen && ((index) => onOpen(order[index] as number))}
			{...(peak > 0 ? { limit: { value: peak, name: `peak: ${amount(peak, null)} Gflop/s` } } : {})}
			words={(index) => { const row = order[index] as number; return `${nameOf(table, row)}: ${amount(values[row], null)} Gflop/s${peak > 0 ? `, ${percent((values[row] || 0) / peak)} of the peak` : ""}`; }} />
		{values.some((value) => value > peak) && <p class="notice">Some are above this peak: they compute in another precision, which you can choose above.</p>}
		<Lacking what="intensity" why="counters" />
	</>;
}

function OwnRoofline(props: FigureProps) {
	const { table, order } = props;
	const dots = useMemo(() => dotsOf(table, 0, order), [table, order]), roof = roofOf(table, "");
	if (!dots.length) return <Achieved {...props} />;
	if (!roof) return <p class="notice">No roofline: plumb does not know the peak and the bandwidth of this GPU. Set both above.</p>;
	return <Roofline dots={dots} roofs={[roof]} groups={[]} />;
}

/** The model's time in parts. */
function ModelTime({ table }: FigureProps) {
	const whole = numbers(table, "model_duration (us)")[0] ?? NaN, gpu = numbers(table, "model_gpu_duration (us)")[0] ?? NaN;
	if (!(whole > 0) || Number.isNaN(gpu)) return <Lacking what="the model's time" />;
	return <StackedBar title="The model's latency" total={Math.max(whole, gpu)} unit="us" parts={[{ name: "GPU work", colour: "computing", value: gpu }, { name: "other", colour: "host", value: Math.max(0, whole - gpu) }]} />;
}

// ---- profiles, stages ----

/** A bar for each profile. */
function Profiles({ table, order, columns }: FigureProps & { columns: [string, string][] }) {
	const batches = numbers(table, "batch_size"), files = texts(table, "profile"), best = table.rows.map((row) => row[indexOf(table, "optimal_by_throughput")] === true);
	const name = (row: number) => (Number.isNaN(batches[row]) ? visible(files[row] || `profile ${row + 1}`) : `batch ${batches[row]}`);
	if (order.length < 2) return <p class="notice">One profile has no figure here. Open several: plumb view A.plumb B.plumb</p>;
	return <>{columns.map(([column, title]) => {
		const values = numbers(table, column);
		return isKnown(values) && <Bars key={column} isLow label={`${title} of each profile${column.startsWith("throughput") && best.some(Boolean) ? "; the best one has another colour" : ""}`} values={order.map((row) => values[row] || 0)}
			name={(index) => name(order[index] as number)} isMarked={(index) => column.startsWith("throughput") && best[order[index] as number] === true}
			words={(index) => `${name(order[index] as number)}: ${title} ${amount(values[order[index] as number], unitOf(table, column))}`} />;
	})}</>;
}

function Stages({ table }: FigureProps) {
	const stages = texts(table, "stage"), colours = ["startup", "host", "computing"];
	const all: [string, string][] = [["duration (us)", "Latency"], ["gpu_duration (us)", "GPU time"], ["allocated memory (bytes)", "Memory"], ["flops", "Floating-point operations"], ["dram accesses (bytes)", "Memory traffic"]];
	return <>{all.map(([column, title]) => {
		const values = numbers(table, column), total = values.reduce((sum, value) => sum + (value || 0), 0);
		return total > 0 && <StackedBar key={column} title={`${title} of the model's beginning, middle and end`} total={total} unit={unitOf(table, column) ?? "count"}
			parts={stages.map((stage, row) => ({ name: stage, value: values[row] || 0, colour: colours[row % 3] as string }))} />;
	})}</>;
}

/** What went and what came, by time. */
function Swapped({ table, order }: FigureProps) {
	const gone = numbers(table, "kernel_duration (us)"), come = numbers(table, "new_kernel_duration (us)");
	const known = isKnown(gone) || isKnown(come);
	if (!known) return null;
	return <>{([["Kernels that went, by time", gone], ["Kernels that came, by time", come]] as const).map(([title, values]) =>
		<Bars key={title} isLow label={title} values={order.map((row) => values[row] || 0)} words={(index) => `${nameOf(table, order[index] as number)}: ${amount(values[order[index] as number], "us")}`} />)}</>;
}

const FIGURES: Record<string, Made> = {
	A1: (props) => <Profiles {...props} columns={[["throughput (input/s)", "throughput"], ["latency (ms)", "latency"]]} />,
	A2: (props) => <TypedBars {...props} column="layer_duration (us)" title="Latency of each layer, by type" />,
	A3: (props) => <Strips {...props} columns={[["layer_duration (us)", "latency"], ["layer_host_duration (us)", "time on the host"], ["layer_device_duration (us)", "time on the GPU"]]} />,
	A4: (props) => <Strips {...props} why="memory" columns={[["layer_allocated_bytes", "allocated memory"], ["layer_peak_allocated_bytes", "peak of allocated memory"]]} />,
	A5: (props) => <Shares {...props} column="occurrences" title="Layers by type" />,
	A6: (props) => <><Shares {...props} column="duration (us)" title="Latency by type" /><Shares {...props} column="device_duration (us)" title="GPU time by type" /></>,
	A7: (props) => <Shares {...props} column="allocated memory (bytes)" title="Allocated memory by type" why="memory" />,
	A8: (props) => <TypedBars {...props} column="kernel_duration (us)" title="Time of each kernel, by the type of its layer" />,
	A9: OwnRoofline,
	A10: (props) => <Pareto {...props} column="kernel_duration (us)" title="Time of each kernel name" />,
	A11: (props) => <TypedBars {...props} column="layer_gpu_duration (us)" title="GPU time of each layer, by type" />,
	A12: (props) => <Strips {...props} why="counters" columns={[["layer_flops", "operations"], ["layer_dram_read_bytes", "bytes read"], ["layer_dram_write_bytes", "bytes written"], ["layer_achieved_occupancy (%)", "occupancy"]]} />,
	A13: GpuAndOther,
	A14: OwnRoofline,
	A15: ModelTime,
	stages: Stages,
	compare: (props) => <Profiles {...props} columns={[["throughput (input/s)", "throughput"], ["latency (ms)", "latency"], ["gpu_latency (ms)", "GPU latency"], ["arithmetic_throughput (GFlops)", "Gflop/s"]]} />,
	swapped: Swapped,
};

export function Figure(props: FigureProps) {
	const Made = FIGURES[props.table.id];
	return Made ? <Made key={props.table.id} {...props} /> : null;
}
