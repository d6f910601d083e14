// SPDX-License-Identifier: Apache-2.0
// Figures of a table's rows: bars, and a roofline.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { PALETTES, PARTS, type Palette } from "../draw/colours";
import { fit, prepareText } from "../draw/text";
import { amount } from "../draw/words";
import { useApp } from "../state/app";

function useCanvas(height: number, paint: (context: CanvasRenderingContext2D, width: number, height: number) => void, key: unknown[]) {
	const canvas = useRef<HTMLCanvasElement>(null);
	useLayoutEffect(() => {
		const at = canvas.current;
		if (!at) return;
		const draw = () => {
			const ratio = window.devicePixelRatio || 1;
			at.width = Math.round(at.clientWidth * ratio);
			at.height = Math.round(height * ratio);
			const context = at.getContext("2d");
			if (!context) return;
			context.scale(ratio, ratio);
			prepareText(context);
			paint(context, at.clientWidth, height);
		};
		const watcher = new ResizeObserver(draw);
		watcher.observe(at);
		draw();
		return () => watcher.disconnect();
	}, key);
	return canvas;
}

const HEIGHT = 130, FOOT = 18, LABELS_MOST = 40;

export interface BarsProps {
	label: string;
	values: number[];
	words: (index: number) => string;
	onOpen?: ((index: number) => void) | undefined;
	/** Bars that stand out, such as outliers; and the one that is chosen. */
	isMarked?: (index: number) => boolean;
	picked?: number;
	/** The colour of a bar. */
	colour?: (index: number) => string;
	/** The parts of each bar, from below; together no more than its value. */
	stack?: { colour: string; values: number[] }[];
	/** A name below each bar, if there is room. */
	name?: (index: number) => string;
	/** A part of 1 for each bar, as a line. */
	line?: number[];
	/** A line across all bars. */
	limit?: { value: number; name: string };
	isLow?: boolean;
	/** Higher bars are cut here, so that the others can be seen; they have a notch. */
	cap?: number;
}

/** One bar for each row, in the order of the rows. Bars narrower than a pixel become their greatest. */
export function Bars({ label, values, words, onOpen, isMarked, picked, colour, stack, name, line, limit, isLow, cap }: BarsProps) {
	const app = useApp();
	const [at, setAt] = useState(-1);
	const most = Math.min(cap ?? Infinity, values.reduce((max, value) => (value > max ? value : max), limit?.value ?? 0));
	const canvas = useCanvas(isLow ? 84 : HEIGHT, (context, width, height) => {
		const palette = PALETTES[app.look], step = width / values.length, usual = PARTS[app.look]["host"] as string;
		const tall = (value: number) => (value / most) * (height - FOOT - 4);
		context.clearRect(0, 0, width, height);
		const bar = (index: number, from: number, to: number, fill: string) => {
			context.fillStyle = fill;
			context.fillRect(index * step, height - FOOT - tall(to), Math.max(1, step > 3 ? step - 1 : step), tall(to) - tall(from));
		};
		values.forEach((value, index) => {
			if (!(value > 0) || most <= 0) return;
			const isOver = index === at || index === picked;
			bar(index, 0, Math.min(most, Math.max(value, most / (height - FOOT))), isOver ? palette.select : isMarked?.(index) ? palette.mark : stack ? palette.line : colour?.(index) ?? usual);
			let sum = 0;
			if (value > most) bar(index, most * 0.9, most * 0.93, palette.background);
			for (const part of isOver ? [] : stack ?? []) bar(index, sum, (sum += part.values[index] || 0), part.colour);
		});
		context.fillStyle = palette.line;
		context.fillRect(0, height - FOOT, width, 1);
		if (name && values.length <= LABELS_MOST && step > 34) {
			context.fillStyle = palette.quiet;
			values.forEach((_, index) => context.fillText(fit(name(index), step - 4), index * step + 2, height - FOOT / 2));
		}
		if (limit) {
			context.fillStyle = palette.mark;
			context.fillRect(0, height - FOOT - tall(limit.value), width, 1);
			context.fillText(limit.name, 4, height - FOOT - tall(limit.value) + 9);
		}
		if (line) {
			context.strokeStyle = palette.text;
			context.lineWidth = 1.5;
			context.beginPath();
			line.forEach((part, index) => context.lineTo((index + 0.5) * step, 3 + (1 - part) * (height - FOOT - 6)));
			context.stroke();
		}
	}, [values, at, picked, app.look, stack, line, limit?.value]);
	if (values.length === 0 || most <= 0) return null;
	const indexOf = (event: MouseEvent) => {
		const frame = (event.currentTarget as Element).getBoundingClientRect();
		return Math.max(0, Math.min(values.length - 1, Math.floor(((event.clientX - frame.left) / frame.width) * values.length)));
	};
	return (
		<figure class="bars">
			<canvas ref={canvas} class={isLow ? "low" : ""} role="img" aria-label={`${label}: one bar for each of the ${values.length} rows of the table`}
				onPointerMove={(event) => setAt(indexOf(event))} onPointerLeave={() => setAt(-1)} onClick={(event) => onOpen?.(indexOf(event))} />
			<figcaption>{at >= 0 && at < values.length ? words(at) : label}</figcaption>
		</figure>
	);
}

