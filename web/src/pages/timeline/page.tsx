// SPDX-License-Identifier: Apache-2.0
// The page Timeline: tracks of threads and streams. Drag to measure: the sums by name follow.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { layTracks, readTracks, type TrackRow } from "../../draw/timeline";
import { amount } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import { common, useAnswer, useApp } from "../../state/app";
import { Command, CopyButton, Waiting } from "../../shell/parts";
import { register } from "../../shell/registry";
import { FindingList, useMarks } from "../../shell/marks";
import { Board, facts, trackWords, type Shown } from "./board";
import { Strip, StripView } from "./strip";
import { Sums } from "./sums";

function TimelinePage() {
	const app = useApp();
	const query = common(app);
	const loaded = useAnswer<TrackRow[]>(canonical("timeline/tracks", query), async (signal) => {
		const [tracks] = await app.source.tables("timeline/tracks", query, signal);
		if (!tracks) throw new Error("the answer has no tracks");
		return readTracks(tracks);
	});
	return <Waiting loaded={loaded}>{(tracks) => tracks.length
		? <Tracks tracks={tracks} query={query} /> : <div class="notice"><p>The profile has no spans.</p><Command text="plumb run --trace -- PROGRAM" /></div>}</Waiting>;
}

/** What the profile has with times. */
function sourceWords(tracks: TrackRow[]): string {
	const count = (source: string) => tracks.reduce((sum, track) => sum + (track.source === source ? track.spans || 0 : 0), 0);
	const [spans, newest, samples] = [count("spans"), count("newest"), count("samples")], counters = tracks.filter((track) => track.counter).length;
	return [spans > 0 && `All ${amount(spans, null)} spans of the trace.`, newest > 0 && `The newest GPU work, ${amount(newest, null)} spans: a run without --trace keeps no more.`,
		samples > 0 && "CPU samples: each is drawn for the time that it computed; sums leave them out.",
		counters > 0 && `Hardware counters over time: ${amount(counters, null)} ${counters === 1 ? "row" : "rows"}, from 0 to the max of what is visible. Without samples a row is empty.`].filter(Boolean).join(" ");
}

function readPins(text: string | undefined): number[] {
	return (text ?? "").split(",").filter(Boolean).map(Number).filter(Number.isInteger);
}

/** The filter of tracks, and a list in which each can be pinned. */
function TrackTools({ tracks, shown, pins, onPin }: { tracks: TrackRow[]; shown: number; pins: number[]; onPin: (track: number) => void }) {
	const app = useApp();
	return (
		<div class="tools">
			<input type="search" aria-label="Filter the tracks by words, such as stream, or rank:1" placeholder="Filter tracks (/)" value={app.state.values["filter"] ?? ""}
				onInput={(event) => app.set({ filter: event.currentTarget.value })} onKeyDown={(event) => event.key === "Escape" && app.set({ filter: null })} />
			<details class="pins">
				<summary>{shown} of {tracks.length} tracks{pins.length > 0 && `, ${pins.length} pinned`}</summary>
				<ul>
					{tracks.slice(0, 500).map((track) => (
						<li key={track.track}><label><input type="checkbox" checked={pins.includes(track.track)} onChange={() => onPin(track.track)} /> {trackWords(track)}</label></li>
					))}
				</ul>
			</details>
			{tracks.some((track) => track.counter) && <label class="check"><input type="checkbox" checked={app.state.values["counters"] !== "off"}
				onChange={(event) => app.set({ counters: event.currentTarget.checked ? null : "off" })} /> Counters</label>}
			{pins.length > 0 && <button type="button" onClick={() => app.set({ pins: null })}>Unpin all</button>}
		</div>
	);
}

