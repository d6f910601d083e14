// SPDX-License-Identifier: Apache-2.0
// The page Memory: what was live over time, who holds the peak, and what lives at the end.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { fitCanvas } from "../draw/canvas";
import { drawMemory, intervalAt, intervalOfPeak, memoryColours, readSeries, timeAt, timeWords, type MemoryView, type Series } from "../draw/memory";
import { readBands, readTracks, type Bands } from "../draw/timeline";
import { amount, fileName, percent, short, visible } from "../draw/words";
import { canonical, type Query } from "../protocol/query";
import type { JsonTable } from "../protocol/types";
import { common, useAnswer, useApp, valueOf } from "../state/app";
import { Choice, CsvButton, Switches, Waiting } from "../shell/parts";
import { Filter } from "../shell/filter";
import { useMarks } from "../shell/marks";
import { register } from "../shell/registry";
import { orderRows, Table, type Cell, type TableColumn } from "../shell/table";

/** Cells of a table by row and name. */
function reader(table: JsonTable): (row: number, name: string) => Cell {
	const places = new Map(table.columns.map((column, index) => [column.name, index]));
	return (row, name) => table.rows[row]?.[places.get(name) ?? -1] ?? null;
}

interface Device {
	memory: number;
	/** What the driver handed out, to allocators or anybody else: who holds it is not known. */
	isOfDriver: boolean;
	/** Another tool's trace says what was allocated, and no more. */
	isImported: boolean;
	name: string;
	model: string | null;
	pid: number | null;
	rank: number | null;
	start: number | null;
	end: number | null;
	peak: number | null;
	peakAt: number | null;
	live: number | null;
	isOnTimeline: boolean;
	number: (name: string) => number | null;
}

function readDevices(table: JsonTable): Device[] {
	const cell = reader(table);
	return table.rows.map((_, row) => {
		const number = (name: string) => cell(row, name) as number | null, text = (name: string) => (cell(row, name) === null ? null : visible(String(cell(row, name))));
		return { memory: number("memory") ?? row, isOfDriver: cell(row, "kind") === "driver", isImported: cell(row, "kind") === "allocator", name: text("name") ?? "memory of unknown name", model: text("model"), pid: number("pid"), rank: number("rank"),
			start: number("start"), end: number("end"), peak: number("peak"), peakAt: number("peak_at"), live: number("live"),
			isOnTimeline: cell(row, "on_timeline") === true, number };
	});
}

function deviceWords(device: Device): string {
	return [device.isOfDriver ? "GPU driver" : device.name, device.model, device.rank === null ? null : `rank ${device.rank}`, device.pid === null ? null : `process ${device.pid}`].filter(Boolean).join(", ");
}

function MemoryPage() {
	const app = useApp();
	const query = common(app);
	const loaded = useAnswer<Device[]>(canonical("memory/devices", query), async (signal) => readDevices(await app.source.json<JsonTable>("memory/devices", query, signal)));
	return <div class="page"><h1 class="unseen">Memory</h1><Waiting loaded={loaded}>{(devices) => <Shown devices={devices} query={query} />}</Waiting></div>;
}

/** Tensors of GPUs first, then the driver's memory, then the CPU; of these what holds the most. */
function usual(devices: Device[]): Device {
	const weight = (device: Device) => (device.name === "CPU" ? 0 : device.isOfDriver ? 2 ** 60 : 2 ** 61) + Math.min(device.peak ?? 0, 2 ** 59);
	return devices.reduce((best, device) => (weight(device) > weight(best) ? device : best), devices[0] as Device);
}

function Shown({ devices, query }: { devices: Device[]; query: Query }) {
	const app = useApp();
	const device = devices.find((one) => String(one.memory) === app.state.values["memory"]) ?? usual(devices);
	const asked: Query = { ...query, memory: device.memory };
	return <>
		{devices.length > 1 && <div class="tools">
			<Choice label="Memory of" value={String(device.memory)} options={devices.map((one) => [String(one.memory), deviceWords(one)])}
				onChange={(memory) => app.set({ memory, t0: null, t1: null }, true)} />
		</div>}
		<Facts device={device} />
		<div class="over-time"><Chart key={device.memory} device={device} query={asked} /></div>
		{device.isOfDriver ? <DriverNote /> : device.isImported ? <p class="notice">Who holds this memory at its peak is unknown: the trace says only what the
			allocator handed out. Record with <code>plumb run --memory</code> to see it.</p> : <Holders device={device} query={asked} />}
	</>;
}

