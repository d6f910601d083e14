// SPDX-License-Identifier: Apache-2.0
// One flame graph on a canvas: what is visible, the answers for it, and pointers and keys. It knows neither pages nor addresses.
import { fitCanvas } from "../../draw/canvas";
import { PALETTES } from "../../draw/colours";
import { drawFlame, Flame, MATCH, ROW, type View } from "../../draw/flame";
import type { Query } from "../../protocol/query";
import type { Source } from "../../protocol/source";
import { Finer } from "../../state/finer";
import type { Look } from "../../state/theme";

export interface Listener {
	/** A box is selected; -1: none. */
	onSelect(flame: Flame, box: number): void;
	onHover(flame: Flame, box: number, x: number, y: number): void;
	onMenu(flame: Flame, box: number, x: number, y: number): void;
	/** What is visible has changed and stays so for now. */
	onView(view: View, isStep: boolean): void;
	onAnswer(flame: Flame): void;
	onError(error: Error): void;
	/** Out of the root that is focused. */
	onOut(): void;
}

const NARROWEST = 1e-8, GLIDE = 140;

export class Controller {
	private view: View = { x0: 0, x1: 1, top: 0 };
	private readonly finer: Finer<Flame>;
	private selected = -1;
	private hovered = -1;
	private isNew = true;
	private frame = 0;
	private settle = 0;
	private glide = 0;
	private readonly cleanup: (() => void)[] = [];
	private drag: { x: number; y: number; view: View; moved: boolean } | null = null;
	/** Milliseconds that the newest frames took to draw, for measurements. */
	readonly times: number[] = [];

	constructor(private readonly canvas: HTMLCanvasElement, private readonly source: Source, private readonly query: Query, private look: Look,
		private readonly listener: Listener, view: View, selected: number) {
		this.view = { ...view };
		this.selected = selected;
		this.finer = new Finer<Flame>({
			all: [0, 1], isOffline: source.isOffline, ask: (range, px, signal) => this.ask(range, px, signal), onError: listener.onError,
			onAnswer: (flame) => {
				this.hovered = -1;
				listener.onAnswer(flame);
				if (this.isNew) this.showMarked(flame);
				this.isNew = false;
				this.draw();
			},
		});
		const watcher = new ResizeObserver(() => this.resize());
		watcher.observe(canvas);
		this.cleanup.push(() => watcher.disconnect());
		this.on("pointerdown", (event) => this.pointerDown(event));
		this.on("pointermove", (event) => this.pointerMove(event));
		this.on("pointerup", (event) => this.pointerUp(event));
		this.on("pointercancel", () => (this.drag = null));
		this.on("pointerleave", () => this.hover(-1, 0, 0));
		this.on("dblclick", () => this.fit());
		this.on("contextmenu", (event) => {
			event.preventDefault();
			this.menu(event.clientX, event.clientY);
		});
		this.on("wheel", (event) => this.wheel(event), { passive: false });
		this.on("keydown", (event) => this.key(event));
		this.resize();
	}

	private on<K extends keyof HTMLElementEventMap>(name: K, act: (event: HTMLElementEventMap[K]) => void, options?: AddEventListenerOptions): void {
		this.canvas.addEventListener(name, act, options);
		this.cleanup.push(() => this.canvas.removeEventListener(name, act, options));
	}

	end(): void {
		for (const act of this.cleanup) act();
		this.finer.end();
		cancelAnimationFrame(this.frame);
		cancelAnimationFrame(this.glide);
		clearTimeout(this.settle);
	}

	setLook(look: Look): void {
		this.look = look;
		this.draw();
	}

	/** From outside: the address, the way back of the browser. */
	setView(view: View): void {
		if (Math.abs(view.x0 - this.view.x0) < 1e-9 && Math.abs(view.x1 - this.view.x1) < 1e-9) return;
		this.move({ ...view, top: this.view.top }, null);
	}