export interface Dot {
	/** flop per byte. */
	intensity: number;
	/** Gflop/s. */
	throughput: number;
	name: string;
	/** Its place among the groups, such as the file that it is of. */
	group: number;
	/** It is larger, and its label is shown: a whole model. */
	label?: string;
}

export interface Roof {
	/** Gflop/s. */
	peak: number;
	/** GB/s. */
	bandwidth: number;
	name: string;
}

/** Groups differ by colour and shape. */
export function groupColour(look: "light" | "dark", group: number): string {
	return (PALETTES[look].layers[group % 5] as string);
}

function mark(context: CanvasRenderingContext2D, shape: number, x: number, y: number, size: number): void {
	context.beginPath();
	if (shape % 4 === 0) context.arc(x, y, size, 0, 7);
	else if (shape % 4 === 1) context.rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8);
	else {
		const corners = shape % 4 === 2 ? [[0, -1.2], [1.1, 0.9], [-1.1, 0.9]] : [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]];
		corners.forEach(([dx, dy], index) => context[index ? "lineTo" : "moveTo"](x + (dx as number) * size, y + (dy as number) * size));
		context.closePath();
	}
	context.fill();
	context.stroke();
}

const LEFT = 56, UNDER = 36, TALL = 300;

/** A roofline: both axes are logarithmic. Each GPU has its roof. */
export function Roofline({ dots, roofs, groups }: { dots: Dot[]; roofs: Roof[]; groups: string[] }) {
	const app = useApp();
	const [at, setAt] = useState(-1);
	const first = roofs[0] as Roof;
	const ridges = roofs.map((roof) => roof.peak / roof.bandwidth), peak = Math.max(...roofs.map((roof) => roof.peak));
	const lowX = Math.min(...ridges.map((ridge) => ridge / 100), ...dots.map((dot) => dot.intensity)) / 2, highX = Math.max(...ridges.map((ridge) => ridge * 10), ...dots.map((dot) => dot.intensity)) * 2;
	const lowY = Math.min(first.peak / 1e4, ...dots.map((dot) => dot.throughput)) / 2, highY = Math.max(peak, ...dots.map((dot) => dot.throughput)) * 2;
	const part = (value: number, low: number, high: number) => Math.log(value / low) / Math.log(high / low);
	const x = (value: number, width: number) => LEFT + part(value, lowX, highX) * (width - LEFT - 8), y = (value: number) => 4 + (1 - part(value, lowY, highY)) * (TALL - UNDER - 4);
	const canvas = useCanvas(TALL, (context, width) => {
		const palette = PALETTES[app.look];
		context.clearRect(0, 0, width, TALL);
		drawLogAxes(context, palette, { lowX, highX, lowY, highY, width, x: (value) => x(value, width), y });
		context.strokeStyle = palette.text;
		context.fillStyle = palette.text;
		context.lineWidth = 1.5;
		roofs.forEach((roof, index) => {
			context.beginPath();
			context.moveTo(x(lowX, width), y(Math.max(lowY, lowX * roof.bandwidth)));
			context.lineTo(x(ridges[index] as number, width), y(roof.peak));
			context.lineTo(x(highX, width), y(roof.peak));
			context.stroke();
			context.textAlign = "right";
			context.fillText(`${roof.name ? `${roof.name}: ` : ""}${amount(roof.peak, null)} Gflop/s, ${amount(roof.bandwidth, null)} GB/s`, width - 10, y(roof.peak) - 9);
		});
		context.textAlign = "left";
		context.strokeStyle = palette.text;
		context.lineWidth = 0.6;
		const labels: [number, number][] = [];
		dots.forEach((dot, index) => {
			context.fillStyle = index === at ? palette.select : groupColour(app.look, dot.group);
			mark(context, dot.group, x(dot.intensity, width), y(dot.throughput), dot.label === undefined ? 4 : 7);
			if (dot.label === undefined) return;
			const place: [number, number] = [x(dot.intensity, width) + 11, y(dot.throughput)];
			while (labels.some((other) => Math.abs(other[0] - place[0]) < 40 && Math.abs(other[1] - place[1]) < 13)) place[1] += 13;
			labels.push(place);
			context.fillStyle = palette.text;
			context.fillText(dot.label, ...place);
		});
	}, [dots, roofs, at, app.look]);
	const nearest = (event: MouseEvent) => {
		const frame = (event.currentTarget as Element).getBoundingClientRect();
		let best = -1, least = 400;
		dots.forEach((dot, index) => {
			const far = (x(dot.intensity, frame.width) - event.clientX + frame.left) ** 2 + (y(dot.throughput) - event.clientY + frame.top) ** 2;
			if (far < least) [best, least] = [index, far];
		});
		return best;
	};
	const over = dots[at];
	const bound = (dot: Dot) => { const roof = roofs[Math.min(dot.group, roofs.length - 1)] as Roof; return dot.intensity < roof.peak / roof.bandwidth ? "memory limits it" : "arithmetic limits it"; };
	return (
		<figure class="bars">
			<canvas ref={canvas} class="roof" role="img" onPointerMove={(event) => setAt(nearest(event))} onPointerLeave={() => setAt(-1)}
				aria-label={`Roofline with ${dots.length} marks. ${roofs.map((roof) => `The peak ${roof.name && `of ${roof.name} `}is ${roof.peak} Gflop/s, the bandwidth ${roof.bandwidth} GB/s`).join(". ")}. The table has the same numbers.`} />
			<figcaption>{over ? `${over.name}: ${amount(over.throughput, null)} Gflop/s, ${over.intensity.toPrecision(3)} flop/byte; ${bound(over)}`
				: "Gflop/s over flop per byte. A mark below the slope waits for memory, one below the flat part for arithmetic. The closer to the roof, the better."}</figcaption>
			{groups.length > 1 && <ul class="legend">{groups.map((group, index) => <li key={index}>
				<svg width="14" height="14" aria-hidden="true"><Shape shape={index} colour={groupColour(app.look, index)} /></svg> {group}</li>)}</ul>}
		</figure>
	);
}

