// SPDX-License-Identifier: Apache-2.0
// Where in an object its memory is reached: a strip of addresses for each GPU, or a matrix of the shape that the user gives.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { PALETTES } from "../../draw/colours";
import { heatColours, heatStep, scaleOf, type HeatScale } from "../../draw/heat";
import { amount, visible } from "../../draw/words";
import { useApp } from "../../state/app";
import { readShape, segmentsIn, segmentsOf, sizeOf, type Party, type Segment, type TrafficObject } from "./data";
import { HeatLegend } from "./matrix";

const ROW = 16, LEFT = 96, TALL = 320, ROWS_MOST = 80;

const hex = (offset: number) => `+0x${Math.round(offset).toString(16)}`;

/** Who reaches a range, most accesses first. */
function usersOf(found: readonly Segment[], start: number, end: number): [number, number][] {
	const sums = new Map<number, number>();
	for (const segment of found) {
		const part = Math.min(end, segment.end) - Math.max(start, segment.start);
		for (const [party, density] of segment.by) sums.set(party, (sums.get(party) ?? 0) + density * part);
	}
	return [...sums].sort((a, b) => b[1] - a[1]);
}

/** A picture of WIDTH × HEIGHT pixels, drawn anew when its box or KEY changes. */
function usePicture(height: number, paint: (context: CanvasRenderingContext2D, width: number, ratio: number) => void, key: unknown[]) {
	const canvas = useRef<HTMLCanvasElement>(null);
	useLayoutEffect(() => {
		const box = canvas.current;
		if (!box) return;
		const draw = () => {
			const ratio = window.devicePixelRatio || 1, context = box.getContext("2d");
			box.width = Math.round(box.clientWidth * ratio);
			box.height = Math.round(height * ratio);
			if (!context || box.clientWidth <= 0) return;
			context.scale(ratio, ratio);
			paint(context, box.clientWidth, ratio);
		};
		const watcher = new ResizeObserver(draw);
		watcher.observe(box);
		draw();
		return () => watcher.disconnect();
	}, key);
	return canvas;
}

export function Addresses({ object, parties, lines }: { object: TrafficObject; parties: Party[]; lines: string[] }) {
	const app = useApp(), size = sizeOf(object), text = app.state.values["shape"] ?? "", shape = readShape(text);
	const segments = useMemo(() => segmentsOf(object.histogram), [object]);
	const scale = useMemo(() => scaleOf(segments.flatMap((segment) => [segment.density, ...(shape ? [] : segment.by.values())])), [segments, shape === null]);
	if (segments.length === 0 || size === null) return <p class="quiet">Where in this object its memory was reached is not known. <code>plumb run --traffic=full</code> records it.</p>;
	const part = object.histogram.reduce((least, bin) => Math.min(least, bin.width), Infinity);
	const name = (party: number) => visible(parties[party]?.label ?? "unknown");
	const words = (start: number, end: number): string => {
		const users = usersOf(segmentsIn(segments, start, end), start, end);
		const by = users.length ? users.slice(0, 6).map(([party, accesses]) => `${name(party)} ${amount(Math.max(1, Math.round(accesses)), null)}`).join(", ") : "nobody";
		return `${hex(start)} to ${hex(end)}: accesses by ${by}${users.length > 6 ? ` and ${users.length - 6} others` : ""}`;
	};
	const bad = text !== "" && !shape;
	return (
		<figure class="addresses">
			<h3>Addresses of {visible(object.label)}</h3>
			<div class="tools">
				<label class="choice"><span>Shape, rows×columns</span>
					<input type="text" size={12} value={text} placeholder="as a strip" aria-invalid={bad} onChange={(event) => app.set({ shape: event.currentTarget.value.trim() || null })} /></label>
				{bad && <span role="alert">A shape is two numbers, such as 64×128.</span>}
				{shape && <span class="quiet">{size % (shape[0] * shape[1]) === 0 ? `an element has ${amount(size / (shape[0] * shape[1]), "B")}`
					: `${amount(size, "B")} are no whole number of bytes for each element`}; accesses are counted in parts of {amount(part, "B")}</span>}
			</div>
			{shape ? <Shaped shape={shape} size={size} segments={segments} scale={scale} words={words} label={visible(object.label)} />
				: <Strip size={size} segments={segments} scale={scale} name={name} words={words} label={visible(object.label)} />}
			<HeatLegend scale={scale} unit={null} what="Accesses per byte" />
			{lines.length > 0 && <p class="quiet">Lines that reach it: {lines.slice(0, 6).map(visible).join("; ")}{lines.length > 6 ? `; and ${lines.length - 6} more` : ""}</p>}
			{object.allocations > 1 && <p class="quiet">It is {amount(object.allocations, null)} allocations. The picture has one, with the accesses of all.</p>}
			{object.histogram_left_out > 0 && <p class="quiet">{amount(object.histogram_left_out, null)} parts are left out.</p>}
		</figure>
	);
}

