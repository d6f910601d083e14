// SPDX-License-Identifier: Apache-2.0
// What the timeline draws, and what pointers and keys do.
import { fitCanvas } from "../../draw/canvas";
import { LAYER_NAMES, PALETTES } from "../../draw/colours";
import { binAt, readCounters, type Counter } from "../../draw/counters";
import { firstAfter } from "../../draw/series";
import { AXIS, drawTimeline, HEADER, layTracks, LINE, readBands, Spans, topOf, trackAt, type Extra, type Layout, type Place, type TrackRow } from "../../draw/timeline";
import { amount } from "../../draw/words";
import type { Query } from "../../protocol/query";
import type { Finding } from "../../protocol/types";
import { findingWords, Marks } from "../../shell/marks";
import type { App } from "../../state/app";
import { Finer, type Covering } from "../../state/finer";

/** A span that is shown, or a bin of a counter. */
export interface Shown {
	track: TrackRow;
	depth: number;
	start: number;
	end: number;
	name: string;
	layer: number;
	many: number;
	/** The findings that it is about. */
	found: readonly Finding[];
	/** Of a counter: its greatest value there; NaN: there is no sample. */
	max?: number;
}

export function trackWords(track: TrackRow): string {
	return [track.name, track.rank === null ? "" : `rank ${track.rank}`, track.process === null ? "" : `process ${track.process}`].filter(Boolean).join(", ");
}

/** What is known of a span beside its name. */
export function facts(span: Shown): string {
	const { counter, process, rank } = span.track;
	if (counter) {
		const place = [counter.device !== null && `GPU ${counter.device}`, rank !== null && `rank ${rank}`, process !== null && `sampled by process ${process}`].filter(Boolean).join(", ");
		if (Number.isNaN(span.max)) return `no sample at ${amount(span.start, "ns")}; ${place}`;
		return `mean of ${amount(span.end - span.start, "ns")}, from ${amount(span.start, "ns")}; max ${amount(span.max, counter.unit)}; ${place}`;
	}
	return `${LAYER_NAMES[span.layer] ?? "other"}; ${amount(span.end - span.start, "ns")}, from ${amount(span.start, "ns")}, ${span.track.name}${
		span.many > 1 ? `; ${span.many} spans that are narrower than a pixel` : ""}`;
}

export function words(span: Shown): string {
	return [span.name, findingWords(span.found), facts(span)].filter(Boolean).join("; ");
}

/** What plumb answered for a range. Bands come later. */
interface Part extends Covering {
	readonly spans: Spans;
	readonly arrows: Extra["arrows"];
	readonly counters: Extra["counters"];
	bands: Extra["bands"];
	/** Its spans are marked by these. */
	marks?: Marks;
}

/** What is drawn, and what pointers and keys do; without the framework, because it changes with every frame. */
export class Board {
	place: Place;
	layout: Layout;
	/** All of the run: what the strip shows. */
	whole: Spans | null = null;
	private readonly waiting: ((spans: Spans) => void)[] = [];
	readonly extra: Extra;
	private frame = 0;
	private settle = 0;
	private readonly ended = new AbortController();
	private readonly finer: Finer<Part>;
	private drag: { x: number; y: number; time: number; isPan: boolean; place: Place; moved: boolean } | null = null;
	private readonly cleanup: (() => void)[] = [];
	readonly range: [number, number];
	readonly times: number[] = [];

	constructor(private readonly canvas: HTMLCanvasElement, private readonly app: () => App, private readonly query: Query, private readonly tracks: TrackRow[],
		private readonly tell: { span(shown: Shown | null): void; tip(x: number, y: number, text: string | null): void;
			measure(range: [number, number] | null): void; error(error: Error): void; pin(track: number): void; place(place: Place): void; whole(): void }) {
		this.shown = tracks;
		this.layout = layTracks(tracks, "", [], 0);
		this.range = [Math.min(...tracks.map((track) => track.start)), Math.max(...tracks.map((track) => track.end))];
		if (!(this.range[1] > this.range[0])) this.range[1] = this.range[0] + 1;
		const values = app().state.values, number = (key: string, usual: number) => (values[key] === undefined || Number.isNaN(Number(values[key])) ? usual : Number(values[key]));
		this.place = { t0: number("t0", this.range[0]), t1: number("t1", this.range[1]), top: 0, left: 180 };
		if (!(this.place.t1 > this.place.t0)) [this.place.t0, this.place.t1] = this.range;
		const m0 = number("m0", NaN), m1 = number("m1", NaN);
		this.extra = { counters: new Map(), bands: new Map(), arrows: [], selected: null, measure: m1 > m0 ? [m0, m1] : null, origin: Math.min(0, this.range[0]) };
		if (this.extra.measure) tell.measure(this.extra.measure);
		this.finer = new Finer<Part>({
			all: this.range, isOffline: app().source.isOffline, ask: (range, px, signal) => this.ask(range, px, signal), onError: tell.error,
			onAnswer: (part) => {
				if (part.range[0] <= this.range[0] && part.range[1] >= this.range[1]) this.keepWhole(part.spans);
				this.canvas.dataset["spans"] = String(part.spans.count);
				this.canvas.dataset["bins"] = String([...part.counters.values()].reduce((sum, one) => sum + one.count, 0));
				this.draw();
				void this.askBands(part);
			},
		});
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
		this.finer.end();
		this.ended.abort();
		cancelAnimationFrame(this.frame);
		clearTimeout(this.settle);
	}