function Facts({ device }: { device: Device }) {
	const taken = device.number("peak_reserved"), used = device.number("peak_allocated"), size = device.number("size");
	if (device.isOfDriver) {
		return <p class="summary">{deviceWords(device)}: the driver handed out at most <strong>{amount(device.peak, "byte")}</strong>{size !== null && ` of ${amount(size, "byte")}`} at
			once, to allocators of frameworks and to everything else in the process. At the end, <strong>{amount(device.live, "byte")}</strong> were still handed out.</p>;
	}
	if (device.isImported) {
		const reserved = device.number("max_reserved");
		return <p class="summary">{deviceWords(device)}: the allocator handed out at most <strong>{amount(device.peak, "byte")}</strong>{size !== null && ` of ${amount(size, "byte")}`} at
			once. At the end of the trace, <strong>{amount(device.live, "byte")}</strong> were still handed out.{reserved !== null && ` At most it reserved ${amount(reserved, "byte")}.`}</p>;
	}
	const unused = taken !== null && used !== null && used <= taken ? `, of which ${amount(taken - used, "byte")} (${percent((taken - used) / taken)}) were unused` : "";
	return (
		<p class="summary">
			{deviceWords(device)}: tensors took at most <strong>{amount(device.peak, "byte")}</strong>{size !== null && ` of ${amount(size, "byte")}`}, {amount(device.peakAt, "ns")} after the start.
			{" "}At the end, <strong>{amount(device.live, "byte")}</strong> still lived. {amount(device.number("allocations"), null)} allocations
			({amount(device.number("allocated"), "byte")}), {amount(device.number("frees"), null)} frees ({amount(device.number("freed"), "byte")}).{" "}
			{taken === null ? "Reserved: unknown, because this allocator does not say it."
				: `At the peak, the allocator had reserved ${amount(taken, "byte")}${unused}; at most it reserved ${amount(device.number("max_reserved"), "byte")}.`}
		</p>
	);
}

function DriverNote() {
	const app = useApp();
	return <p class="notice">Who holds this memory at its peak is unknown: plumb counts where the driver handed it out.{" "}
		<a href={app.link("flame", { metric: "gpu.alloc_bytes", window: "all" })}>Show that in the flame graph</a></p>;
}

// ---- over time ----

function Chart({ device, query }: { device: Device; query: Query }) {
	const app = useApp();
	const loaded = useAnswer<Series>(canonical("memory/series", query), async (signal) => {
		const [table] = await app.source.tables("memory/series", query, signal);
		if (!table) throw new Error("the answer has no series");
		return readSeries(table, device.end);
	});
	const bands = valueOf(useAnswer<Bands | null>(`bands of ${canonical("memory/series", query)}`, (signal) => askBands(app, device, query, signal)));
	return <Waiting loaded={loaded}>{(series) => (series.count === 0
		? <p class="notice">The profile does not say what was live over time: an older plumb recorded it.</p>
		: <Picture device={device} series={series} bands={bands} query={query} />)}</Waiting>;
}

/** The iterations of the process: those of the track that they cover for the longest time. */
async function askBands(app: ReturnType<typeof useApp>, device: Device, query: Query, signal: AbortSignal): Promise<Bands | null> {
	if (!device.isOnTimeline || !(app.about.has["spans"] || app.about.has["gpu_work"])) return null;
	const asked: Query = { file: query["file"] };
	const [tracks] = await app.source.tables("timeline/tracks", asked, signal);
	const [table] = await app.source.tables("timeline/bands", asked, signal);
	if (!tracks || !table) return null;
	const own = new Set(readTracks(tracks).filter((track) => track.process === device.pid).map((track) => track.track));
	let best: Bands | null = null, most = 0;
	for (const [track, bands] of readBands(table)) {
		const covered = bands.start.reduce((sum, start, index) => sum + (bands.end[index] as number) - start, 0);
		if (own.has(track) && covered > most) [best, most] = [bands, covered];
	}
	return best;
}

