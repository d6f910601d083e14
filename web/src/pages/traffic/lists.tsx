// SPDX-License-Identifier: Apache-2.0
// The tables of the page Traffic: objects, lines with their pairs and instructions, and pairs with their routes.
import { useMemo } from "preact/hooks";
import { amount, percent, visible } from "../../draw/words";
import type { Query } from "../../protocol/query";
import type { Finding } from "../../protocol/types";
import { useApp } from "../../state/app";
import { CsvButton } from "../../shell/parts";
import { FindingList } from "../../shell/marks";
import { Table, type Cell, type TableColumn } from "../../shell/table";
import { cellOf, lanesOf, linkBetween, movesOf, type Chosen, type Left, type Line, type objectsLeft, type Pair, type Traffic, type TrafficObject } from "./data";

type Name = (at: number | null) => string;
const NAMES_MOST = 4;

function listWords(parties: readonly number[], name: Name): string {
	if (parties.length === 0) return "none";
	return `${parties.slice(0, NAMES_MOST).map(name).join(", ")}${parties.length > NAMES_MOST ? ` and ${parties.length - NAMES_MOST} more` : ""}`;
}

const lanesWords = (value: Cell) => (typeof value === "number" ? value.toFixed(1) : "unknown");

export interface Column<T> extends TableColumn {
	value: (row: T) => Cell;
}

/** A table whose columns say what they show of a row. */
export function List<T>({ label, rows, columns, sort, usual, onOpen, canOpen, picked, found }: {
	label: string; rows: readonly T[]; columns: Column<T>[]; sort: string; usual: string; onOpen?: (row: T) => void; canOpen?: (row: T) => boolean; picked?: (row: T) => boolean; found?: (row: T) => readonly Finding[];
}) {
	const app = useApp();
	const cell = useMemo(() => (row: number, column: number): Cell => columns[column]?.value(rows[row] as T) ?? null, [rows]);
	return <Table label={label} columns={columns} count={rows.length} cell={cell} sort={app.state.values[sort] ?? usual} onSort={(next) => app.set({ [sort]: next })}
		onOpen={onOpen && ((row) => onOpen(rows[row] as T))} {...(canOpen ? { canOpen: (row: number) => canOpen(rows[row] as T) } : {})}
		{...(picked ? { picked: rows.findIndex(picked) } : {})} {...(found ? { found: (row: number) => found(rows[row] as T) } : {})} />;
}

export function Objects({ objects, traffic, query, chosen, found, name }: {
	objects: ReturnType<typeof objectsLeft>; traffic: Traffic; query: Query; chosen: TrafficObject | null; found: (object: TrafficObject) => readonly Finding[]; name: Name;
}) {
	const app = useApp();
	type Row = ReturnType<typeof objectsLeft>[number];
	const most = objects.reduce((max, one) => Math.max(max, one.read + one.written), 0) || 1;
	const from = useMemo(() => {
		const lines = new Map<number, string[]>();
		for (const line of traffic.lines) for (const id of new Set(line.moves.map((move) => move.object))) if (id !== null) lines.set(id, [...(lines.get(id) ?? []), line.label]);
		return (id: number) => { const labels = lines.get(id) ?? []; return labels.length ? `${labels.slice(0, NAMES_MOST).join(", ")}${labels.length > NAMES_MOST ? ` and ${labels.length - NAMES_MOST} more` : ""}` : null; };
	}, [traffic]);
	const columns: Column<Row>[] = [
		{ id: "object", title: "object", isNumber: false, value: (row) => row.what.label },
		{ id: "owner", title: "on", isNumber: false, value: (row) => name(row.what.owner) },
		{ id: "moved", title: "moved", isNumber: true, unit: "B", value: (row) => row.read + row.written, bar: (row) => ((objects[row]?.read ?? 0) + (objects[row]?.written ?? 0)) / most },
		{ id: "read", title: "read from it", isNumber: true, unit: "B", value: (row) => row.read },
		{ id: "written", title: "written to it", isNumber: true, unit: "B", value: (row) => row.written },
		{ id: "accesses", title: "accesses", isNumber: true, value: (row) => row.sum.accesses },
		{ id: "by", title: "reached by", isNumber: false, value: (row) => listWords(row.parties, name) },
		{ id: "from", title: "from lines", isNumber: false, value: (row) => from(row.what.id) },
		{ id: "size", title: "size", isNumber: true, unit: "B", value: (row) => row.what.bytes },
		{ id: "touched", title: "touched", isNumber: true, words: (value) => percent(value as number | null), value: (row) => row.what.touched_share },
		{ id: "allocations", title: "allocations", isNumber: true, value: (row) => row.what.allocations },
		{ id: "kind", title: "kind", isNumber: false, value: (row) => row.what.kind },
		{ id: "at", title: "allocated at", isNumber: false, value: (row) => row.what.allocated_at },
	];
	if (traffic.objects.length === 0) return <p class="quiet">No objects were recorded.</p>;
	return <>
		<div class="tools"><CsvButton name="objects" answer="traffic" query={{ ...query, by: "object", top: 0 }} table="Objects" /></div>
		<List label="Objects" rows={objects} columns={columns} sort="osort" usual="-moved" picked={(row) => row.what === chosen} found={(row) => found(row.what)}
			onOpen={(row) => app.set({ object: row.what === chosen ? null : row.what.id, finding: null, shape: null }, true)} />
	</>;
}

