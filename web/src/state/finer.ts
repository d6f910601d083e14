// SPDX-License-Identifier: Apache-2.0
// Answers for what is visible of something long, such as the width of a flame graph. The first answer is of the whole. Later ones are of
// a part, and are asked for when the one before is too coarse for the pixels that it covers.

/** What an answer covers, and how finely: the pixels of its range. */
export interface Covering {
	readonly range: readonly [number, number];
	readonly px: number;
}

export interface Asking<A extends Covering> {
	/** The whole. */
	readonly all: readonly [number, number];
	/** There is one answer, and no finer one. */
	readonly isOffline: boolean;
	ask(range: [number, number], px: number, signal: AbortSignal): Promise<A>;
	onAnswer(answer: A): void;
	onError(error: Error): void;
}

const FINE = 0.75, PAUSE = 60, WIDEST = 16384;

export class Finer<A extends Covering> {
	private whole: A | null = null;
	private part: A | null = null;
	private timer = 0;
	private stop: AbortController | null = null;
	private asked = "";
	/** What is visible: from, to, pixels. */
	private visible: [number, number, number] = [0, 0, 0];

	constructor(private readonly asking: Asking<A>) {}

	/** The finest answer that covers what is visible; otherwise that of the whole. */
	best(from: number, to: number): A | null {
		const near = (this.asking.all[1] - this.asking.all[0]) * 1e-12;
		const covers = this.part && this.part.range[0] <= from + near && this.part.range[1] >= to - near;
		return covers ? this.part : this.whole;
	}

	/** From `from` to `to` is visible, on so many pixels. Asks after a pause if that needs another answer. */
	need(from: number, to: number, pixels: number): void {
		clearTimeout(this.timer);
		this.visible = [from, to, pixels];
		if (pixels === 0) return;
		const { all, isOffline } = this.asking, wide = to - from, now = this.best(from, to);
		if (now && (isOffline || (now.px * wide) / (now.range[1] - now.range[0]) >= FINE * pixels)) return;
		// With a margin on both sides, so that moving shows no gap.
		const range: [number, number] = now ? [Math.max(all[0], from - wide / 2), Math.min(all[1], to + wide / 2)] : [all[0], all[1]];
		const px = now ? Math.min(WIDEST, Math.ceil((pixels * (range[1] - range[0])) / wide)) : pixels;
		this.timer = window.setTimeout(() => void this.ask(range, px), now ? PAUSE : 0);
	}

	end(): void {
		this.stop?.abort();
		clearTimeout(this.timer);
	}

	private async ask(range: [number, number], px: number): Promise<void> {
		const key = `${range.join(" ")} ${px}`;
		if (key === this.asked) return;
		this.asked = key;
		this.stop?.abort();
		const stop = (this.stop = new AbortController());
		try {
			const answer = await this.asking.ask(range, px, stop.signal);
			if (stop.signal.aborted) return;
			if (range[0] <= this.asking.all[0] && range[1] >= this.asking.all[1]) this.whole = answer;
			else this.part = answer;
			this.asking.onAnswer(answer);
			this.need(...this.visible);
		} catch (error) {
			if (stop.signal.aborted) return;
			this.asked = "";
			this.asking.onError(error instanceof Error ? error : new Error(String(error)));
		}
	}
}
