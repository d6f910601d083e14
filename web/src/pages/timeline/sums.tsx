// SPDX-License-Identifier: Apache-2.0
// What runs in the measured range, by name.
import { useMemo, useState } from "preact/hooks";
import type { Spans, TrackRow } from "../../draw/timeline";
import { amount, percent, short } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import { useAnswer, useApp, valueOf } from "../../state/app";
import { CsvButton, Trouble } from "../../shell/parts";
import { Table, type Cell, type TableColumn } from "../../shell/table";

const COLUMNS: TableColumn[] = [
	{ id: "name", title: "name", isNumber: false, words: (value) => short(String(value)) },
	{ id: "sum", title: "sum", isNumber: true, unit: "ns" },
	{ id: "count", title: "count", isNumber: true },
	{ id: "share", title: "of the range", isNumber: true, words: (value) => percent(value as number) },
];

interface Sum {
	name: string;
	sum: number;
	count: number;
}

const MERGED = "merged spans";

/** Adds up the spans that a page holds. Those that are merged are a line of their own: their names are not known. */
export function sumSpans(spans: Spans, tracks: TrackRow[], range: [number, number]): Sum[] {
	const sums = new Map<string, Sum>();
	for (const track of tracks) {
		for (let depth = 0; depth < track.depth; depth++) {
			const line = spans.line(track.track, depth);
			for (let at = spans.first(line, range[0]); at < line.length; at++) {
				const span = line[at] as number, start = spans.start[span] as number, many = spans.many[span] as number;
				if (start >= range[1]) break;
				const name = many > 1 ? MERGED : spans.name(span), sum = sums.get(name) ?? { name, sum: 0, count: 0 };
				sum.sum += Math.min(range[1], spans.end[span] as number) - Math.max(range[0], start);
				sum.count += many;
				sums.set(name, sum);
			}
		}
	}
	return [...sums.values()].sort((a, b) => b.sum - a.sum);
}

/** While you drag, the newest range that is answered is shown. TRACKS are those that are shown; ALL says that none is left out. */
export function Sums({ range, query, tracks, all, held }: { range: [number, number]; query: Query; tracks: TrackRow[]; all: boolean; held: () => Promise<Spans> | undefined }) {
	const app = useApp(), { isOffline } = app.source;
	const [sort, setSort] = useState("-sum");
	const [from, to] = [Math.round(range[0]), Math.max(Math.round(range[0]) + 1, Math.round(range[1]))];
	const asked: Query = { ...query, t0: from, t1: to, top: 200, tracks: all ? null : tracks.map((track) => track.track).join(",") };
	const loaded = useAnswer<Sum[]>(canonical("timeline/sum", asked), async (signal) => {
		if (tracks.length === 0) return [];
		const spans = isOffline ? await held() : undefined;
		if (spans) return sumSpans(spans, tracks, [from, to]);
		const [table] = await app.source.tables("timeline/sum", asked, signal);
		return Array.from({ length: table?.rows ?? 0 }, (_, row) => ({ name: table?.column("name").text(row) ?? "", sum: table?.column("sum").number(row) ?? 0,
			count: table?.column("count").number(row) ?? 0 }));
	});
	const sums = valueOf(loaded), wide = range[1] - range[0];
	const cell = useMemo(() => (row: number, column: number): Cell => {
		const sum = sums?.[row];
		return sum ? [sum.name, sum.sum, sum.count, sum.sum / wide][column] ?? null : null;
	}, [sums, wide]);
	return <>
		<div class="row"><h2>{amount(wide, "ns")} measured</h2><CsvButton name="timeline" rows={() => [["name", "sum_ns", "count"],
			...(sums ?? []).map((sum) => [sum.name, sum.sum, sum.count])]} /></div>
		{!all && <p class="quiet">Of the tracks that are shown.</p>}
		{isOffline && <p class="quiet">This page has short spans merged with their neighbours: their names and exact sums are not in it.</p>}
		{loaded.state === "error" && <Trouble error={loaded.error} />}
		{sums && <Table label="Sums in the measured range" columns={COLUMNS} count={sums.length} cell={cell} sort={sort} onSort={setSort} />}
	</>;
}