function Tracks({ tracks, query }: { tracks: TrackRow[]; query: Query }) {
	const app = useApp();
	const canvas = useRef<HTMLCanvasElement>(null), board = useRef<Board | null>(null), strip = useRef<Strip | null>(null), newest = useRef(app);
	const picture = useRef<HTMLCanvasElement>(null), mark = useRef<HTMLDivElement>(null);
	newest.current = app;
	const [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null);
	const [span, setSpan] = useState<Shown | null>(null);
	const [measure, setMeasure] = useState<[number, number] | null>(null);
	const [error, setError] = useState<Error | null>(null);
	const filter = app.state.values["filter"] ?? "", pinText = app.state.values["pins"] ?? "";
	const pins = useMemo(() => readPins(pinText).filter((pin) => tracks.some((track) => track.track === pin)), [pinText, tracks]);
	const hasCounters = app.state.values["counters"] !== "off";
	const listed = useMemo(() => tracks.filter((track) => hasCounters || !track.counter), [tracks, hasCounters]);
	const shown = useMemo(() => layTracks(listed, filter, pins, 0).tracks, [listed, filter, pins]), summed = shown.filter((track) => !track.counter);
	const pin = useCallback((track: number) => {
		const now = readPins(newest.current.state.values["pins"]), isPinned = now.includes(track), one = tracks.find((each) => each.track === track);
		newest.current.set({ pins: (isPinned ? now.filter((other) => other !== track) : [...now, track]).join(",") });
		newest.current.say(`${one ? trackWords(one) : "The track"} is ${isPinned ? "no longer pinned" : "pinned to the top"}`);
	}, [tracks]);
	useEffect(() => {
		if (!canvas.current) return;
		const made = new Board(canvas.current, () => newest.current, query, tracks, { span: setSpan, measure: setMeasure, error: setError, pin,
			tip: (x, y, text) => setTip(text === null ? null : { x, y, text }), place: () => strip.current?.place(), whole: () => strip.current?.draw(newest.current.look) });
		board.current = made;
		Object.assign(canvas.current, { plumbTimes: made.times, plumbRange: made.range });
		if (picture.current && mark.current) strip.current = new Strip(picture.current, mark.current, made, () => newest.current.look);
		return () => {
			strip.current?.end();
			made.end();
		};
	}, [tracks]);
	const marks = useMarks(query["file"]);
	useEffect(() => board.current?.choose(listed, filter, pins), [listed, filter, pins]);
	useEffect(() => board.current?.setMarks(marks), [tracks, marks]);
	useEffect(() => {
		board.current?.draw();
		strip.current?.draw(app.look);
	}, [app.look, listed, filter, pins]);
	const notes = [app.source.note("timeline/spans", query), tracks.some((track) => track.counter) && app.source.note("timeline/counters", query)].filter(Boolean);
	return (
		<div class="page">
			<h1 class="unseen">Timeline</h1>
			<TrackTools tracks={tracks} shown={shown.length} pins={pins} onPin={pin} />
			<p class="summary">{sourceWords(tracks)}
				{" "}{notes.length ? `In this page, ${notes.join("; ")}.` : "Drag to measure."}</p>
			<div class="split">
				<div class="charts">
					<StripView canvas={picture} mark={mark} strip={strip} />
					<div class="chart">
						<canvas ref={canvas} class="lanes" tabIndex={0} role="application" aria-roledescription="timeline"
							aria-label={`Timeline of ${shown.length} tracks. w and s zoom, a and d move, comma and full stop go from span to span, j and k from track to track, p pins a track, n and N go to the spans that findings are about, m measures.`} />
						{shown.length === 0 && <div class="over notice">No track matches the filter.</div>}
						{tip && <div class="tip" aria-hidden="true" style={{ left: `${Math.min(tip.x + 12, innerWidth - 260)}px`, top: `${tip.y + 18}px` }}>{tip.text}</div>}
						{error && <div class="over notice" role="alert">{error.message}</div>}
					</div>
				</div>
				{(span || measure) && (
					<aside class="details" aria-label="Selection">
						{span && <>
							<p class="row"><strong class="name">{span.name}</strong><button type="button" aria-label="Close the details" onClick={() => board.current?.select(null)}>×</button></p>
							<p>{facts(span)}</p>
							<FindingList found={span.found} />
							<p class="row"><CopyButton text={() => span.name}>Copy name</CopyButton>
								{!span.track.counter && <a href={app.link("flame", { search: span.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").slice(0, 400) })}>Show it in the flame graph</a>}</p>
						</>}
						{measure && <Sums range={measure} query={query} tracks={summed} all={summed.length === tracks.filter((track) => !track.counter).length} held={() => board.current?.held()} />}
					</aside>
				)}
			</div>
		</div>
	);
}

register({
	id: "timeline", title: "Timeline", key: "t", needs: { "spans|gpu_work|samples|counter_series": "plumb run --trace -- PROGRAM" }, follows: [], make: TimelinePage,
	keys: [["drag", "measure a range; its sums follow"], ["Ctrl+wheel, w s", "zoom"], ["Shift+drag, Shift+wheel, a d", "move in time"], [", .", "the span before, the span after"],
		["j k", "the track below, the track above"], ["p, click on a name", "pin the track to the top"], ["/ or Ctrl+F", "filter the tracks: words, or rank:1"],
		["n N", "the next span that a finding is about, the one before"], ["f", "the selected span, or all"], ["m", "measure the selected span, or what is visible"], ["arrows on the strip", "move and zoom the visible part"], ["Esc", "end measuring"]],
});
