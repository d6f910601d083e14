// SPDX-License-Identifier: Apache-2.0
// A matrix of bytes as a heat map that is read by pointer and by keys.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { PALETTES } from "../../draw/colours";
import { cellAt, heatColours, heatStep, inkOn, layOut, leastOf, STEPS, type HeatScale } from "../../draw/heat";
import { amount, visible } from "../../draw/words";
import { useApp } from "../../state/app";
import { mostOf, type Cells, type Party } from "./data";

/** "3" of "GPU 3": the axis says that these are GPUs. */
export function shortLabel(party: Party): string {
	return visible(party.label).replace(/^GPU (of )?/, "");
}

export interface MatrixProps {
	title: string;
	/** What a row and a column are. */
	axes: [string, string];
	cells: Cells;
	scale: HeatScale;
	parties: Party[];
	picked: [number, number] | null;
	party: number | null;
	words: (row: number, column: number) => string;
	onPick: (row: number, column: number) => void;
}

function brief(bytes: number): string {
	for (const [size, unit] of [[2 ** 40, "T"], [2 ** 30, "G"], [2 ** 20, "M"], [2 ** 10, "K"]] as [number, string][]) {
		if (bytes >= size) return `${bytes / size >= 9.95 ? Math.round(bytes / size) : (bytes / size).toFixed(1)}${unit}`;
	}
	return String(bytes);
}

export function Matrix({ title, axes, cells, scale, parties, picked, party, words, onPick }: MatrixProps) {
	const app = useApp(), canvas = useRef<HTMLCanvasElement>(null), count = parties.length;
	const [at, setAt] = useState<[number, number] | null>(null), isOver = useRef(false);
	const labels = parties.map(shortLabel), layout = layOut(count, labels.reduce((max, label) => Math.max(max, label.length), 0));
	useLayoutEffect(() => {
		const box = canvas.current, ratio = window.devicePixelRatio || 1, context = box?.getContext("2d");
		if (!box || !context) return;
		box.width = Math.round(layout.width * ratio);
		box.height = Math.round(layout.height * ratio);
		context.scale(ratio, ratio);
		const palette = PALETTES[app.look], colours = heatColours(app.look), { cell, left, top } = layout;
		context.clearRect(0, 0, layout.width, layout.height);
		context.font = "11px system-ui, sans-serif";
		context.textBaseline = "middle";
		context.fillStyle = palette.quiet;
		labels.forEach((label, index) => {
			context.textAlign = "right";
			if (index % layout.down === 0) context.fillText(label, left - 4, top + (index + 0.5) * cell, left - 6);
			context.textAlign = "center";
			if (index % layout.across === 0) context.fillText(label, left + (index + 0.5) * cell, top / 2, layout.across * cell);
		});
		cells.forEach((row, y) => row.forEach((bytes, x) => {
			const step = heatStep(bytes, scale);
			if (step >= 0) {
				context.fillStyle = colours[step] as string;
				context.fillRect(left + x * cell, top + y * cell, cell, cell);
				if (cell >= 34) {
					context.fillStyle = inkOn(colours[step] as string);
					context.textAlign = "center";
					context.fillText(brief(bytes), left + (x + 0.5) * cell, top + (y + 0.5) * cell, cell - 2);
				}
			}
		}));
		context.strokeStyle = palette.line;
		context.globalAlpha = cell > 12 ? 0.5 : 0.25;
		context.lineWidth = 1;
		context.beginPath();
		for (let line = 0; line <= count; line++) {
			context.moveTo(left + line * cell + 0.5, top);
			context.lineTo(left + line * cell + 0.5, top + count * cell);
			context.moveTo(left, top + line * cell + 0.5);
			context.lineTo(left + count * cell, top + line * cell + 0.5);
		}
		context.stroke();
		context.globalAlpha = 1;
		const frame = (x: number, y: number, width: number, height: number, colour: string, thick: number) => {
			context.strokeStyle = colour;
			context.lineWidth = thick;
			context.strokeRect(left + x * cell + 0.5, top + y * cell + 0.5, width * cell, height * cell);
		};
		if (party !== null) {
			frame(party, 0, 1, count, palette.text, 1);
			frame(0, party, count, 1, palette.text, 1);
		}
		if (at) frame(at[1], at[0], 1, 1, palette.quiet, 2);
		if (picked) frame(picked[1], picked[0], 1, 1, palette.mark, 2.5);
	}, [cells, scale, parties, picked?.[0], picked?.[1], party, at, app.look]);

	const move = (next: [number, number] | null, isSpoken = false) => {
		if (next?.[0] === at?.[0] && next?.[1] === at?.[1]) return;
		setAt(next);
		if (next && isSpoken) app.say(words(...next));
	};
	const find = (event: MouseEvent): [number, number] | null => {
		const frame = (event.currentTarget as Element).getBoundingClientRect();
		return cellAt(layout, count, event.clientX - frame.left, event.clientY - frame.top);
	};
	const key = (event: KeyboardEvent) => {
		const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key], now = at ?? picked;
		if (event.ctrlKey || event.altKey || event.metaKey) return;
		if (step) {
			const clamp = (value: number) => Math.max(0, Math.min(count - 1, value));
			move(now ? [clamp(now[0] + (step[0] as number)), clamp(now[1] + (step[1] as number))] : [0, 0], true);
		} else if (event.key === "Home") move([0, 0], true);
		else if ((event.key === "Enter" || event.key === " ") && now) onPick(...now);
		else return;
		event.preventDefault();
	};
	const shown = at ?? picked;
	return (
		<figure class="matrix">
			<h2>{title}</h2>
			<p class="quiet axes">↓ {axes[0]}, → {axes[1]}</p>
			<div class="scrolled">
				<canvas ref={canvas} tabIndex={0} role="application" aria-roledescription="heat map" style={{ width: `${layout.width}px`, height: `${layout.height}px` }}
					aria-label={`${title}: ${count} by ${count}. Rows: ${axes[0]}. Columns: ${axes[1]}. Arrows move, Enter chooses. The table of pairs has the same numbers.`}
					onPointerMove={(event) => { isOver.current = true; move(find(event)); }} onPointerLeave={() => { isOver.current = false; move(null); }}
					onBlur={() => !isOver.current && move(null)} onClick={(event) => { const found = find(event); if (found) onPick(...found); }} onKeyDown={key} />
			</div>
			<figcaption>{shown ? words(...shown) : mostOf(cells) > 0 ? "Point at a cell, or choose it." : "Nothing was moved."}</figcaption>
		</figure>
	);
}

/** What the colours say. */
export function HeatLegend({ scale, unit, what }: { scale: HeatScale; unit: "B" | null; what: string }) {
	const app = useApp(), colours = heatColours(app.look);
	if (!(scale.most > 0)) return null;
	const value = (at: number) => (unit === "B" ? amount(Math.round(at), unit) : Number(at.toPrecision(2)).toString());
	return (
		<p class="legend heat-scale"><span>{what}:</span>
			{[0, 3, STEPS - 1].map((step) => <span key={step}><span class="swatch" style={{ background: colours[step] }} />
				{step === 0 ? `up to ${value(leastOf(1, scale))}` : step === STEPS - 1 ? `more than ${value(leastOf(step, scale))}, up to ${value(scale.most)}` : `up to ${value(leastOf(step + 1, scale))}`}</span>)}
			<span class="quiet">Each colour is {scale.times.toFixed(1)} times the one before.</span>
		</p>
	);
}