function Shape({ shape, colour }: { shape: number; colour: string }) {
	if (shape % 4 === 0) return <circle cx="7" cy="7" r="5" fill={colour} stroke="currentColor" stroke-width="0.6" />;
	if (shape % 4 === 1) return <rect x="2.5" y="2.5" width="9" height="9" fill={colour} stroke="currentColor" stroke-width="0.6" />;
	return <path d={shape % 4 === 2 ? "M7 1.5L12.5 11.5L1.5 11.5z" : "M7 1L13 7L7 13L1 7z"} fill={colour} stroke="currentColor" stroke-width="0.6" />;
}

interface LogAxes {
	lowX: number;
	highX: number;
	lowY: number;
	highY: number;
	width: number;
	x: (value: number) => number;
	y: (value: number) => number;
}

function drawLogAxes(context: CanvasRenderingContext2D, palette: Palette, axes: LogAxes): void {
	const ticks = (low: number, high: number) => Array.from({ length: Math.max(0, Math.floor(Math.log10(high)) - Math.ceil(Math.log10(low)) + 1) }, (_, index) => Math.ceil(Math.log10(low)) + index);
	const text = (power: number) => (power >= 0 && power < 4 ? String(10 ** power) : `1e${power}`);
	for (const power of ticks(axes.lowX, axes.highX)) {
		context.fillStyle = palette.line;
		context.globalAlpha = 0.3;
		context.fillRect(axes.x(10 ** power), 4, 1, TALL - UNDER - 4);
		context.globalAlpha = 1;
		context.fillStyle = palette.quiet;
		context.textAlign = "center";
		context.fillText(text(power), axes.x(10 ** power), TALL - UNDER + 10);
	}
	for (const power of ticks(axes.lowY, axes.highY)) {
		context.fillStyle = palette.line;
		context.globalAlpha = 0.3;
		context.fillRect(LEFT, axes.y(10 ** power), axes.width - LEFT - 8, 1);
		context.globalAlpha = 1;
		context.fillStyle = palette.quiet;
		context.textAlign = "right";
		context.fillText(text(power), LEFT - 6, axes.y(10 ** power));
	}
	context.textAlign = "left";
	context.fillText("Gflop/s", 2, 10);
	context.textAlign = "right";
	context.fillText("flop per byte", axes.width - 10, TALL - 8);
	context.textAlign = "left";
}