export function Lines({ lines, traffic, query, keys, chosen, found, name }: {
	lines: Left<Line>[]; traffic: Traffic; query: Query; keys: string[]; chosen: Line | null; found: (line: Line) => readonly Finding[]; name: Name;
}) {
	const app = useApp();
	const most = lines.reduce((max, one) => Math.max(max, one.sum.bytes ?? 0), 0) || 1;
	const columns: Column<Left<Line>>[] = [
		{ id: "line", title: "line", isNumber: false, value: (row) => row.what.label },
		{ id: "bytes", title: "moved", isNumber: true, unit: "B", value: (row) => row.sum.bytes, bar: (row) => (lines[row]?.sum.bytes ?? 0) / most },
		{ id: "accesses", title: "accesses", isNumber: true, value: (row) => row.sum.accesses },
		{ id: "lanes", title: "lanes", isNumber: true, words: lanesWords, value: (row) => lanesOf(row.sum) },
		{ id: "parties", title: "reaches", isNumber: false, value: (row) => listWords(row.parties, name) },
		{ id: "function", title: "in", isNumber: false, value: (row) => row.what.function },
		{ id: "user", title: "line of your code", isNumber: false, value: (row) => (row.what.user_file ? `${row.what.user_file}:${row.what.user_line ?? "?"}` : null) },
	];
	if (traffic.lines.length === 0) return <p class="quiet">No line moved data.</p>;
	return <>
		<div class="tools"><CsvButton name="lines" answer="traffic" query={{ ...query, by: "line", top: 0 }} table="Lines" /></div>
		<List label="Lines" rows={lines} columns={columns} sort="sort" usual="-bytes" picked={(row) => row.what === chosen} found={(row) => found(row.what)}
			onOpen={(row) => app.set({ line: row.what === chosen ? null : keys[row.index] }, true)} />
	</>;
}