function Picture({ device, series, bands, query }: { device: Device; series: Series; bands: Bands | null; query: Query }) {
	const app = useApp();
	const canvas = useRef<HTMLCanvasElement>(null), pressed = useRef<{ x: number; time: number } | null>(null);
	const [at, setAt] = useState(-1);
	const [drag, setDrag] = useState<[number, number] | null>(null);
	const whole: [number, number] = [Math.min(0, series.start[0] as number), series.end[series.count - 1] as number];
	const given = ["t0", "t1"].map((key) => Number(app.state.values[key] ?? NaN)) as [number, number];
	const isWhole = !(given[1] > given[0] && given[1] > whole[0] && given[0] < whole[1]);
	const [t0, t1] = isWhole ? whole : given;
	const peak = useMemo(() => {
		const interval = intervalOfPeak(series), from = series.start[interval] as number, to = series.end[interval] as number;
		return device.peak === null ? null : { time: device.peakAt !== null && device.peakAt >= from && device.peakAt < to ? device.peakAt : (from + to) / 2, bytes: device.peak };
	}, [series, device]);
	const view: MemoryView = { t0, t1, at, drag, peak, bands };
	const shown = useRef(view);
	shown.current = view;
	useLayoutEffect(() => {
		if (canvas.current) drawMemory(canvas.current, series, view, app.look);
	}, [series, t0, t1, at, drag, peak, bands, app.look]);
	useEffect(() => {
		const one = canvas.current;
		if (!one) return;
		const watcher = new ResizeObserver(() => {
			fitCanvas(one);
			drawMemory(one, series, shown.current, app.look);
		});
		watcher.observe(one);
		return () => watcher.disconnect();
	}, [series, app.look]);
	const timeOf = (event: PointerEvent | MouseEvent) => {
		const frame = (event.currentTarget as Element).getBoundingClientRect();
		return timeAt(view, event.clientX - frame.left, frame.width);
	};
	const zoom = (from: number, to: number) => {
		const wide = Math.max(to - from, ((series.end[0] as number) - (series.start[0] as number)) * 4);
		const start = Math.max(whole[0], Math.min(from, whole[1] - wide)), isAll = wide >= whole[1] - whole[0];
		app.set({ t0: isAll ? null : Math.round(start), t1: isAll ? null : Math.round(start + wide) }, true);
	};
	const goTo = (next: number) => {
		const index = Math.max(0, Math.min(series.count - 1, next));
		setAt(index);
		app.say(words(series, index, bands));
		const time = series.start[index] as number;
		if (time < t0 || time > t1) zoom(time - (t1 - t0) / 2, time + (t1 - t0) / 2);
	};
	const keys = (event: KeyboardEvent) => {
		const middle = at < 0 ? (t0 + t1) / 2 : (series.start[at] as number), half = (t1 - t0) / 2;
		// A step is a pixel, or an interval if that is wider.
		const step = Math.max(1, Math.round(intervalsIn(series, t0, t1) / Math.max(1, canvas.current?.clientWidth ?? 1)));
		const act: Record<string, () => void> = {
			ArrowRight: () => goTo((at < 0 ? intervalAt(series, t0) - 1 : at) + step), ArrowLeft: () => goTo((at < 0 ? intervalAt(series, t1) + 1 : at) - step),
			Home: () => goTo(0), End: () => goTo(series.count - 1), p: () => goTo(intervalOfPeak(series)),
			"+": () => zoom(middle - half / 2, middle + half / 2), "=": () => zoom(middle - half / 2, middle + half / 2),
			"-": () => zoom(middle - 2 * half, middle + 2 * half), "0": () => zoom(...whole), Escape: () => zoom(...whole),
		};
		const one = event.ctrlKey || event.metaKey || event.altKey ? undefined : act[event.key];
		if (!one) return;
		event.preventDefault();
		event.stopPropagation();
		one();
	};
	const down = (event: PointerEvent) => {
		if (event.button !== 0) return;
		(event.currentTarget as Element).setPointerCapture(event.pointerId);
		pressed.current = { x: event.clientX, time: timeOf(event) };
	};
	const move = (event: PointerEvent) => {
		setAt(intervalAt(series, timeOf(event)));
		if (pressed.current && Math.abs(event.clientX - pressed.current.x) > 4) setDrag([pressed.current.time, timeOf(event)]);
	};
	const up = () => {
		pressed.current = null;
		if (drag) zoom(Math.min(...drag), Math.max(...drag));
		setDrag(null);
	};
	const colours = memoryColours(app.look);
	return (
		<figure class="bars memory">
			<canvas ref={canvas} tabIndex={0} role="application" aria-roledescription="chart"
				aria-label={`Memory of ${device.name} over time. Left and right go from interval to interval, p goes to the peak, plus and minus zoom, 0 shows the whole run.`}
				onPointerDown={down} onPointerMove={move} onPointerUp={up} onPointerCancel={up} onPointerLeave={() => !pressed.current && setAt(-1)}
				onDblClick={() => zoom(...whole)} onKeyDown={keys} onBlur={() => setAt(-1)} />
			<figcaption>{at >= 0 ? words(series, at, bands) : `Each interval is ${amount((series.end[0] as number) - (series.start[0] as number), "ns")}. Point at one to read it, drag to zoom.`}</figcaption>
			<div class="tools">
				<ul class="legend">
					<li><span class="swatch" style={{ background: colours.floor }} />allocated: min of each interval</li>
					<li><span class="swatch" style={{ background: colours.swing }} />allocated: max of each interval</li>
					{series.hasReserved && <li><span class="dashes" style={{ borderColor: colours.reserved }} />reserved by the allocator</li>}
					{bands && bands.start.length > 0 && <li><span class="swatch banded" />iterations</li>}
				</ul>
				{!isWhole && <button type="button" onClick={() => zoom(...whole)}>Whole run</button>}
				<CsvButton name="memory over time" answer="memory/series" query={query} rows={() => [["start", "end", "min", "max", "last", "max_reserved", "last_reserved"],
					...Array.from({ length: series.count }, (_, row) => [series.start, series.end, series.min, series.max, series.last, series.maxReserved, series.lastReserved]
						.map((column) => (Number.isNaN(column[row]) ? null : (column[row] as number))))]} />
			</div>
		</figure>
	);
}

