// SPDX-License-Identifier: Apache-2.0
// The page Timeline: tracks of threads and streams. Drag to measure: the sums by name follow.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { fitCanvas } from "../../draw/canvas";
import { LAYER_NAMES, PALETTES } from "../../draw/colours";
import { AXIS, drawTimeline, HEADER, heightOf, LINE, readBands, readTracks, Spans, trackAt, type Extra, type Place, type TrackRow } from "../../draw/timeline";
import { amount, percent, short } from "../../draw/words";
import type { Query } from "../../protocol/query";
import { canonical } from "../../protocol/query";
import { common, useAnswer, useApp, valueOf, type App } from "../../state/app";
import { Command, CopyButton, CsvButton, Trouble, Waiting } from "../../shell/parts";
import { register } from "../../shell/registry";
import { Table, type Cell, type TableColumn } from "../../shell/table";


function TimelinePage() {
	const app = useApp();
	const query = common(app);
	const loaded = useAnswer<TrackRow[]>(canonical("timeline/tracks", query), async (signal) => {
		const [tracks] = await app.source.tables("timeline/tracks", query, signal);
		if (!tracks) throw new Error("the answer has no tracks");
		return readTracks(tracks);
	});
	return <Waiting loaded={loaded}>{(tracks) => tracks.length
		? <Tracks tracks={tracks} query={query} /> : <div class="notice"><p>The profile has no spans.</p><Command text="plumb run --trace -- PROGRAM" /></div>}</Waiting>;
}

interface Shown {
	span: { track: TrackRow; depth: number; start: number; end: number; name: string; layer: number; many: number } | null;
}

/** What is drawn, and what pointers and keys do; without the framework, because it changes with every frame. */
class Board {
	place: Place;
	spans: Spans | null = null;
	private whole: Spans | null = null;
	readonly extra: Extra;
	private frame = 0;
	private timer = 0;
	private settle = 0;
	private stop: AbortController | null = null;
	private hasBands = false;
	private readonly ended = new AbortController();
	private drag: { x: number; y: number; time: number; isPan: boolean; place: Place; moved: boolean } | null = null;
	private readonly cleanup: (() => void)[] = [];
	readonly range: [number, number];
	readonly times: number[] = [];

	constructor(private readonly canvas: HTMLCanvasElement, private readonly app: () => App, private readonly query: Query, private readonly tracks: TrackRow[],
		private readonly tell: { span(shown: Shown["span"]): void; tip(x: number, y: number, text: string | null): void;
			measure(range: [number, number] | null): void; error(error: Error): void }) {
		this.range = [Math.min(...tracks.map((track) => track.start)), Math.max(...tracks.map((track) => track.end))];
		if (!(this.range[1] > this.range[0])) this.range[1] = this.range[0] + 1;
		const values = app().state.values, number = (key: string, usual: number) => (values[key] === undefined || Number.isNaN(Number(values[key])) ? usual : Number(values[key]));
		this.place = { t0: number("t0", this.range[0]), t1: number("t1", this.range[1]), top: 0, left: 180 };
		if (!(this.place.t1 > this.place.t0)) [this.place.t0, this.place.t1] = this.range;
		const m0 = number("m0", NaN), m1 = number("m1", NaN);
		this.extra = { bands: new Map(), arrows: [], selected: null, measure: m1 > m0 ? [m0, m1] : null, origin: Math.min(0, this.range[0]) };
		if (this.extra.measure) tell.measure(this.extra.measure);
		const on = <K extends keyof HTMLElementEventMap>(name: K, act: (event: HTMLElementEventMap[K]) => void) => {
			canvas.addEventListener(name, act, { passive: false });
			this.cleanup.push(() => canvas.removeEventListener(name, act));
		};
		on("pointerdown", (event) => this.down(event));
		on("pointermove", (event) => this.move(event));
		on("pointerup", (event) => this.up(event));
		on("pointercancel", () => (this.drag = null));
		on("pointerleave", () => tell.tip(0, 0, null));
		on("wheel", (event) => this.wheel(event));
		on("dblclick", () => this.show(...this.range));
		on("keydown", (event) => this.key(event));
		const watcher = new ResizeObserver(() => this.resize());
		watcher.observe(canvas);
		this.cleanup.push(() => watcher.disconnect());
		this.resize();
	}

