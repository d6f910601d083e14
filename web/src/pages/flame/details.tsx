// SPDX-License-Identifier: Apache-2.0
// What is known about the selected box.
import { LAYER_NAMES } from "../../draw/colours";
import type { Flame } from "../../draw/flame";
import { amount, percent, visible } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import type { FrameDetails } from "../../protocol/types";
import { useAnswer, useApp, valueOf } from "../../state/app";
import { CopyButton } from "../../shell/parts";

function place(file: string | null | undefined, line: number | null | undefined): string | null {
	return file ? `${visible(file)}${line ? `:${line}` : ""}` : null;
}

export function Details({ flame, box, query, onClose }: { flame: Flame; box: number; query: Query; onClose: () => void }) {
	const app = useApp();
	const node = flame.node[box] as number;
	const asked: Query = { ...query, node };
	const loaded = useAnswer<FrameDetails>(canonical("frame", asked), (signal) => app.source.json<FrameDetails>("frame", asked, signal));
	const frame = valueOf(loaded)?.node === node ? valueOf(loaded) : null;
	const name = flame.name(box);
	const own = place(frame?.file, frame?.line), user = place(frame?.user?.file, frame?.user?.line);
	const editor = app.source.editor;
	const open = (file: string | null | undefined, line: number | null | undefined) => editor && file &&
		<button type="button" onClick={() => editor.open(file, line ?? null)} aria-label={`Open ${place(file, line)}`}>Open</button>;
	return (
		<aside class="details" aria-label="Selected box">
			<p class="row"><strong class="name">{name}</strong><button type="button" onClick={onClose} aria-label="Close the details">×</button></p>
			<p>{LAYER_NAMES[flame.layer[box] as number]}; {amount(flame.value[box], flame.total.unit)}, {percent((flame.value[box] as number) / flame.total.value)} of
				all; itself {amount(flame.self[box], flame.total.unit)}</p>
			{(flame.many[box] as number) > 1 && <p>{(flame.many[box] as number) - 1} narrower boxes beside it are drawn with it. Zoom in to see them.</p>}
			<p class="row"><CopyButton text={() => name}>Copy name</CopyButton></p>
			{own && <p class="place">{own} {open(frame?.file, frame?.line)} <CopyButton text={() => own} label="Copy the place">Copy</CopyButton></p>}
			{user && user !== own && <p class="place">your code: {user} {open(frame?.user?.file, frame?.user?.line)} <CopyButton text={() => user} label="Copy the line of your code">Copy</CopyButton></p>}
			{frame?.library && <p class="place">library: {visible(frame.library)}</p>}
			{frame && frame.findings.length > 0 && <ul class="findings">{frame.findings.map((one) => (
				<li key={one.id}><strong>{visible(one.title)}</strong>{one.advice && <p>{visible(one.advice)}</p>}</li>))}</ul>}
			{frame && frame.values.length > 0 && (
				<div class="wide" tabIndex={0} role="region" aria-label="Values of the box">
					<table>
						<thead><tr><th scope="col">metric</th><th scope="col">self</th><th scope="col">total</th><th scope="col">count</th></tr></thead>
						<tbody>{frame.values.map((value) => (
							<tr key={value.metric}><th scope="row">{visible(value.metric)}</th><td>{amount(value.self, value.unit)}</td>
								<td>{amount(value.total, value.unit)}</td><td>{amount(value.count, null)}</td></tr>))}</tbody>
					</table>
				</div>
			)}
			{frame && frame.path.length > 0 && <><h2>Call path</h2><ol class="path">{frame.path.map((one, index) => <li key={index}>{visible(one)}</li>)}</ol></>}
			{frame?.from && frame.from.length > 0 && <><h2>Made from</h2><ol class="path">{frame.from.map((one, index) => <li key={index}>{fromText(one)}</li>)}</ol></>}
			{loaded.state === "error" && <p>{loaded.error.message}</p>}
		</aside>
	);
}

function fromText(one: unknown): string {
	if (typeof one === "string") return visible(one);
	if (Array.isArray(one)) return one.map(fromText).join(" ← ");
	if (one && typeof one === "object") return Object.values(one).filter((value) => value !== null).map(fromText).join(" ");
	return String(one);
}
