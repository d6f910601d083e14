// SPDX-License-Identifier: Apache-2.0
// The page Ranks: ranks side by side, communication that computation hides and that it does not, who is late, and who waits for whom.
import { useMemo } from "preact/hooks";
import { PARTS } from "../draw/colours";
import { amount, percent, visible } from "../draw/words";
import { canonical, type Query } from "../protocol/query";
import type { Finding, JsonTable, Ranks } from "../protocol/types";
import { common, useAnswer, useApp, valueOf, type App } from "../state/app";
import { CsvButton, Switches, Waiting } from "../shell/parts";
import { Filter } from "../shell/filter";
import { placeOf } from "../shell/findings";
import { useMarks } from "../shell/marks";
import { register } from "../shell/registry";
import { orderRows, Table, type Cell, type TableColumn } from "../shell/table";

type Row = Record<string, string | number | boolean | null>;

function rowsOf(table: JsonTable): Row[] {
	return table.rows.map((row) => Object.fromEntries(table.columns.map((column, index) => [column.name, row[index] ?? null])));
}

const number = (row: Row, name: string): number | null => (typeof row[name] === "number" ? (row[name] as number) : null);

/** The parts of a rank's time, in the order of the bar. They add up to all of it. */
const SPLIT: [string, string, string][] = [
	["computing", "computing", "computing"], ["hidden", "hidden", "computing while it communicates"], ["exposed", "communication", "communication that nothing hides"],
	["waiting", "waiting for others", "waiting for other ranks"], ["copies", "copies", "copies"], ["idle", "idle", "idle"],
];

function background(look: App["look"], colour: string): string {
	// What is two things at once has the colours of both.
	const colours = PARTS[look], both = (one: string, other: string) => `repeating-linear-gradient(135deg, ${colours[one]} 0 5px, ${colours[other]} 5px 9px)`;
	if (colour === "hidden") return both("computing", "communication");
	return colour === "waiting for others" ? both("communication", "idle") : (colours[colour] as string);
}

/** "rank 0"; if a rank has several processes or devices, with these. */
function nameOf(row: Row, rows: Row[], before = ""): string {
	const rank = row[`${before}rank`], same = rows.filter((other) => other["rank"] === rank);
	if (rank !== null && same.length < 2) return `rank ${rank}`;
	const more = [row[`${before}process`] === null ? "" : `process ${row[`${before}process`]}`, row[`${before}device`] === null ? "" : `device ${row[`${before}device`]}`];
	return [rank === null ? "" : `rank ${rank}`, ...more].filter(Boolean).join(", ");
}

function RanksPage() {
	const app = useApp(), query: Query = common(app);
	const loaded = useAnswer<Ranks>(canonical("ranks", query), (signal) => app.source.json<Ranks>("ranks", query, signal));
	return (
		<div class="page ranks">
			<h1 class="unseen">Ranks</h1>
			<Waiting loaded={loaded}>{(ranks) => <Shown ranks={ranks} query={query} />}</Waiting>
		</div>
	);
}

const OF: Record<string, string> = {
	loop: "in the loop that has most collectives", collectives: "after the first collective, which waits for start-up", work: "from the first to the last GPU work",
};