	private resize(): void {
		fitCanvas(this.canvas);
		this.place.left = this.canvas.clientWidth < 600 ? 84 : 180;
		this.lay();
		this.paint();
		this.need();
	}

	private marks = new Marks([]);

	/** What the findings are about. */
	setMarks(marks: Marks): void {
		this.marks = marks;
		this.draw();
	}

	private mark(part: Part): void {
		const { spans } = part, { marks } = this;
		if (part.marks === marks) return;
		part.marks = marks;
		spans.mark((span) => !marks.isEmpty && this.found(spans, span).length > 0);
		this.canvas.dataset["found"] = String(spans.marked.reduce((sum, one) => sum + one, 0));
	}

	private found(spans: Spans, span: number): readonly Finding[] {
		return this.marks.span(spans.context[span] as number, spans.layer[span] as number, spans.plainName(span));
	}

	private filter = "";
	private pins: number[] = [];
	private shown: TrackRow[];

	/** Shows those of TRACKS that fit FILTER, and pinned ones first. */
	choose(tracks: TrackRow[], filter: string, pins: number[]): void {
		Object.assign(this, { shown: tracks, filter, pins });
		this.lay();
		this.show(this.place.t0, this.place.t1);
	}

	private lay(): void {
		this.layout = layTracks(this.shown, this.filter, this.pins, Math.max(0, this.canvas.clientHeight - AXIS) / 2);
		this.canvas.dataset["tracks"] = String(this.layout.tracks.length);
	}

	draw(): void {
		if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
	}

	private paint(): void {
		cancelAnimationFrame(this.frame);
		this.frame = 0;
		const begin = performance.now();
		const part = this.finer.best(this.place.t0, this.place.t1);
		if (part) Object.assign(this.extra, { arrows: part.arrows, bands: part.bands, counters: part.counters });
		if (part) this.mark(part);
		drawTimeline(this.canvas, this.layout, part?.spans ?? null, this.place, PALETTES[this.app().look], this.extra);
		this.tell.place(this.place);
		this.times.push(performance.now() - begin);
		if (this.times.length > 600) this.times.shift();
	}

	// ---- answers ----

	private need(): void {
		this.finer.need(this.place.t0, this.place.t1, this.canvas.width);
	}

	/** The finest spans of what is visible. */
	private get spans(): Spans | null {
		return this.finer.best(this.place.t0, this.place.t1)?.spans ?? null;
	}

	private async ask([from, to]: [number, number], px: number, signal: AbortSignal): Promise<Part> {
		const t0 = Math.floor(from), t1 = Math.ceil(to), source = this.app().source, asked = { ...this.query, t0, t1, px };
		const [[spans], [arrows], [counters]] = await Promise.all([source.tables("timeline/spans", asked, signal), source.tables("timeline/arrows", asked, signal),
			this.tracks.some((track) => track.counter) ? source.tables("timeline/counters", asked, signal) : []]);
		if (!spans) throw new Error("the answer has no spans");
		const number = (name: string, row: number) => arrows?.column(name).number(row) ?? NaN;
		return { range: [t0, t1], px, spans: new Spans(spans, [t0, t1], px), counters: counters ? readCounters(counters) : new Map(), bands: new Map(), arrows: Array.from({ length: Math.min(20000, arrows?.rows ?? 0) }, (_, row) =>
			({ fromTrack: number("from_track", row), from: number("from", row), toTrack: number("to_track", row), to: number("to", row) })) };
	}

	private keepWhole(spans: Spans): void {
		this.whole = spans;
		for (const done of this.waiting.splice(0)) done(spans);
		this.tell.whole();
	}

