// SPDX-License-Identifier: Apache-2.0
// Figures of a table's rows: bars, and a roofline.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { PALETTES, PARTS } from "../draw/colours";
import { prepareText } from "../draw/text";
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

const HEIGHT = 130, FOOT = 18;

/** One bar for each row, in the order of the rows. Bars narrower than a pixel become their greatest. */
export function Bars({ label, values, words, onOpen, isMarked, picked }: {
	label: string; values: number[]; words: (index: number) => string; onOpen?: (index: number) => void;
	/** Bars that stand out, such as outliers; and the one that is chosen. */
	isMarked?: (index: number) => boolean; picked?: number;
}) {
	const app = useApp();
	const [at, setAt] = useState(-1);
	const most = values.reduce((max, value) => (value > max ? value : max), 0);
	const canvas = useCanvas(HEIGHT, (context, width, height) => {
		const palette = PALETTES[app.look], step = width / values.length;
		context.clearRect(0, 0, width, height);
		values.forEach((value, index) => {
			if (!(value > 0) || most <= 0) return;
			const tall = Math.max(1, (value / most) * (height - FOOT - 4));
			context.fillStyle = index === at || index === picked ? palette.select : isMarked?.(index) ? palette.mark : (PARTS[app.look]["host"] as string);
			context.fillRect(index * step, height - FOOT - tall, Math.max(1, step > 3 ? step - 1 : step), tall);
		});
		context.fillStyle = palette.line;
		context.fillRect(0, height - FOOT, width, 1);
	}, [values, at, picked, app.look]);
	if (values.length === 0 || most <= 0) return null;
	const indexOf = (event: MouseEvent) => {
		const frame = (event.currentTarget as Element).getBoundingClientRect();
		return Math.max(0, Math.min(values.length - 1, Math.floor(((event.clientX - frame.left) / frame.width) * values.length)));
	};
	return (
		<figure class="bars">
			<canvas ref={canvas} role="img" aria-label={`${label}: one bar for each of the ${values.length} rows of the table`}
				onPointerMove={(event) => setAt(indexOf(event))} onPointerLeave={() => setAt(-1)} onClick={(event) => onOpen?.(indexOf(event))} />
			<figcaption>{at >= 0 && at < values.length ? words(at) : label}</figcaption>
		</figure>
	);
}

export interface Dot {
	intensity: number;
	throughput: number;
	name: string;
}

/** A roofline: both axes are logarithmic. `peak` in Gflop/s, `bandwidth` in GB/s. */
export function Roofline({ dots, peak, bandwidth }: { dots: Dot[]; peak: number; bandwidth: number }) {
	const app = useApp();
	const height = 260, left = 52, foot = 34;
	const ridge = peak / bandwidth;
	const lowX = Math.min(ridge / 100, ...dots.map((dot) => dot.intensity)) / 2, highX = Math.max(ridge * 10, ...dots.map((dot) => dot.intensity)) * 2;
	const lowY = Math.min(peak / 1e4, ...dots.map((dot) => dot.throughput)) / 2, highY = peak * 2;
	const place = (value: number, low: number, high: number) => Math.log(value / low) / Math.log(high / low);
	const canvas = useCanvas(height, (context, width) => {
		const palette = PALETTES[app.look];
		const x = (value: number) => left + place(value, lowX, highX) * (width - left - 8), y = (value: number) => 4 + (1 - place(value, lowY, highY)) * (height - foot - 4);
		context.clearRect(0, 0, width, height);
		context.strokeStyle = palette.text;
		context.lineWidth = 1.5;
		context.beginPath();
		context.moveTo(x(lowX), y(Math.max(lowY, lowX * bandwidth)));
		context.lineTo(x(ridge), y(peak));
		context.lineTo(x(highX), y(peak));
		context.stroke();
		context.fillStyle = palette.quiet;
		context.textAlign = "center";
		for (let power = Math.ceil(Math.log10(lowX)); 10 ** power < highX; power++) context.fillText(power < 0 ? `1e${power}` : String(10 ** power), x(10 ** power), height - foot + 12);
		context.textAlign = "right";
		for (let power = Math.ceil(Math.log10(lowY)); 10 ** power < highY; power++) context.fillText(power > 3 || power < 0 ? `1e${power}` : String(10 ** power), left - 6, y(10 ** power));
		context.textAlign = "left";
		context.fillStyle = PARTS[app.look]["host"] as string;
		for (const dot of dots) {
			context.beginPath();
			context.arc(x(dot.intensity), y(dot.throughput), 4, 0, 7);
			context.fill();
		}
	}, [dots, peak, bandwidth, app.look]);
	return (
		<figure class="bars">
			<canvas ref={canvas} class="tall" role="img" aria-label={`Roofline of ${dots.length} rows. The peak is ${peak} Gflop/s, the bandwidth ${bandwidth} GB/s.`} />
			<figcaption>Gflop/s over flop per byte. A dot below the slope waits for memory, one below the flat part for arithmetic.</figcaption>
		</figure>
	);
}