	end(): void {
		for (const act of this.cleanup) act();
		this.stop?.abort();
		this.ended.abort();
		cancelAnimationFrame(this.frame);
		clearTimeout(this.timer);
		clearTimeout(this.settle);
	}

	private resize(): void {
		fitCanvas(this.canvas);
		this.place.left = this.canvas.clientWidth < 600 ? 84 : 180;
		this.paint();
		this.need();
	}

	draw(): void {
		if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
	}

	private paint(): void {
		cancelAnimationFrame(this.frame);
		this.frame = 0;
		const begin = performance.now();
		const covers = this.spans && this.spans.range[0] <= this.place.t0 && this.spans.range[1] >= this.place.t1;
		drawTimeline(this.canvas, this.tracks, covers ? this.spans : this.whole ?? this.spans, this.place, PALETTES[this.app().look], this.extra);
		this.times.push(performance.now() - begin);
		if (this.times.length > 600) this.times.shift();
	}

	// ---- answers ----

	private need(): void {
		clearTimeout(this.timer);
		const wide = this.place.t1 - this.place.t0, width = this.canvas.width, now = this.spans;
		if (width === 0 || (now && this.app().source.isOffline)) return;
		if (now && now.range[0] <= this.place.t0 && now.range[1] >= this.place.t1 && (now.px * wide) / (now.range[1] - now.range[0]) >= 0.75 * width) return;
		this.timer = window.setTimeout(() => void this.ask(), now ? 60 : 0);
	}

	private async ask(): Promise<void> {
		const wide = this.place.t1 - this.place.t0, around = this.whole ? wide / 2 : 0;
		const isAll = this.app().source.isOffline; // a page that holds its answers has one
		const t0 = Math.floor(isAll ? this.range[0] : Math.max(this.range[0], this.place.t0 - around));
		const t1 = Math.ceil(isAll ? this.range[1] : Math.min(this.range[1], this.place.t1 + around));
		const px = Math.min(16384, Math.ceil((this.canvas.width * (t1 - t0)) / wide));
		this.stop?.abort();
		const stop = (this.stop = new AbortController());
		try {
			const source = this.app().source, asked = { ...this.query, t0, t1, px };
			const [[spans], [arrows]] = await Promise.all([source.tables("timeline/spans", asked, stop.signal), source.tables("timeline/arrows", asked, stop.signal)]);
			if (stop.signal.aborted || !spans) return;
			this.spans = new Spans(spans, [t0, t1], px);
			if (t0 <= this.range[0] && t1 >= this.range[1]) this.whole = this.spans;
			const number = (name: string, row: number) => arrows?.column(name).number(row) ?? NaN;
			this.extra.arrows = Array.from({ length: Math.min(20000, arrows?.rows ?? 0) }, (_, row) => ({ fromTrack: number("from_track", row),
				from: number("from", row), toTrack: number("to_track", row), to: number("to", row) }));
			this.canvas.dataset["spans"] = String(spans.rows);
			this.draw();
			this.need();
			void this.askBands();
		} catch (error) {
			if (!stop.signal.aborted) this.tell.error(error instanceof Error ? error : new Error(String(error)));
		}
	}

	/** Iterations come after the first picture: to find them takes longer. */
	private async askBands(): Promise<void> {
		if (this.hasBands) return;
		this.hasBands = true;
		try {
			const [bands] = await this.app().source.tables("timeline/bands", this.query, this.ended.signal);
			if (bands) this.extra.bands = readBands(bands);
			this.canvas.dataset["bands"] = String(bands?.rows ?? 0);
			this.draw();
		} catch (error) {
			if (!this.ended.signal.aborted) this.tell.error(error instanceof Error ? error : new Error(String(error)));
		}
	}

	// ---- what is shown ----