	/** `whole`, once it is there. */
	held(): Promise<Spans> {
		return this.whole ? Promise.resolve(this.whole) : new Promise((done) => this.waiting.push(done));
	}

	/** Iterations come after the first picture: plumb may have to find them first. */
	private async askBands(part: Part): Promise<void> {
		try {
			const asked = { ...this.query, t0: part.range[0], t1: part.range[1], px: part.px };
			const [bands] = await this.app().source.tables("timeline/bands", asked, this.ended.signal);
			if (bands) part.bands = readBands(bands);
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
		const deepest = Math.max(0, this.layout.scrolled + this.layout.fixed + AXIS - this.canvas.clientHeight);
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

	private spanAt(event: PointerEvent): Shown | null {
		const frame = this.canvas.getBoundingClientRect(), y = event.clientY - frame.top, track = trackAt(this.layout, this.place, y);
		if (!track || !this.spans || event.clientX - frame.left < this.place.left) return null;
		return this.describe(track, Math.floor((y - topOf(this.layout, this.place, track) - HEADER) / LINE), this.timeAt(event.clientX));
	}

	/** The track whose name is there. */
	private nameAt(event: PointerEvent): TrackRow | undefined {
		const frame = this.canvas.getBoundingClientRect();
		return event.clientX - frame.left < this.place.left ? trackAt(this.layout, this.place, event.clientY - frame.top) : undefined;
	}

	private describe(track: TrackRow, depth: number, time: number): Shown | null {
		if (track.counter) return this.describeBin(track, time);
		const span = depth < 0 || !this.spans ? -1 : this.spans.at(track.track, depth, time);
		if (span < 0 || !this.spans) return null;
		return { track, depth, start: this.spans.start[span] as number, end: this.spans.end[span] as number, name: this.spans.name(span), layer: this.spans.layer[span] as number,
			many: this.spans.many[span] as number, found: this.found(this.spans, span) };
	}

	private counter(track: TrackRow): Counter | undefined {
		return track.counter ? this.finer.best(this.place.t0, this.place.t1)?.counters.get(track.track) : undefined;
	}

	/** What a counter is at a time; without a sample there it is unknown. */
	private describeBin(track: TrackRow, time: number): Shown | null {
		const counter = this.counter(track), bin = counter ? binAt(counter, time) : -1;
		if (!this.spans || !track.counter) return null;
		const [start, end, mean, max] = bin < 0 ? [time, time, NaN, NaN] : [counter?.start[bin], counter?.end[bin], counter?.mean[bin], counter?.max[bin]] as [number, number, number, number];
		return { track, depth: 0, start, end, name: `${track.counter.metric}: ${amount(mean, track.counter.unit)}`, layer: 4, many: 1, found: [], max };
	}

	/** The bin STEP after the one of a time; without STEP, the first one that ends after it. */
	private selectBin(track: TrackRow, time: number, step: number | null): void {
		const counter = this.counter(track), at = counter ? firstAfter(counter, time) + (step ?? 0) : -1, start = counter?.start[at];
		if (start === undefined) return step === null ? this.app().say(`${trackWords(track)} has no sample here`) : undefined;
		this.selectAt(track, 0, start);
	}

	private zoom(factor: number, at: number): void {
		const wide = (this.place.t1 - this.place.t0) * factor, part = (at - this.place.t0) / (this.place.t1 - this.place.t0);
		this.show(at - wide * part, at + wide * (1 - part));
	}

	private pan(part: number, lines = 0): void {
		const step = (this.place.t1 - this.place.t0) * part;
		this.show(this.place.t0 + step, this.place.t1 + step, this.place.top + lines * LINE);
	}

	select(shown: Shown | null): void {
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
			const span = this.spanAt(event), name = this.nameAt(event);
			this.tell.tip(event.clientX, event.clientY, span ? words(span) : name ? `${trackWords(name)}. Click to ${name.isPinned ? "unpin" : "pin"} it.` : null);
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
		const name = this.nameAt(event);
		if (!drag.moved && name) this.tell.pin(name.track);
		else if (!drag.moved) this.select(this.spanAt(event));
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

	/** Goes to the track above or below: its first visible span. */
	private step(way: number): void {
		const shown = this.layout.tracks, at = shown.findIndex((one) => one.track === this.extra.selected?.track);
		const track = shown[Math.max(0, Math.min(shown.length - 1, at + way))];
		if (!track || !this.spans) return;
		if (track.counter) {
			this.selectBin(track, this.place.t0, null);
			return this.reveal(track);
		}
		const line = this.spans.line(track.track, 0), span = line[this.spans.first(line, this.place.t0)];
		const found = span === undefined ? null : this.describe(track, 0, this.spans.start[span] as number);
		if (!found) return this.app().say(`${trackWords(track)} has no span here`);
		this.select(found);
		this.reveal(track);
	}

	private reveal(track: TrackRow): void {
		const top = topOf(this.layout, this.place, track), low = this.canvas.clientHeight - HEADER - LINE;
		if (!track.isFixed && (top < AXIS + this.layout.fixed || top > low)) this.show(this.place.t0, this.place.t1, track.top);
	}

	private neighbour(way: number): void {
		const at = this.extra.selected, shown = this.layout.tracks, track = (at && shown.find((one) => one.track === at.track)) ?? shown.find((one) => one.spans > 0) ?? shown[0];
		if (!track || !this.spans) return;
		const isHere = at?.track === track.track;
		if (track.counter) return isHere ? this.selectBin(track, at.start, way) : this.selectBin(track, this.place.t0, null);
		const depth = isHere ? at.depth : 0, line = this.spans.line(track.track, depth);
		const span = line[isHere ? this.spans.first(line, at.start) + way : this.spans.first(line, this.place.t0)];
		if (span === undefined) return;
		this.selectAt(track, depth, this.spans.start[span] as number);
	}

	private selectAt(track: TrackRow, depth: number, start: number): void {
		const shown = this.describe(track, depth, start);
		this.select(shown);
		if (shown && (shown.start < this.place.t0 || shown.end > this.place.t1)) {
			const half = (this.place.t1 - this.place.t0) / 2, middle = (shown.start + shown.end) / 2;
			this.show(middle - half, middle + half);
		}
	}

	/** The next span that carries a mark, or the one before, by track, line and time. */
	private nextFound(way: number): void {
		const { spans } = this, at = this.extra.selected;
		if (!spans) return;
		const all = this.layout.tracks.flatMap((track) => Array.from({ length: track.depth }, (_, depth) => [...spans.line(track.track, depth)]
			.filter((span) => spans.marked[span]).map((span) => ({ track, depth, start: spans.start[span] as number }))).flat());
		const tracks = this.layout.tracks.map((track) => track.track);
		const order = (one: { track: number; depth: number; start: number }, other: { track: number; depth: number; start: number }) =>
			tracks.indexOf(one.track) - tracks.indexOf(other.track) || one.depth - other.depth || one.start - other.start;
		const isPast = (one: (typeof all)[number]) => !at || way * order({ ...one, track: one.track.track }, at) > 0;
		if (way < 0) all.reverse();
		const next = all.find(isPast) ?? all[0];
		if (!next) return this.app().say("No span that is shown has a finding");
		this.selectAt(next.track, next.depth, next.start);
		this.reveal(next.track);
	}

	/** When the selected span or bin begins and ends; null if nothing is selected. A place without a sample is no bin. */
	private selectedRange(): [number, number] | null {
		const selected = this.extra.selected;
		if (!selected) return null;
		if (this.tracks.some((track) => track.track === selected.track && track.counter)) return selected.end > selected.start ? [selected.start, selected.end] : null;
		const span = this.spans ? this.spans.at(selected.track, selected.depth, selected.start) : -1;
		return span < 0 || !this.spans ? null : [this.spans.start[span] as number, this.spans.end[span] as number];
	}

	private pin(): void {
		const track = this.extra.selected?.track ?? this.layout.tracks[0]?.track;
		if (track !== undefined) this.tell.pin(track);
	}

	private key(event: KeyboardEvent): void {
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		const middle = (this.place.t0 + this.place.t1) / 2;
		const acts: Record<string, () => void> = {
			w: () => this.zoom(0.7, middle), "+": () => this.zoom(0.7, middle), s: () => this.zoom(1 / 0.7, middle), "-": () => this.zoom(1 / 0.7, middle),
			a: () => this.pan(-0.2), d: () => this.pan(0.2), ArrowLeft: () => this.pan(-0.1), ArrowRight: () => this.pan(0.1), ArrowUp: () => this.pan(0, -2), ArrowDown: () => this.pan(0, 2),
			j: () => this.step(1), k: () => this.step(-1), p: () => this.pin(), n: () => this.nextFound(1), N: () => this.nextFound(-1),
			",": () => this.neighbour(-1), ".": () => this.neighbour(1), 0: () => this.show(...this.range),
			f: () => {
				const range = this.selectedRange();
				if (!range) return this.show(...this.range);
				const [a, b] = range;
				this.show(a - (b - a) / 2, b + (b - a) / 2);
			},
			m: () => this.measure(this.selectedRange() ?? [this.place.t0, this.place.t1]),
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
