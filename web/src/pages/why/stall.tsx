// SPDX-License-Identifier: Apache-2.0
// The instruction that is chosen: what it waits for, and what that waited for.
import { amount, fileName, percent, visible } from "../../draw/words";
import { useApp } from "../../state/app";
import { offsetWords, type Place, type Stall, type StallCause } from "./data";

interface DetailsProps {
	at: number;
	offset: string;
	stalls: Stall[];
	stall: Stall | null;
	cause: StallCause | null;
	note: string | null;
	/** Other stalls that this instruction causes. */
	waiting: Stall[];
	onPick: (number: number) => void;
	onStall: (stall: number) => void;
	onCause: (cause: number) => void;
}

/** "rows.h:8", "+0x110". */
export function placeWords(place: Place, isShort = false): string {
	const line = place.file ? `${visible(isShort ? fileName(place.file) : place.file)}${place.line ? `:${place.line}` : ""}` : "";
	const offset = place.offset === null || place.offset === undefined ? "" : `+${offsetWords(place.offset)}`;
	return [line, offset].filter(Boolean).join(" ");
}

function PlaceLine({ place, onPick }: { place: Place; onPick: (number: number) => void }) {
	const app = useApp(), editor = app.source.editor, number = place.number, file = place.file;
	return <>
		{typeof number === "number" ? <button type="button" class="plain" onClick={() => onPick(number)} aria-label={`Go to ${placeWords(place, true)}`}>{placeWords(place, true)}</button> : placeWords(place, true)}
		{place.instruction && <> <code>{visible(place.instruction)}</code></>}
		{editor && file && <> <button type="button" onClick={() => editor.open(file, place.line ?? null)} aria-label={`Open ${placeWords(place, true)}`}>Open</button></>}
		{place.inlined?.map((one, index) => <span key={index} class="quiet"> inlined at {visible(fileName(one.file ?? "?"))}:{one.line ?? "?"}</span>)}
	</>;
}

export function StallDetails({ at, offset, stalls, stall, cause, note, waiting, onPick, onStall, onCause }: DetailsProps) {
	if (at < 0) return <aside class="details why-details" aria-label="Selected instruction"><p class="quiet">Choose an instruction or a line, or press j for the next stall.</p></aside>;
	return (
		<aside class="details why-details" aria-label="Selected instruction">
			<p class="row"><strong class="name">{stall ? placeWords(stall, true) : `+${offset}`}</strong></p>
			{stall?.instruction && <p><code>{visible(stall.instruction)}</code>{stall.inlined?.map((one, index) => <span key={index} class="quiet"> inlined at {visible(fileName(one.file ?? "?"))}:{one.line ?? "?"}</span>)}</p>}
			{note && <p class="quiet">{note}</p>}
			{!stall && !note && <p>No warp was seen waiting here.</p>}
			{stalls.length > 1 && <div class="switches" role="group" aria-label="Reasons">{stalls.map((one, index) => (
				<button key={index} type="button" aria-pressed={one === stall} onClick={() => onStall(index)}>{visible(one.reason)} {amount(one.samples, null)}</button>))}</div>}
			{stall && <p>{visible(stall.reason)} ({stall.class}): {amount(stall.samples, null)} samples waiting, {percent(stall.share)} of the kernel's; {amount(stall.hidden, null)} hidden</p>}
			{stall && stall.causes.length === 0 && <p>The cause is unknown.</p>}
			{stall && stall.causes.length > 0 && <>
				<h2>Causes</h2>
				<ol class="causes">{stall.causes.map((one, index) => (
					<li key={index} class={one === cause ? "picked" : ""}>
						<button type="button" class="plain" aria-pressed={one === cause} onClick={() => onCause(index)}><strong>{percent(one.share)}</strong> {visible(one.name ?? one.kind)}</button>
						{" "}<span class="quiet">{one.proved ? "proved" : "possible"}, confidence {percent(one.confidence)}</span>
						{one.offset !== null && <div><PlaceLine place={one} onPick={onPick} /></div>}
						{one.ambiguous_with.length > 0 && <div class="quiet">the hardware cannot tell it apart from {one.ambiguous_with.map((other) => `cause ${other + 1}`).join(", ")}</div>}
					</li>))}</ol>
			</>}
			{cause && <CauseDetails cause={cause} onPick={onPick} />}
			{waiting.length > 0 && <>
				<h2>What waits for it</h2>
				<ul class="causes">{waiting.slice(0, 20).map((one, index) => <li key={index}><PlaceLine place={one} onPick={onPick} /> <span class="quiet">{visible(one.reason)} {amount(one.samples, null)}</span></li>)}</ul>
			</>}
		</aside>
	);
}

const via = (hop: { via: string | null; counter: string | null }) => (hop.counter ? `${hop.via} ${hop.counter}` : hop.via ?? "");

function CauseDetails({ cause, onPick }: { cause: StallCause; onPick: (number: number) => void }) {
	const factors = Object.entries(cause.factors).filter(([, value]) => value !== null);
	return <>
		<h2>{visible(cause.name ?? cause.kind)}</h2>
		<dl class="facts">
			{cause.evidence && <div><dt>evidence</dt><dd>{visible(cause.evidence)}</dd></div>}
			{cause.advice && <div><dt>advice</dt><dd>{visible(cause.advice)}</dd></div>}
			<div><dt>saving</dt><dd>{cause.saving_ns !== null ? `at most ${amount(cause.saving_ns, "ns")}` : cause.saving !== null ? `at most ${percent(cause.saving)} of the kernel` : "unknown"}</dd></div>
			<div><dt>samples</dt><dd>{amount(cause.samples, null)}</dd></div>
			{factors.length > 0 && <div><dt>weighed by</dt><dd>{factors.map(([name, value]) => `${name} ${percent(value)}`).join(", ")}</dd></div>}
		</dl>
		{cause.chain.length > 0 && <>
			<h2>The chain</h2>
			<ol class="path chain">{cause.chain.map((hop, index) => (
				<li key={index}><PlaceLine place={hop} onPick={onPick} /><span class="quiet">{index ? ` gave it by ${visible(via(hop))}` : via(hop) ? ` by ${visible(via(hop))}` : ""}</span></li>))}</ol>
		</>}
	</>;
}
