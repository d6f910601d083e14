// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { layTracks, readTracks, Spans, topOf, trackAt, type Place, type TrackRow } from "../src/draw/timeline";
import { sumSpans } from "../src/pages/timeline/sums";
import { readTables, type Table } from "../src/protocol/columns";
import { write } from "./write";

function table(bytes: Uint8Array | number[]): Table {
	const [made] = readTables(new Uint8Array(bytes));
	if (!made) throw new Error("no table");
	return made;
}

function tracks(): TrackRow[] {
	return readTracks(table(write("timeline.tracks", "", [
		{ name: "track", type: 2, values: [1, 2, 3] }, { name: "rank", type: 2, values: [1, 1, 10] }, { name: "process", type: 2, values: [7, 7, 8] },
		{ name: "kind", type: 1, values: ["thread", "stream", "stream"] }, { name: "name", type: 1, values: ["thread 7", "stream 20", "stream 21"] },
		{ name: "depth", type: 2, values: [90, 1, 2] }, { name: "start", type: 2, values: [0, 0, 0] }, { name: "end", type: 2, values: [100, 100, 100] },
		{ name: "spans", type: 2, values: [5, 5, 5] }, { name: "source", type: 1, values: ["spans", "spans", "spans"] },
	])));
}

test("a filter takes words, and a rank or process by its number", () => {
	const shown = (filter: string, pins: number[] = []) => layTracks(tracks(), filter, pins, 1000).tracks.map((track) => track.track);
	assert.deepEqual(shown(""), [1, 2, 3]);
	assert.deepEqual(shown("stream"), [2, 3]);
	assert.deepEqual(shown("rank:1"), [1, 2]);
	assert.deepEqual(shown("rank:1 Stream"), [2]);
	assert.deepEqual(shown("process:8"), [3]);
	assert.deepEqual(shown("nothing", [3]), [3]);
	assert.deepEqual(shown("", [3]), [3, 1, 2]);
});

test("pinned tracks stay as long as there is room, and long tracks are cut until they are pinned", () => {
	const place: Place = { t0: 0, t1: 100, top: 30, left: 0 };
	const layout = layTracks(tracks(), "", [2], 100), [pinned, long] = layout.tracks as [TrackRow, TrackRow];
	assert.deepEqual([pinned.isFixed, long.isFixed, long.depth, long.lines], [true, false, 40, 90]);
	assert.equal(trackAt(layout, place, topOf(layout, place, pinned) + 1), pinned);
	assert.equal(trackAt(layout, { ...place, top: 0 }, topOf(layout, { ...place, top: 0 }, long) + 1), long);
	// What scrolls is not found below what stays.
	assert.equal(trackAt(layout, place, topOf(layout, place, pinned) + 40), undefined);
	const all = layTracks(tracks(), "", [1], 100).tracks[0] as TrackRow;
	assert.deepEqual([all.depth, all.isFixed, all.isPinned], [90, false, true]);
});

test("sums of the spans that a page holds are cut to the range, and merged spans have no names", () => {
	const spans = new Spans(table(write("timeline.spans", "", [
		{ name: "track", type: 2, values: [2, 2, 2, 3] }, { name: "depth", type: 2, values: [0, 0, 0, 0] }, { name: "start", type: 2, values: [0, 20, 40, 0] },
		{ name: "end", type: 2, values: [10, 30, 60, 100] }, { name: "name", type: 1, values: ["a", "a", "b", "c"] }, { name: "layer", type: 2, values: [4, 4, 4, 4] },
		{ name: "many", type: 2, values: [1, 1, 3, 1] },
	])), [0, 100], 100);
	const stream = tracks().filter((track) => track.track === 2);
	assert.deepEqual(sumSpans(spans, stream, [5, 50]), [{ name: "a", sum: 15, count: 2 }, { name: "merged spans", sum: 10, count: 3 }]);
	assert.deepEqual(sumSpans(spans, stream, [10, 20]), []);
});