function intervalsIn(series: Series, t0: number, t1: number): number {
	return intervalAt(series, t1) - intervalAt(series, t0) + 1;
}

function words(series: Series, at: number, bands: Bands | null = null): string {
	const [start, min, max, last, reserved] = [series.start, series.min, series.max, series.last, series.maxReserved].map((column) => column[at] as number) as
		[number, number, number, number, number];
	const allocated = min === max ? `${amount(max, "byte")} allocated` : `${amount(min, "byte")} to ${amount(max, "byte")} allocated, ${amount(last, "byte")} at the interval's end`;
	const band = bands ? iterationAt(bands, start) : -1;
	return `${timeWords(start, (series.end[at] as number) - start)}: ${allocated}${Number.isNaN(reserved) ? "" : `; ${amount(reserved, "byte")} reserved`}${band < 0 ? "" : `; iteration ${bands?.number[band]}`}`;
}

/** The iteration that began last before a time; -1 before the first one and after the last one. */
function iterationAt(bands: Bands, time: number): number {
	let low = 0, high = bands.start.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if ((bands.start[middle] as number) > time) high = middle;
		else low = middle + 1;
	}
	return low > 0 && (low < bands.start.length || time < (bands.end[low - 1] as number)) ? low - 1 : -1;
}

// ---- holders ----

type By = "line" | "operator" | "module";
type Moment = "peak" | "end";
const BYS: [By, string][] = [["line", "Lines"], ["operator", "Operators"], ["module", "Modules"]];
const MOMENTS: [Moment, string][] = [["peak", "At the peak"], ["end", "At the end"]];
const NONE: Record<By, string> = { line: "[no line of your code]", operator: "[outside any operator]", module: "[outside any module]" };

function Holders({ device, query }: { device: Device; query: Query }) {
	const app = useApp();
	const by = BYS.find(([id]) => id === app.state.values["by"])?.[0] ?? "line", moment: Moment = app.state.values["at"] === "end" ? "end" : "peak";
	const asked: Query = { ...query, by: by === "line" ? null : by };
	const loaded = useAnswer<JsonTable>(canonical("memory/holders", asked), (signal) => app.source.json<JsonTable>("memory/holders", asked, signal));
	return (
		<section class="part holders" aria-label="Who holds memory">
			<div class="tools">
				<Switches label="Moment" value={moment} options={MOMENTS} onChange={(next) => app.set({ at: next === "peak" ? null : next, sort: null }, true)} />
				<Switches label="Rows" value={by} options={BYS} onChange={(next) => app.set({ by: next === "line" ? null : next, sort: null }, true)} />
				<Filter />
				<CsvButton name={`memory by ${by}`} answer="memory/holders" query={asked} rows={() => {
					const table = valueOf(loaded);
					return table ? [table.columns.map((column) => column.name), ...table.rows] : [];
				}} />
			</div>
			<Waiting loaded={loaded}>{(table) => <HolderRows table={table} device={device} by={by} moment={moment} note={app.source.note("memory/holders", asked)} />}</Waiting>
		</section>
	);
}