	/** The finest answer that covers what is visible. */
	flame(): Flame | null {
		return this.finer.best(this.view.x0, this.view.x1);
	}

	// ---- answers ----

	private get isSearching(): boolean {
		const { search, named } = this.query;
		return Boolean(search) || (Array.isArray(named) && named.length > 0);
	}

	private need(): void {
		this.finer.need(this.view.x0, this.view.x1, this.canvas.width);
	}

	private async ask(range: [number, number], px: number, signal: AbortSignal): Promise<Flame> {
		const tables = await this.source.tables("flame", { ...this.query, x0: range[0], x1: range[1], px }, signal);
		const boxes = tables.find((table) => table.id === "flame"), total = tables.find((table) => table.id === "flame.total");
		if (!boxes || !total) throw new Error("the answer has no flame graph; this plumb and this page are of different versions");
		const flame = new Flame(boxes, total, range, px);
		const { search, named } = this.query;
		if (this.source.isOffline && Array.isArray(named) && named.length) flame.mark((name) => named.includes(name));
		else if (this.source.isOffline && typeof search === "string" && !flame.search(search)) throw new Error("the search is no regular expression; correct it");
		return flame;
	}

	// ---- drawing ----

	private resize(): void {
		if (fitCanvas(this.canvas)) this.paint();
		this.need();
	}

	draw(): void {
		if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
	}

	private paint(): void {
		cancelAnimationFrame(this.frame);
		this.frame = 0;
		const flame = this.flame();
		if (!flame) return;
		const begin = performance.now();
		drawFlame(this.canvas, flame, this.view, PALETTES[this.look],
			{ selected: this.selected, hovered: this.hovered, searching: this.isSearching });
		this.times.push(performance.now() - begin);
		if (this.times.length > 600) this.times.shift();
	}

	/** Shows another part. isStep: true, a step of its own on the way back; false, a part of one; null, not told at all. */
	private move(view: View, isStep: boolean | null): void {
		const width = Math.max(NARROWEST, Math.min(1, view.x1 - view.x0));
		const x0 = Math.max(0, Math.min(1 - width, view.x0));
		const deepest = Math.max(0, ((this.flame()?.rows ?? 0) + 1) * ROW - this.canvas.clientHeight);
		this.view = { x0, x1: x0 + width, top: Math.max(0, Math.min(deepest, view.top)) };
		this.draw();
		this.need();
		clearTimeout(this.settle);
		if (isStep !== null) this.settle = window.setTimeout(() => this.listener.onView(this.view, isStep), isStep ? 0 : 200);
	}