	show(t0: number, t1: number, top = this.place.top): void {
		const all = this.range[1] - this.range[0], wide = Math.max(100, Math.min(all, t1 - t0));
		const from = Math.max(this.range[0], Math.min(this.range[1] - wide, t0));
		const deepest = Math.max(0, heightOf(this.tracks) + AXIS - this.canvas.clientHeight);
		this.place = { ...this.place, t0: from, t1: from + wide, top: Math.max(0, Math.min(deepest, top)) };
		this.draw();
		this.need();
		clearTimeout(this.settle);
		this.settle = window.setTimeout(() => {
			const isAll = wide >= all * (1 - 1e-9);
			this.app().set({ t0: isAll ? null : Math.round(from), t1: isAll ? null : Math.round(from + wide) });
		}, 200);
	}

	private timeAt(x: number): number {
		const frame = this.canvas.getBoundingClientRect();
		return this.place.t0 + ((x - frame.left - this.place.left) / (frame.width - this.place.left)) * (this.place.t1 - this.place.t0);
	}

	private spanAt(event: PointerEvent): Shown["span"] {
		const frame = this.canvas.getBoundingClientRect(), y = event.clientY - frame.top - AXIS + this.place.top;
		const track = event.clientY - frame.top < AXIS ? undefined : trackAt(this.tracks, y);
		if (!track || !this.spans || event.clientX - frame.left < this.place.left) return null;
		return this.describe(track, Math.floor((y - track.top - HEADER) / LINE), this.timeAt(event.clientX));
	}

	private describe(track: TrackRow, depth: number, time: number): Shown["span"] {
		const span = depth < 0 || !this.spans ? -1 : this.spans.at(track.track, depth, time);
		if (span < 0 || !this.spans) return null;
		return { track, depth, start: this.spans.start[span] as number, end: this.spans.end[span] as number, name: this.spans.name(span), layer: this.spans.layer[span] as number,
			many: this.spans.many[span] as number };
	}

	private zoom(factor: number, at: number): void {
		const wide = (this.place.t1 - this.place.t0) * factor, part = (at - this.place.t0) / (this.place.t1 - this.place.t0);
		this.show(at - wide * part, at + wide * (1 - part));
	}

	private pan(part: number, lines = 0): void {
		const step = (this.place.t1 - this.place.t0) * part;
		this.show(this.place.t0 + step, this.place.t1 + step, this.place.top + lines * LINE);
	}

	select(shown: Shown["span"]): void {
		this.extra.selected = shown && { track: shown.track.track, depth: shown.depth, start: shown.start, end: shown.end };
		this.tell.span(shown);
		if (shown) this.app().say(words(shown));
		this.draw();
	}

	measure(range: [number, number] | null): void {
		this.extra.measure = range;
		this.tell.measure(range && [Math.min(...range), Math.max(...range)]);
		this.draw();
	}

	// ---- pointer and keys ----

	private down(event: PointerEvent): void {
		if (event.button > 1) return;
		this.canvas.focus({ preventScroll: true });
		this.canvas.setPointerCapture(event.pointerId);
		this.drag = { x: event.clientX, y: event.clientY, time: this.timeAt(event.clientX), isPan: event.button === 1 || event.shiftKey, place: { ...this.place }, moved: false };
		event.preventDefault();
	}