function Shown({ ranks, query }: { ranks: Ranks; query: Query }) {
	const app = useApp(), { values } = app.state;
	const rows = useMemo(() => rowsOf(ranks.ranks), [ranks]);
	const isEach = ranks.steps !== null && values["per"] !== "run", by = isEach ? (ranks.steps as number) : 1;
	const sort = values["sort"] ?? "", filter = values["filter"] ?? "";
	const columns: TableColumn[] = useMemo(() => [
		{ id: "rank", title: "rank", isNumber: false },
		{ id: "step", title: "step", isNumber: true, words: (_, index) => stepWords(rows[index] as Row) },
		...SPLIT.map(([id, , title]): TableColumn => ({ id, title: id === "computing" ? "only computing" : id === "hidden" ? "hidden communication" : id === "exposed" ? "exposed communication" : title,
			isNumber: true, unit: "ns" })),
		{ id: "caused", title: "others wait for it", isNumber: true, unit: "ns" }, { id: "late", title: "late", isNumber: true, words: (value) => (value === null ? "unknown" : `${amount(value as number, null)} times`) },
		{ id: "matched", title: "collectives", isNumber: true }, { id: "operators", title: "operators, of the run", isNumber: true, unit: "ns" },
		{ id: "process", title: "process", isNumber: true, words: (value) => (value === null ? "unknown" : String(value)) }, { id: "device", title: "device", isNumber: true, words: (value) => (value === null ? "unknown" : String(value)) },
	], [rows]);
	const cell = useMemo(() => (index: number, column: number): Cell => {
		const row = rows[index], id = columns[column]?.id ?? "";
		if (!row) return null;
		if (id === "rank") return nameOf(row, rows);
		const value = number(row, id);
		return value !== null && (id === "caused" || SPLIT.some(([name]) => name === id)) ? value / by : value;
	}, [rows, columns, by]);
	const order = useMemo(() => orderRows(rows.length, cell, columns, sort, filter), [rows, cell, sort, filter]);
	return <>
		<div class="tools">
			{ranks.steps !== null && <Switches label="Times" value={isEach ? "step" : "run"} options={[["step", "Of each step"], ["run", "Of all steps"]]}
				onChange={(per) => app.set({ per: per === "step" ? null : per }, true)} />}
			<Filter />
			<CsvButton name="ranks" answer="ranks" query={query} rows={() => [ranks.ranks.columns.map((column) => column.name), ...ranks.ranks.rows]} />
		</div>
		<p class="summary">{ranks.of === null ? "No rank has GPU work: only operators are known."
			: `${rows.length} ranks ${OF[ranks.of]}: ${ranks.steps === null ? "" : `${amount(ranks.steps, null)} steps, `}${amount((ranks.end_ns ?? NaN) - (ranks.start_ns ?? NaN), "ns")}.${
				ranks.newest ? " From the newest GPU work, which need not be all." : ""}`}</p>
		<Late query={query} />
		{ranks.of !== null && <Bars rows={order.map((index) => rows[index] as Row)} all={rows} by={by} />}
		<h2>Numbers</h2>
		<Table label="Ranks" columns={columns} count={rows.length} cell={cell} sort={sort} onSort={(next) => app.set({ sort: next })} filter={filter}
			onOpen={(index) => app.go("timeline", timelineOf(rows[index]))} />
		<Waits ranks={ranks} rows={rows} by={by} filter={filter} />
	</>;
}

function stepWords(row: Row): string {
	const step = number(row, "step"), high = number(row, "step_high");
	if (step === null) return "unknown";
	return high === null ? amount(step, "ns") : `${amount(step, "ns")} ± ${amount(high - step, "ns")}`;
}

function timelineOf(row: Row | undefined): Record<string, string> {
	return row && row["rank"] !== null ? { filter: `rank:${row["rank"]}` } : {};
}

/** What plumb concludes about late ranks. */
function Late({ query }: { query: Query }) {
	const app = useApp();
	const loaded = useAnswer<{ findings: Finding[] }>(canonical("findings", query), (signal) => app.source.json("findings", query, signal));
	const findings = valueOf(loaded)?.findings.filter((one) => one.rule === "ranks") ?? [];
	if (loaded.state === "ready" && findings.length === 0) return <p>No rank is late enough for a finding.</p>;
	return (
		<ul class="findings" aria-label="Findings about late ranks">
			{findings.map((one) => {
				const place = placeOf(one, app);
				return <li key={one.id}><strong>{visible(one.title)}</strong>{one.advice && <><br />{visible(one.advice)}</>}{place && <>{" "}<a href={place[0]}>{place[1]}</a></>}</li>;
			})}
		</ul>
	);
}

const BARS_MOST = 64;

function Bars({ rows, all, by }: { rows: Row[]; all: Row[]; by: number }) {
	const app = useApp();
	const most = all.reduce((max, row) => Math.max(max, number(row, "whole") ?? 0), 0) || 1;
	const shown = rows.slice(0, BARS_MOST);
	return (
		<figure class="lanes-of-ranks">
			<ul class="legend" aria-hidden="true">
				{SPLIT.map(([id, colour, words]) => <li key={id}><span class="swatch" style={{ background: background(app.look, colour) }} />{words}</li>)}
			</ul>
			<ul class="rows">
				{shown.map((row) => <Bar key={`${row["rank"]} ${row["process"]} ${row["device"]}`} row={row} name={nameOf(row, all)} most={most} by={by} />)}
			</ul>
			<figcaption class="quiet">{rows.length > shown.length ? `The first ${shown.length} of ${rows.length} ranks, in the order of the table. ` : ""}All bars have the same scale: {amount(most / by, "ns")}. After ± is half of the interval of 95 % of a mean.</figcaption>
		</figure>
	);
}

