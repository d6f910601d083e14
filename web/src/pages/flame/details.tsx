// SPDX-License-Identifier: Apache-2.0
// What is known about the selected box.
import type { ComponentChildren } from "preact";
import { LAYER_NAMES } from "../../draw/colours";
import type { Flame } from "../../draw/flame";
import { amount, percent, signedAmount, visible } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import type { FrameDetails, FrameValue, Origin } from "../../protocol/types";
import { useAnswer, useApp, valueOf } from "../../state/app";
import { CopyButton, Trouble } from "../../shell/parts";
import { useSampled } from "../../shell/sampled";

function place(file: string | null | undefined, line: number | null | undefined): string | null {
	return file ? `${visible(file)}${line ? `:${line}` : ""}` : null;
}

/** The names from the top to the box, as far as they are in the answer. */
export function pathOf(flame: Flame, box: number): string[] {
	const names: string[] = [];
	for (let at = box; at >= 0; at = flame.parentOf(at)) names.unshift(flame.name(at));
	return names;
}

export function Details({ flame, box, query, onClose }: { flame: Flame; box: number; query: Query; onClose: () => void }) {
	const app = useApp();
	const node = flame.node[box] as number;
	const asked: Query = { ...query, node };
	const loaded = useAnswer<FrameDetails>(canonical("frame", asked), (signal) => app.source.json<FrameDetails>("frame", asked, signal));
	const frame = valueOf(loaded)?.node === node ? valueOf(loaded) : null;
	const name = flame.name(box);
	const own = place(frame?.file, frame?.line), user = place(frame?.user?.file, frame?.user?.line);
	// A page in one file does not have the details of every box, but it has those above it.
	const path = frame ? frame.path : loaded.state === "error" ? pathOf(flame, box) : [];
	const editor = app.source.editor, sampled = useSampled()(frame?.layer === "gpu" || LAYER_NAMES[flame.layer[box] as number] === "GPU" ? frame?.name ?? name : null);
	const open = (file: string | null | undefined, line: number | null | undefined) => editor && file &&
		<button type="button" onClick={() => editor.open(file, line ?? null)} aria-label={`Open ${place(file, line)}`}>Open</button>;
	return (
		<aside class="details" aria-label="Selected box">
			<p class="row"><strong class="name">{name}</strong><button type="button" onClick={onClose} aria-label="Close the details">×</button></p>
			{flame.before ? <Changed flame={flame} box={box} />
				: <p>{LAYER_NAMES[flame.layer[box] as number]}; {amount(flame.value[box], flame.total.unit)}, {percent((flame.value[box] as number) / flame.total.value)} of
					all; itself {amount(flame.self[box], flame.total.unit)}</p>}
			{(flame.many[box] as number) > 1 && <p>{(flame.many[box] as number) - 1} narrower boxes beside it are drawn with it. Zoom in to see them.</p>}
			<p class="row"><CopyButton text={() => name}>Copy name</CopyButton></p>
			{sampled && <p><a href={sampled.href}>Why it waits</a>: {percent(sampled.kernel.waiting / sampled.kernel.samples)} of its {amount(sampled.kernel.samples, null)} samples are waiting</p>}
			{own && <p class="place">{own} {open(frame?.file, frame?.line)} <CopyButton text={() => own} label="Copy the place">Copy</CopyButton></p>}
			{user && user !== own && <p class="place">your code: {user} {open(frame?.user?.file, frame?.user?.line)} <CopyButton text={() => user} label="Copy the line of your code">Copy</CopyButton></p>}
			{frame?.library && <p class="place">library: {visible(frame.library)}</p>}
			{frame && frame.findings.length > 0 && <ul class="findings">{frame.findings.map((one) => (
				<li key={one.id}><strong>{visible(one.title)}</strong>{one.advice && <p>{visible(one.advice)}</p>}</li>))}</ul>}
			{frame && <Values frame={frame} />}
			{path.length > 0 && <><h2>Call path</h2><ol class="path">{path.map((one, index) => <li key={index}>{visible(one)}</li>)}</ol></>}
			{frame && frame.from.length > 0 && <MadeFrom origins={frame.from} open={open} />}
			{loaded.state === "error" && <Trouble error={loaded.error} />}
		</aside>
	);
}

/** A box of two profiles: both values and the difference. */
function Changed({ flame, box }: { flame: Flame; box: number }) {
	const { unit, iterations, metric } = flame.total, only = flame.only(box);
	const row = (title: string, after: number, before: number) => (
		<tr><th scope="row">{title}</th><td>{amount(before, unit)}</td><td>{amount(after, unit)}</td><td>{signedAmount(after - before, unit)}</td></tr>
	);
	return <>
		<p>{LAYER_NAMES[flame.layer[box] as number]}; {flame.changeWords(box)}{only && <>: the other profile has no such call path</>}</p>
		<div class="wide" tabIndex={0} role="region" aria-label="Change of the box">
			<table>
				<caption>{metric}{iterations > 0 ? " of an iteration" : ""}</caption>
				<thead><tr><th scope="col">what</th><th scope="col">before</th><th scope="col">after</th><th scope="col">change</th></tr></thead>
				<tbody>{row("total", flame.value[box] as number, flame.beforeOf(box))}{row("itself", flame.self[box] as number, flame.beforeSelf?.[box] ?? NaN)}</tbody>
			</table>
		</div>
	</>;
}

function Values({ frame }: { frame: FrameDetails }) {
	const { values, before_values: before } = frame;
	const metrics = [...values, ...(before ?? []).filter((one) => !values.some((value) => value.metric === one.metric))];
	if (metrics.length === 0) return null;
	const of = (list: FrameValue[] | undefined, metric: string) => list?.find((one) => one.metric === metric);
	return (
		<div class="wide" tabIndex={0} role="region" aria-label="Values of the box">
			<table>
				{before && <caption>Of all there is, not of an iteration</caption>}
				<thead><tr><th scope="col">metric</th>{before ? <><th scope="col">before</th><th scope="col">after</th></>
					: <><th scope="col">self</th><th scope="col">total</th></>}<th scope="col">count</th></tr></thead>
				<tbody>{metrics.map(({ metric, unit }) => {
					const value = of(values, metric), was = of(before, metric);
					return (
						<tr key={metric}><th scope="row">{visible(metric)}</th>
							<td>{amount(before ? was?.total : value?.self, unit)}</td><td>{amount(value?.total, unit)}</td><td>{amount(value?.count, null)}</td></tr>
					);
				})}</tbody>
			</table>
		</div>
	);
}

/** All that was fused into one kernel: each operator with the frames around it, the innermost first. */
function MadeFrom({ origins, open }: { origins: Origin[]; open: (file: string | null, line: number | null) => ComponentChildren }) {
	return <>
		<h2>Made from {origins.length === 1 ? "one operator" : `${origins.length} operators`}</h2>
		{origins.map((origin, index) => (
			<details key={index} open={origins.length <= 3}>
				<summary>{visible(origin.operator ?? origin.stack[origin.stack.length - 1]?.name ?? "unknown")}</summary>
				<ol class="path">{[...origin.stack].reverse().map((step, at) => (
					<li key={at}>{visible(step.name)}{step.file && <> <span class="quiet">{place(step.file, step.line)}</span> {open(step.file, step.line)}</>}</li>))}</ol>
			</details>
		))}
	</>;
}