function Strip({ size, segments, scale, name, words, label }: { size: number; segments: Segment[]; scale: HeatScale; name: (party: number) => string; words: (start: number, end: number) => string; label: string }) {
	const app = useApp(), [at, setAt] = useState<number | null>(null);
	const users = useMemo(() => usersOf(segments, 0, size).map(([party]) => party).slice(0, ROWS_MOST), [segments, size]);
	const height = users.length * ROW + 18;
	const canvas = usePicture(height, (context, width) => {
		const palette = PALETTES[app.look], colours = heatColours(app.look), wide = Math.max(1, width - LEFT);
		context.clearRect(0, 0, width, height);
		context.font = "11px system-ui, sans-serif";
		context.textBaseline = "middle";
		users.forEach((party, row) => {
			context.fillStyle = palette.text;
			context.textAlign = "right";
			context.fillText(name(party), LEFT - 6, (row + 0.5) * ROW, LEFT - 8);
			for (let x = 0; x < wide; x++) {
				const found = segmentsIn(segments, (x / wide) * size, ((x + 1) / wide) * size);
				const step = heatStep(found.reduce((max, segment) => Math.max(max, segment.by.get(party) ?? 0), 0), scale);
				if (step < 0) continue;
				context.fillStyle = colours[step] as string;
				context.fillRect(LEFT + x, row * ROW + 1, 1, ROW - 2);
			}
			context.strokeStyle = palette.line;
			context.lineWidth = 0.5;
			context.strokeRect(LEFT, row * ROW + 1, wide - 1, ROW - 2);
		});
		context.fillStyle = palette.quiet;
		context.textAlign = "left";
		context.fillText("+0x0", LEFT, height - 7);
		context.textAlign = "right";
		context.fillText(hex(size), width - 1, height - 7);
		if (at !== null) {
			context.fillStyle = palette.mark;
			context.fillRect(LEFT + at * wide - 0.5, 0, 1.5, height - 16);
		}
	}, [segments, size, at, app.look]);
	const range = (place: number): [number, number] => {
		const hit = segmentsIn(segments, place * size, place * size + size / 1024)[0];
		return hit ? [hit.start, hit.end] : [place * size, Math.min(size, place * size + size / 1024)];
	};
	const key = (event: KeyboardEvent) => {
		const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
		if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
		event.preventDefault();
		const here = at === null ? -1 : segments.findIndex((segment) => segment.end > at * size);
		const next = segments[Math.max(0, Math.min(segments.length - 1, at === null ? 0 : (here < 0 ? segments.length : here) + step))] as Segment;
		setAt((next.start + next.end) / 2 / size);
		app.say(words(next.start, next.end));
	};
	return <>
		<canvas ref={canvas} tabIndex={0} role="application" aria-roledescription="heat strip" style={{ height: `${height}px` }}
			aria-label={`Accesses to ${label} by address, one row for each of ${users.length} GPUs. Left and right move between the parts that were reached.`} onKeyDown={key} onBlur={() => setAt(null)}
			onPointerMove={(event) => { const frame = event.currentTarget.getBoundingClientRect(), part = (event.clientX - frame.left - LEFT) / (frame.width - LEFT); setAt(part >= 0 && part < 1 ? part : null); }}
			onPointerLeave={() => setAt(null)} />
		<figcaption>{at === null ? `${segments.length === 1 ? "1 part was" : `${segments.length} parts were`} reached.` : words(...range(at))}</figcaption>
	</>;
}

function Shaped({ shape, size, segments, scale, words, label }: { shape: [number, number]; size: number; segments: Segment[]; scale: HeatScale; words: (start: number, end: number) => string; label: string }) {
	const app = useApp(), [at, setAt] = useState<[number, number] | null>(null), [rows, columns] = shape, element = size / (rows * columns);
	const height = Math.round(Math.max(40, Math.min(TALL, 640 * (rows / columns))));
	const canvas = usePicture(height, (context, width) => {
		const palette = PALETTES[app.look], colours = heatColours(app.look);
		const down = Math.min(rows, height), across = Math.min(columns, Math.ceil(width));
		context.clearRect(0, 0, width, height);
		for (let y = 0; y < down; y++) {
			const row = Math.floor((y * rows) / down);
			for (let x = 0; x < across; x++) {
				const column = Math.floor((x * columns) / across), start = (row * columns + column) * element;
				const found = segmentsIn(segments, start, start + element * Math.max(1, columns / across));
				const step = heatStep(found.reduce((max, segment) => Math.max(max, segment.density), 0), scale);
				if (step < 0) continue;
				context.fillStyle = colours[step] as string;
				context.fillRect((x * width) / across, (y * height) / down, width / across + 0.3, height / down + 0.3);
			}
		}
		context.strokeStyle = palette.line;
		context.strokeRect(0.5, 0.5, width - 1, height - 1);
		if (at) {
			context.strokeStyle = palette.mark;
			context.lineWidth = 2;
			context.strokeRect((at[1] / columns) * width, (at[0] / rows) * height, Math.max(3, width / columns), Math.max(3, height / rows));
		}
	}, [segments, size, rows, columns, at, app.look]);
	const say = ([row, column]: [number, number]) => { const start = (row * columns + column) * element; return `row ${row}, column ${column}: ${words(start, start + element)}`; };
	const key = (event: KeyboardEvent) => {
		const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
		if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
		event.preventDefault();
		const clamp = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
		const next: [number, number] = at ? [clamp(at[0] + (step[0] as number), rows), clamp(at[1] + (step[1] as number), columns)] : [0, 0];
		setAt(next);
		app.say(say(next));
	};
	return <>
		<canvas ref={canvas} class="shaped" tabIndex={0} role="application" aria-roledescription="heat map" style={{ height: `${height}px` }} onKeyDown={key} onBlur={() => setAt(null)}
			aria-label={`Accesses to ${label} as ${rows} rows and ${columns} columns. Arrows move.`} onPointerLeave={() => setAt(null)}
			onPointerMove={(event) => {
				const frame = event.currentTarget.getBoundingClientRect(), row = Math.floor(((event.clientY - frame.top) / frame.height) * rows), column = Math.floor(((event.clientX - frame.left) / frame.width) * columns);
				setAt(row >= 0 && column >= 0 && row < rows && column < columns ? [row, column] : null);
			}} />
		<figcaption>{at ? say(at) : "Point at an element."}</figcaption>
	</>;
}