/** What one line moves, by pair and by instruction. */
export function LineDetails({ line, chosen, traffic, name }: { line: Line; chosen: Chosen; traffic: Traffic; name: Name }) {
	const app = useApp(), moves = useMemo(() => movesOf(line, chosen), [line, chosen]);
	const labels = useMemo(() => new Map(traffic.objects.map((one) => [one.id, one.label])), [traffic]);
	type Move = (typeof moves)[number];
	const pairs: Column<Move>[] = [
		{ id: "initiator", title: "who initiates", isNumber: false, value: (row) => name(row.initiator) },
		{ id: "owner", title: "whose memory", isNumber: false, value: (row) => name(row.owner) },
		{ id: "flow", title: "data flows", isNumber: false, value: (row) => `${name(row.from)} → ${name(row.to)}` },
		{ id: "kind", title: "kind", isNumber: false, value: (row) => row.kind },
		{ id: "object", title: "object", isNumber: false, value: (row) => (row.object === null ? null : labels.get(row.object) ?? "an object that is left out") },
		{ id: "bytes", title: "moved", isNumber: true, unit: "B", value: (row) => row.bytes },
		{ id: "accesses", title: "accesses", isNumber: true, value: (row) => row.accesses },
		{ id: "lanes", title: "lanes", isNumber: true, words: lanesWords, value: lanesOf },
	];
	const instructions: Column<Line["instructions"][number]>[] = [
		{ id: "offset", title: "instruction", isNumber: false, value: (row) => (row.offset === null ? null : `+0x${row.offset.toString(16).padStart(4, "0")}`) },
		{ id: "function", title: "in", isNumber: false, value: (row) => row.function },
		{ id: "kind", title: "kind", isNumber: false, value: (row) => row.kind },
		{ id: "width", title: "bytes of a lane", isNumber: true, value: (row) => row.width },
		{ id: "bytes", title: "moved", isNumber: true, unit: "B", value: (row) => row.bytes },
		{ id: "accesses", title: "accesses", isNumber: true, value: (row) => row.accesses },
		{ id: "lanes", title: "lanes", isNumber: true, words: lanesWords, value: lanesOf },
	];
	const left = line.moves_left_out + line.instructions_left_out;
	return (
		<section class="line-details" aria-label="Selected line">
			<h3>{visible(line.label)}</h3>
			{line.inlined.length > 0 && <p>{line.inlined.map((one) => `inlined at ${visible(one.file ?? "?")}:${one.line ?? "?"}`).join(", ")}</p>}
			{line.context && <p class="quiet path">{line.context.map(visible).join(" › ")}</p>}
			<FindingList found={traffic.findings.filter((one) => (Array.isArray(one.evidence["reached_at"]) ? (one.evidence["reached_at"] as { line: unknown }[]) : []).some((at) => at.line === line.label))} />
			{left > 0 && <p class="quiet">{amount(left, null)} of its pairs and instructions with fewest bytes are left out.</p>}
			<List label="Pairs of the line" rows={moves} columns={pairs} sort="msort" usual="-bytes" onOpen={(row) => app.set({ cell: cellOf(row) }, true)} canOpen={(row) => cellOf(row) !== null} />
			{line.instructions.length > 0 && <List label="Instructions of the line" rows={line.instructions} columns={instructions} sort="isort" usual="-bytes" />}
		</section>
	);
}

export function Pairs({ pairs, traffic, query, name, isWhole }: { pairs: Pair[]; traffic: Traffic; query: Query; name: Name; isWhole: boolean }) {
	const app = useApp();
	const most = pairs.reduce((max, one) => Math.max(max, one.bytes ?? 0), 0) || 1;
	const columns: Column<Pair>[] = [
		{ id: "initiator", title: "who initiates", isNumber: false, value: (row) => name(row.initiator) },
		{ id: "owner", title: "whose memory", isNumber: false, value: (row) => name(row.owner) },
		{ id: "flow", title: "data flows", isNumber: false, value: (row) => `${name(row.from)} → ${name(row.to)}` },
		{ id: "route", title: "route", isNumber: false, value: (row) => row.route },
		...(traffic.links.length > 0 ? [{ id: "link", title: "link", isNumber: false, value: (row: Pair) => linkBetween(traffic, row.from, row.to)?.label ?? null }] : []),
		{ id: "kind", title: "kind", isNumber: false, value: (row) => row.kind },
		{ id: "bytes", title: "moved", isNumber: true, unit: "B", value: (row) => row.bytes, bar: (row) => (pairs[row]?.bytes ?? 0) / most },
		{ id: "accesses", title: "accesses", isNumber: true, value: (row) => row.accesses },
		{ id: "lanes", title: "lanes", isNumber: true, words: lanesWords, value: lanesOf },
	];
	if (traffic.pairs.length === 0) return <p class="quiet">Nothing was moved.</p>;
	return <>
		<div class="tools"><CsvButton name="pairs" answer="traffic" query={{ ...query, by: "pair", top: 0 }} table="Pairs and routes" /></div>
		{isWhole && <p class="quiet">The routes are of all lines and objects.</p>}
		<List label="Pairs and routes" rows={pairs} columns={columns} sort="psort" usual="-bytes" onOpen={(row) => app.set({ cell: cellOf(row) }, true)} canOpen={(row) => cellOf(row) !== null} />
	</>;
}