	private move(event: PointerEvent): void {
		const drag = this.drag;
		if (!drag) {
			const span = this.spanAt(event);
			this.tell.tip(event.clientX, event.clientY, span && words(span));
			return;
		}
		if (!drag.moved && Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) < 4) return;
		drag.moved = true;
		this.tell.tip(0, 0, null);
		if (drag.isPan) {
			const step = ((drag.x - event.clientX) / (this.canvas.clientWidth - this.place.left)) * (drag.place.t1 - drag.place.t0);
			this.show(drag.place.t0 + step, drag.place.t1 + step, drag.place.top + drag.y - event.clientY);
		} else this.measure([drag.time, this.timeAt(event.clientX)]);
	}

	private up(event: PointerEvent): void {
		const drag = this.drag;
		this.drag = null;
		if (!drag) return;
		if (!drag.moved) this.select(this.spanAt(event));
		else if (this.extra.measure) {
			const [a, b] = this.extra.measure;
			this.app().set({ m0: Math.round(Math.min(a, b)), m1: Math.round(Math.max(a, b)) });
		}
	}

	private wheel(event: WheelEvent): void {
		event.preventDefault();
		const lines = event.deltaMode === 1 ? 16 : 1;
		if (event.ctrlKey) this.zoom(Math.exp(event.deltaY * lines * 0.004), this.timeAt(event.clientX));
		else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(((event.deltaX || event.deltaY) * lines) / this.canvas.clientWidth);
		else this.show(this.place.t0, this.place.t1, this.place.top + event.deltaY * lines);
	}

	private neighbour(way: number): void {
		const at = this.extra.selected, track = at ? this.tracks.find((one) => one.track === at.track) : this.tracks.find((one) => one.spans > 0);
		if (!track || !this.spans) return;
		const line = this.spans.line(track.track, at?.depth ?? 0);
		const span = line[at ? this.spans.first(line, at.start) + way : this.spans.first(line, this.place.t0)];
		if (span === undefined) return;
		const shown = this.describe(track, at?.depth ?? 0, this.spans.start[span] as number);
		this.select(shown);
		if (shown && (shown.start < this.place.t0 || shown.end > this.place.t1)) {
			const half = (this.place.t1 - this.place.t0) / 2, middle = (shown.start + shown.end) / 2;
			this.show(middle - half, middle + half);
		}
	}

	private key(event: KeyboardEvent): void {
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		const middle = (this.place.t0 + this.place.t1) / 2, selected = this.extra.selected;
		const acts: Record<string, () => void> = {
			w: () => this.zoom(0.7, middle), "+": () => this.zoom(0.7, middle), s: () => this.zoom(1 / 0.7, middle), "-": () => this.zoom(1 / 0.7, middle),
			a: () => this.pan(-0.2), d: () => this.pan(0.2), ArrowLeft: () => this.pan(-0.1), ArrowRight: () => this.pan(0.1), ArrowUp: () => this.pan(0, -2), ArrowDown: () => this.pan(0, 2),
			",": () => this.neighbour(-1), ".": () => this.neighbour(1), 0: () => this.show(...this.range),
			f: () => {
				const span = selected && this.spans ? this.spans.at(selected.track, selected.depth, selected.start) : -1;
				if (span < 0 || !this.spans) return this.show(...this.range);
				const [a, b] = [this.spans.start[span] as number, this.spans.end[span] as number];
				this.show(a - (b - a) / 2, b + (b - a) / 2);
			},
			m: () => {
				const span = selected && this.spans ? this.spans.at(selected.track, selected.depth, selected.start) : -1;
				if (span >= 0 && this.spans) this.measure([this.spans.start[span] as number, this.spans.end[span] as number]);
				else this.measure([this.place.t0, this.place.t1]);
			},
			Escape: () => {
				this.measure(null);
				this.app().set({ m0: null, m1: null });
				this.select(null);
			},
		};
		const act = acts[event.key];
		if (!act) return;
		event.preventDefault();
		act();
	}
}

function words(span: NonNullable<Shown["span"]>): string {
	return `${span.name}; ${LAYER_NAMES[span.layer] ?? "other"}; ${amount(span.end - span.start, "ns")}, from ${amount(span.start, "ns")}, ${span.track.name}${
		span.many > 1 ? `; ${span.many} spans that are narrower than a pixel` : ""}`;
}

