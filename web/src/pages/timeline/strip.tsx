// SPDX-License-Identifier: Apache-2.0
// The strip above the tracks: all of the run, and the part that is visible. Drag the part, or its ends.
import type { RefObject } from "preact";
import { fitCanvas } from "../../draw/canvas";
import { PALETTES } from "../../draw/colours";
import { drawStrip } from "../../draw/timeline";
import { amount } from "../../draw/words";
import type { Look } from "../../state/theme";
import type { Board } from "./board";

const EDGE = 7;

/** Keeps the strip as a picture, and the marks on it as elements, so that a frame costs next to nothing. */
export class Strip {
	private drag: { x: number; t0: number; t1: number; part: "all" | "start" | "end" } | null = null;
	private said = "";

	private readonly watcher: ResizeObserver;

	constructor(private readonly canvas: HTMLCanvasElement, private readonly mark: HTMLElement, private readonly board: Board, look: () => Look) {
		this.watcher = new ResizeObserver(() => this.draw(look()));
		this.watcher.observe(canvas);
		this.place();
	}

	end(): void {
		this.watcher.disconnect();
	}

	/** Draws the whole run, as far as it is known. */
	draw(look: Look): void {
		fitCanvas(this.canvas);
		if (this.board.whole) drawStrip(this.canvas, this.board.layout.tracks.filter((track) => !track.counter), this.board.whole, this.board.range, PALETTES[look]);
	}

	/** Shows what is visible. */
	place(): void {
		const [from, to] = this.board.range, { t0, t1 } = this.board.place, wide = to - from;
		this.mark.style.left = `${((t0 - from) / wide) * 100}%`;
		this.mark.style.width = `${((t1 - t0) / wide) * 100}%`;
		const words = `${amount(t0, "ns")} to ${amount(t1, "ns")}`;
		if (words === this.said) return;
		this.said = words;
		this.mark.setAttribute("aria-valuenow", String(Math.round((((t0 + t1) / 2 - from) / wide) * 100)));
		this.mark.setAttribute("aria-valuetext", words);
	}

	private timeAt(x: number): number {
		const frame = this.canvas.getBoundingClientRect();
		return this.board.range[0] + ((x - frame.left) / frame.width) * (this.board.range[1] - this.board.range[0]);
	}

	down(event: PointerEvent): void {
		const mark = this.mark.getBoundingClientRect(), { t0, t1 } = this.board.place;
		(event.currentTarget as Element).setPointerCapture(event.pointerId);
		event.preventDefault();
		this.mark.focus({ preventScroll: true });
		if (event.clientX < mark.left - EDGE || event.clientX > mark.right + EDGE) {
			const middle = this.timeAt(event.clientX), half = (t1 - t0) / 2;
			this.board.show(middle - half, middle + half);
		}
		const isWide = mark.width > 4 * EDGE;
		const part = isWide && Math.abs(event.clientX - mark.left) < EDGE ? "start" : isWide && Math.abs(event.clientX - mark.right) < EDGE ? "end" : "all";
		this.drag = { x: event.clientX, t0: this.board.place.t0, t1: this.board.place.t1, part };
	}

	move(event: PointerEvent): void {
		if (!this.drag) return;
		const { x, t0, t1, part } = this.drag, step = this.timeAt(event.clientX) - this.timeAt(x);
		if (part === "start") this.board.show(Math.max(this.board.range[0], Math.min(t0 + step, t1 - 100)), t1);
		else if (part === "end") this.board.show(t0, Math.min(this.board.range[1], Math.max(t1 + step, t0 + 100)));
		else this.board.show(t0 + step, t1 + step);
	}

	up(): void {
		this.drag = null;
	}

	key(event: KeyboardEvent): void {
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		const { t0, t1 } = this.board.place, wide = t1 - t0, [from, to] = this.board.range;
		const acts: Record<string, () => void> = {
			ArrowLeft: () => this.board.show(t0 - wide / 2, t1 - wide / 2), ArrowRight: () => this.board.show(t0 + wide / 2, t1 + wide / 2),
			ArrowUp: () => this.board.show(t0 + wide / 4, t1 - wide / 4), ArrowDown: () => this.board.show(t0 - wide / 2, t1 + wide / 2),
			Home: () => this.board.show(from, from + wide), End: () => this.board.show(to - wide, to),
		};
		const act = acts[event.key];
		if (!act) return;
		event.preventDefault();
		act();
	}
}

/** STRIP is filled by the page, which makes it of the canvas and the mark. */
export function StripView({ canvas, mark, strip }: { canvas: RefObject<HTMLCanvasElement>; mark: RefObject<HTMLDivElement>; strip: { current: Strip | null } }) {
	return (
		<div class="strip" onPointerDown={(event) => strip.current?.down(event)} onPointerMove={(event) => strip.current?.move(event)}
			onPointerUp={() => strip.current?.up()} onPointerCancel={() => strip.current?.up()}>
			<canvas ref={canvas} aria-hidden="true" />
			<div ref={mark} class="window" tabIndex={0} role="slider" aria-label="The visible part of the run" aria-valuemin={0} aria-valuemax={100} aria-valuenow={50}
				onKeyDown={(event) => strip.current?.key(event)} />
		</div>
	);
}