	private glideTo(to: View): void {
		cancelAnimationFrame(this.glide);
		if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
			this.move(to, true);
			return;
		}
		const from = { ...this.view }, begin = performance.now();
		const step = () => {
			const part = Math.min(1, (performance.now() - begin) / GLIDE), ease = 1 - (1 - part) ** 3;
			const between = (a: number, b: number) => a + (b - a) * ease;
			if (part < 1) {
				this.move({ x0: between(from.x0, to.x0), x1: between(from.x1, to.x1), top: between(from.top, to.top) }, null);
				this.glide = requestAnimationFrame(step);
			} else this.move(to, true);
		};
		step();
	}

	fit(): void {
		this.glideTo({ x0: 0, x1: 1, top: 0 });
	}

	zoomTo(flame: Flame, box: number): void {
		const y = (flame.depth[box] as number) * ROW, height = this.canvas.clientHeight;
		const top = y < this.view.top || y > this.view.top + height - 3 * ROW ? y - height / 3 : this.view.top;
		this.glideTo({ x0: flame.x0[box] as number, x1: flame.x1[box] as number, top: Math.max(0, top) });
	}

	private zoom(factor: number, at: number): void {
		const width = this.view.x1 - this.view.x0, x = this.view.x0 + width * at;
		const next = Math.max(NARROWEST, Math.min(1, width * factor));
		this.move({ x0: x - next * at, x1: x + next * (1 - at), top: this.view.top }, false);
	}

	private pan(part: number, rows = 0): void {
		const step = (this.view.x1 - this.view.x0) * part;
		this.move({ x0: this.view.x0 + step, x1: this.view.x1 + step, top: this.view.top + rows * ROW }, false);
	}

	/** Out by one: to the caller of what fills the width, then to the whole, then out of the focus. */
	out(): void {
		const flame = this.flame();
		const width = this.view.x1 - this.view.x0;
		if (!flame || width > 1 - 1e-9) {
			this.listener.onOut();
			return;
		}
		let box = flame.at(0, (this.view.x0 + this.view.x1) / 2);
		for (let row = 1, next = box; next >= 0; row++) {
			if ((flame.x1[next] as number) - (flame.x0[next] as number) > width * 1.001) box = next;
			else break;
			next = flame.at(row, (this.view.x0 + this.view.x1) / 2);
		}
		if (box < 0 || (flame.x1[box] as number) - (flame.x0[box] as number) <= width * 1.001) this.fit();
		else this.glideTo({ x0: flame.x0[box] as number, x1: flame.x1[box] as number, top: this.view.top });
	}

	// ---- pointer ----

	private boxAt(event: { clientX: number; clientY: number }): number {
		const flame = this.flame(), frame = this.canvas.getBoundingClientRect();
		if (!flame) return -1;
		const x = this.view.x0 + ((event.clientX - frame.left) / frame.width) * (this.view.x1 - this.view.x0);
		return flame.at(Math.floor((event.clientY - frame.top + this.view.top) / ROW), x);
	}

	private pointerDown(event: PointerEvent): void {
		if (event.button !== 0) return;
		this.canvas.focus({ preventScroll: true });
		this.drag = { x: event.clientX, y: event.clientY, view: { ...this.view }, moved: false };
		this.canvas.setPointerCapture(event.pointerId);
	}

	private pointerMove(event: PointerEvent): void {
		const drag = this.drag;
		if (!drag) {
			this.hover(this.boxAt(event), event.clientX, event.clientY);
			return;
		}
		if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 4) return;
		drag.moved = true;
		const step = ((drag.x - event.clientX) / this.canvas.clientWidth) * (drag.view.x1 - drag.view.x0);
		this.move({ x0: drag.view.x0 + step, x1: drag.view.x1 + step, top: drag.view.top + drag.y - event.clientY }, false);
	}

	private pointerUp(event: PointerEvent): void {
		const drag = this.drag;
		this.drag = null;
		if (!drag || drag.moved || event.detail > 1) return;
		const flame = this.flame(), box = this.boxAt(event);
		if (!flame) return;
		this.select(flame, box);
		if (box >= 0) this.zoomTo(flame, box);
	}

	private hover(box: number, x: number, y: number): void {
		const flame = this.flame();
		if (!flame) return;
		if (box !== this.hovered) {
			this.hovered = box;
			this.draw();
		}
		this.listener.onHover(flame, box, x, y);
	}

	private wheel(event: WheelEvent): void {
		event.preventDefault();
		const frame = this.canvas.getBoundingClientRect();
		const lines = event.deltaMode === 1 ? 16 : 1;
		if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			this.pan(((event.deltaX || event.deltaY) * lines) / frame.width);
		} else if (event.altKey) {
			this.pan(0, (event.deltaY * lines) / ROW);
		} else this.zoom(Math.exp(event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)), (event.clientX - frame.left) / frame.width);
	}

	private menu(x: number, y: number): void {
		const flame = this.flame();
		if (!flame) return;
		const box = this.boxAt({ clientX: x, clientY: y });
		if (box < 0) return;
		this.select(flame, box);
		this.listener.onMenu(flame, box, x, y);
	}

	// ---- selection ----

	select(flame: Flame, box: number): void {
		this.selected = box < 0 ? -1 : (flame.node[box] as number);
		this.draw();
		this.listener.onSelect(flame, box);
	}

	/** Scrolls to the first row with a box that a name marks. */
	private showMarked(flame: Flame): void {
		if (!Array.isArray(this.query["named"]) || !this.query["named"].length) return;
		const box = flame.flags.findIndex((flags) => (flags & MATCH) !== 0), height = this.canvas.clientHeight;
		const y = box < 0 ? 0 : (flame.depth[box] as number) * ROW;
		if (y > height - 2 * ROW) this.move({ ...this.view, top: y - height / 3 }, null);
	}

	/** To the next box that the search matches, or the one before. */
	private stepToMatch(flame: Flame, from: number, way: number): void {
		for (let at = 1; at <= flame.count; at++) {
			const box = (((from < 0 ? (way > 0 ? -1 : 0) : from) + way * at) % flame.count + flame.count) % flame.count;
			if ((flame.flags[box] as number) & MATCH) return this.step(flame, box);
		}
	}

	/** Selects and keeps it visible. */
	private step(flame: Flame, box: number): void {
		if (box < 0) return;
		this.select(flame, box);
		const a = flame.x0[box] as number, b = flame.x1[box] as number, width = this.view.x1 - this.view.x0;
		const y = (flame.depth[box] as number) * ROW, height = this.canvas.clientHeight;
		const top = y < this.view.top ? y : y + ROW > this.view.top + height ? y + ROW - height : this.view.top;
		let x0 = this.view.x0;
		if (b <= x0 || a >= this.view.x1) x0 = (a + b - width) / 2;
		this.move({ x0, x1: x0 + width, top }, false);
	}

	private key(event: KeyboardEvent): void {
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		const flame = this.flame();
		if (!flame || flame.count === 0) return;
		let box = flame.find(this.selected);
		if (box < 0 && event.key.startsWith("Arrow")) {
			this.step(flame, Math.max(0, flame.at(0, (this.view.x0 + this.view.x1) / 2)));
			event.preventDefault();
			return;
		}
		const acts: Record<string, () => void> = {
			ArrowLeft: () => this.step(flame, flame.besides(box, -1)),
			ArrowRight: () => this.step(flame, flame.besides(box, 1)),
			ArrowUp: () => this.step(flame, flame.parentOf(box)),
			ArrowDown: () => this.step(flame, flame.childOf(box)),
			n: () => this.isSearching && this.stepToMatch(flame, box, 1),
			N: () => this.isSearching && this.stepToMatch(flame, box, -1),
			Enter: () => box >= 0 && this.zoomTo(flame, box),
			Escape: () => this.out(),
			w: () => this.zoom(0.7, 0.5),
			s: () => this.zoom(1 / 0.7, 0.5),
			a: () => this.pan(-0.2),
			d: () => this.pan(0.2),
			"+": () => this.zoom(0.7, 0.5),
			"-": () => this.zoom(1 / 0.7, 0.5),
			PageUp: () => this.pan(0, -10),
			PageDown: () => this.pan(0, 10),
			f: () => this.fit(),
			0: () => this.fit(),
		};
		const openMenu = () => {
			if (box < 0) return;
			const frame = this.canvas.getBoundingClientRect(), width = this.view.x1 - this.view.x0;
			const x = ((Math.max(this.view.x0, flame.x0[box] as number) - this.view.x0) / width) * frame.width;
			this.listener.onMenu(flame, box, frame.left + Math.min(frame.width - 20, x + 8), frame.top + ((flame.depth[box] as number) + 1) * ROW - this.view.top);
		};
		if (event.key === "ContextMenu" || (event.shiftKey && event.key === "F10") || event.key === "m") {
			event.preventDefault();
			openMenu();
			return;
		}
		const act = acts[event.key];
		if (!act) return;
		event.preventDefault();
		box = flame.find(this.selected);
		act();
	}
}