function HolderRows({ table, device, by, moment, note }: { table: JsonTable; device: Device; by: By; moment: Moment; note: string | null }) {
	const app = useApp();
	const value = moment === "peak" ? "held" : "live", share = moment === "peak" ? "share" : "live_share";
	const whole = moment === "peak" ? device.peak : device.live;
	const sort = app.state.values["sort"] ?? `-${value}`, filter = app.state.values["filter"] ?? "";
	const cells = useMemo(() => reader(table), [table]), marks = useMarks(app.state.values["file"]);
	// What holds nothing at this moment is no holder.
	const rows = useMemo(() => table.rows.flatMap((_, row) => (cells(row, value) === 0 ? [] : [row])), [table, value]);
	const most = rows.reduce((max, row) => Math.max(max, Number(cells(row, share) ?? 0)), 0);
	const columns: TableColumn[] = useMemo(() => [
		{ id: "name", title: by, isNumber: false },
		{ id: share, title: "share", isNumber: true, words: (part) => percent(part as number | null), bar: (row) => Number(cells(rows[row] as number, share) ?? 0) / (most || 1) },
		{ id: value, title: moment === "peak" ? "held at the peak" : "lives at the end", isNumber: true, unit: "byte" },
		{ id: moment === "peak" ? "live" : "held", title: moment === "peak" ? "lives at the end" : "held at the peak", isNumber: true, unit: "byte" },
		{ id: "allocations", title: "allocations", isNumber: true }, { id: "allocated", title: "allocated", isNumber: true, unit: "byte" },
		{ id: "frees", title: "frees", isNumber: true }, { id: "freed", title: "freed", isNumber: true, unit: "byte" },
	], [rows, by, moment]);
	const cell = useMemo(() => (index: number, column: number): Cell => {
		const row = rows[index] as number;
		return column === 0 ? placeWords(cells, row, by) : cells(row, (columns[column] as TableColumn).id);
	}, [rows, columns]);
	const order = useMemo(() => orderRows(rows.length, cell, columns, sort, filter), [cell, columns, sort, filter]);
	const sum = order.reduce((all, index) => all + Number(cells(rows[index] as number, value) ?? 0), 0);
	const open = (index: number) => {
		const search = searchOf(cells, rows[index] as number, by);
		app.go("flame", { metric: moment === "peak" ? "mem.held" : "mem.alloc", window: "all", ...(search ? { search } : {}) });
	};
	return <>
		<p class="summary">
			{moment === "peak" ? `At the peak, tensors took ${amount(whole, "byte")}` : `At the end, ${amount(whole, "byte")} lived`}; the {amount(order.length, null)} rows shown have
			{" "}{amount(sum, "byte")}{whole ? ` (${percent(sum / whole)})` : ""}. Bytes count for who allocated them. {note ? `In this page, ${note}.` : ""}
		</p>
		{rows.length === 0 ? <p class="notice">{moment === "end" ? "Nothing lives at the end: all that was allocated was freed." : "Nothing was held at the peak."}</p>
			: <Table label={`Who holds memory, by ${by}`} columns={columns} count={rows.length} cell={cell} sort={sort} onSort={(next) => app.set({ sort: next })} filter={filter} onOpen={open}
				found={(index) => marks.row(by, placeOf(cells, rows[index] as number))} />}
	</>;
}

function placeOf(cells: (row: number, name: string) => Cell, row: number): { name: string | null; file: string | null; line: number | null } {
	return { name: cells(row, "name") as string | null, file: cells(row, "file") as string | null, line: cells(row, "line") as number | null };
}

function placeWords(cells: (row: number, name: string) => Cell, row: number, by: By): string {
	const name = cells(row, "name"), file = cells(row, "file"), line = cells(row, "line");
	if (by === "line" && file !== null) return `${fileName(visible(String(file)))}${line === null ? "" : `:${line}`}${name === null ? "" : ` in ${visible(String(name))}`}`;
	return name === null ? NONE[by] : short(visible(String(name)));
}

/** What finds a row in the flame graph. */
function searchOf(cells: (row: number, name: string) => Cell, row: number, by: By): string | null {
	const quoted = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), name = cells(row, "name"), file = cells(row, "file"), line = cells(row, "line");
	if (by === "line" && file !== null && line !== null) return `${quoted(fileName(String(file)))}:${line}([^0-9]|$)`;
	return name === null ? null : `^${quoted(String(name))}$`.slice(0, 400);
}

register({ id: "memory", title: "Memory", key: "m", needs: { memory: "plumb run --memory -- PROGRAM" }, follows: [], make: MemoryPage,
	keys: [["in the chart: ← →, p", "go from interval to interval, to the peak"], ["in the chart: + − 0", "zoom, show the whole run"], ["/ or Ctrl+F", "filter the rows"]] });