function Bar({ row, name, most, by }: { row: Row; name: string; most: number; by: number }) {
	const app = useApp(), whole = number(row, "whole");
	const parts = SPLIT.map(([id, colour, words]) => ({ id, colour, words, value: number(row, id) ?? 0 })).filter((part) => part.value > 0);
	const say = (value: number) => `${amount(value / by, "ns")} (${percent(value / (whole || 1))})`;
	const late = number(row, "late"), caused = number(row, "caused");
	return (
		<li>
			<span class="who"><strong>{name}</strong>{late !== null && late > 0 && <span class="badge serious">late {amount(late, null)} times</span>}</span>
			<div class="stack" aria-hidden="true">
				{parts.map((part) => <span key={part.id} title={`${part.words}: ${say(part.value)}`} style={{ width: `${(part.value / most) * 100}%`, background: background(app.look, part.colour) }} />)}
			</div>
			<span class="unseen">{whole === null ? "its GPU work is unknown" : parts.map((part) => `${part.words} ${say(part.value)}`).join(", ")}</span>
			<span class="what">step {stepWords(row)}{caused !== null && caused > 0 && `; others wait ${amount(caused / by, "ns")} for it`}{" "}
				<a href={app.link("timeline", timelineOf(row))} aria-label={`${name} on the timeline`}>timeline</a>
				{row["rank"] !== null && !app.source.isOffline && <>{" "}<a href={app.link("flame", { rank: String(row["rank"]) })} aria-label={`Flame graph of ${name}`}>flame</a></>}</span>
		</li>
	);
}

function Waits({ ranks, rows, by, filter }: { ranks: Ranks; rows: Row[]; by: number; filter: string }) {
	const app = useApp();
	const marks = useMarks(app.state.values["file"]);
	const waits = useMemo(() => rowsOf(ranks.waits), [ranks]), sort = app.state.values["waits"] ?? "-waiting";
	const columns: TableColumn[] = useMemo(() => [
		{ id: "rank", title: "who waits", isNumber: false }, { id: "for", title: "for whom", isNumber: false },
		{ id: "operation", title: "in", isNumber: false, words: (value, index) => `${visible(String(value ?? "unknown"))}${waits[index]?.["pair"] ? " (a pair)" : ""}` },
		{ id: "waiting", title: "waits", isNumber: true, unit: "ns", bar: (index) => (number(waits[index] as Row, "waiting") ?? 0) / (number(waits[0] as Row, "waiting") || 1) },
		{ id: "late", title: "notably", isNumber: true, words: (value) => `${amount(value as number | null, null)} times` }, { id: "most", title: "the longest", isNumber: true, unit: "ns" },
	], [waits]);
	const cell = useMemo(() => (index: number, column: number): Cell => {
		const row = waits[index], id = columns[column]?.id ?? "";
		if (!row) return null;
		if (id === "rank") return nameOf(row, rows);
		if (id === "for") return nameOf(row, rows, "for_");
		const value = row[id] ?? null;
		return id === "waiting" && typeof value === "number" ? value / by : value;
	}, [waits, columns, rows, by]);
	if (waits.length === 0) return <p>No collective is known in which one rank waits for another.</p>;
	return <>
		<div class="row"><h2>Who waits for whom</h2><CsvButton name="waits" rows={() => [ranks.waits.columns.map((column) => column.name), ...ranks.waits.rows]} /></div>
		<p class="quiet">A rank waits in a collective until the last rank begins it. Only waiting counts that its GPU does not fill with computation.
			{ranks.waits_available > waits.length && ` These are the ${waits.length} longest of ${amount(ranks.waits_available, null)}.`}</p>
		<Table label="Who waits for whom" columns={columns} count={waits.length} cell={cell} sort={sort} onSort={(next) => app.set({ waits: next })} filter={filter}
			found={(index) => marks.wait(number(waits[index] as Row, "for_rank"), String(waits[index]?.["operation"]))} />
	</>;
}

register({ id: "ranks", title: "Ranks", key: "r", needs: { ranks: "plumb run -- torchrun --nproc-per-node 2 PROGRAM" }, follows: [], make: RanksPage,
	keys: [["/ or Ctrl+F", "filter the ranks"]] });