function Tracks({ tracks, query }: { tracks: TrackRow[]; query: Query }) {
	const app = useApp();
	const canvas = useRef<HTMLCanvasElement>(null), board = useRef<Board | null>(null), newest = useRef(app);
	newest.current = app;
	const [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null);
	const [span, setSpan] = useState<Shown["span"]>(null);
	const [measure, setMeasure] = useState<[number, number] | null>(null);
	const [error, setError] = useState<Error | null>(null);
	useEffect(() => {
		if (!canvas.current) return;
		const made = new Board(canvas.current, () => newest.current, query, tracks, { span: setSpan, measure: setMeasure, error: setError,
			tip: (x, y, text) => setTip(text === null ? null : { x, y, text }) });
		board.current = made;
		Object.assign(canvas.current, { plumbTimes: made.times });
		return () => made.end();
	}, [tracks]);
	useEffect(() => board.current?.draw(), [app.look]);
	const note = app.source.note("timeline/spans", query);
	const isWhole = tracks.every((track) => track.source === "spans");
	const count = tracks.reduce((sum, track) => sum + (track.spans || 0), 0);
	return (
		<div class="page">
			<h1 class="unseen">Timeline</h1>
			<p class="summary">{isWhole ? `All ${amount(count, null)} spans of the trace.` : `The newest GPU work, ${amount(count, null)} spans: a run without --trace keeps no more.`}
				{" "}{note ? `In this page, ${note}.` : "Drag to measure."}</p>
			<div class="split">
				<div class="charts"><div class="chart">
					<canvas ref={canvas} tabIndex={0} role="application" aria-roledescription="timeline"
						aria-label={`Timeline of ${tracks.length} tracks. w and s zoom, a and d move, comma and full stop go from span to span, m measures.`} />
					{tip && <div class="tip" aria-hidden="true" style={{ left: `${Math.min(tip.x + 12, innerWidth - 260)}px`, top: `${tip.y + 18}px` }}>{tip.text}</div>}
					{error && <div class="over notice" role="alert">{error.message}</div>}
				</div></div>
				{(span || measure) && (
					<aside class="details" aria-label="Selection">
						{span && <>
							<p class="row"><strong class="name">{span.name}</strong><button type="button" aria-label="Close the details" onClick={() => board.current?.select(null)}>×</button></p>
							<p>{words({ ...span, name: LAYER_NAMES[span.layer] ?? "other" })}</p>
							<p class="row"><CopyButton text={() => span.name}>Copy name</CopyButton>
								<a href={app.link("flame", { search: span.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").slice(0, 400) })}>Show it in the flame graph</a></p>
						</>}
						{measure && <Sums range={measure} query={query} />}
					</aside>
				)}
			</div>
		</div>
	);
}

const COLUMNS: TableColumn[] = [
	{ id: "name", title: "name", isNumber: false, words: (value) => short(String(value)) },
	{ id: "sum", title: "sum", isNumber: true, unit: "ns" },
	{ id: "count", title: "count", isNumber: true },
	{ id: "share", title: "of the range", isNumber: true, words: (value) => percent(value as number) },
];

/** What runs in the range, by name. While you drag, the newest range that is answered is shown. */
function Sums({ range, query }: { range: [number, number]; query: Query }) {
	const app = useApp();
	const [sort, setSort] = useState("-sum");
	const asked: Query = { ...query, t0: Math.round(range[0]), t1: Math.max(Math.round(range[0]) + 1, Math.round(range[1])), top: 200 };
	const loaded = useAnswer(canonical("timeline/sum", asked), async (signal) => (await app.source.tables("timeline/sum", asked, signal))[0] ?? null);
	const table = valueOf(loaded), wide = range[1] - range[0];
	const cell = useMemo(() => (row: number, column: number): Cell => column === 3 ? (table?.column("sum").number(row) ?? 0) / wide
		: table?.column(COLUMNS[column]?.id ?? "").cell(row) ?? null, [table, wide]);
	return <>
		<div class="row"><h2>{amount(wide, "ns")} measured</h2><CsvButton name="timeline" rows={() => [["name", "sum_ns", "count"],
			...Array.from({ length: table?.rows ?? 0 }, (_, row) => [cell(row, 0), cell(row, 1), cell(row, 2)])]} /></div>
		{loaded.state === "error" && <Trouble error={loaded.error} />}
		{table && <Table label="Sums in the measured range" columns={COLUMNS} count={table.rows} cell={cell} sort={sort} onSort={setSort} />}
	</>;
}

register({
	id: "timeline", title: "Timeline", key: "t", needs: { "spans|gpu_work": "plumb run --trace -- PROGRAM" }, follows: [], make: TimelinePage,
	keys: [["drag", "measure a range; its sums follow"], ["Ctrl+wheel, w s", "zoom"], ["Shift+drag, Shift+wheel, a d", "move in time"], [", .", "the span before, the span after"],
		["f", "the selected span, or all"], ["m", "measure the selected span, or what is visible"], ["Esc", "end measuring"]],
});
