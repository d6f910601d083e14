// SPDX-License-Identifier: Apache-2.0
// The answer about traffic as the page uses it, and what a choice leaves of it.
import type { Finding, Known } from "../../protocol/types";

export interface Sum {
	bytes: Known<number>;
	accesses: number;
	warps: Known<number>;
	error_bytes: Known<number>;
}

export interface Party {
	label: string;
	kind: "device" | "host" | "unknown";
	name: Known<string>;
}

/** Parties are places in the list of parties; null: the group of a collective. */
export interface Ends {
	initiator: number;
	owner: Known<number>;
	from: Known<number>;
	to: Known<number>;
	kind: string;
}

export interface Pair extends Ends, Sum {
	direction: Known<string>;
	route: string;
}

export interface Move extends Ends, Sum {
	object: Known<number>;
}

export interface Use extends Sum {
	initiator: number;
	other: Known<number>;
	kind: string;
	writes: boolean;
}

export interface Bin {
	initiator: number;
	kind: string;
	offset: number;
	width: number;
	accesses: number;
}

export interface TrafficObject {
	id: number;
	label: string;
	name: Known<string>;
	kind: Known<string>;
	owner: Known<number>;
	pid: Known<number>;
	allocated_at: Known<string>;
	context: Known<string[]>;
	allocations: number;
	bytes: Known<number>;
	most_bytes: Known<number>;
	touched_bytes: Known<number>;
	touchable_bytes: Known<number>;
	touched_share: Known<number>;
	read_bytes: Known<number>;
	written_bytes: Known<number>;
	accesses: number;
	uses: Use[];
	uses_left_out: number;
	histogram: Bin[];
	histogram_left_out: number;
}

export interface Instruction extends Sum {
	function: Known<string>;
	offset: Known<number>;
	kind: string;
	width: Known<number>;
}

export interface Line extends Sum {
	label: string;
	file: Known<string>;
	line: Known<number>;
	inlined: { function: Known<string>; file: Known<string>; line: Known<number> }[];
	function: Known<string>;
	user_file: Known<string>;
	user_line: Known<number>;
	context: Known<string[]>;
	lanes_per_warp: Known<number>;
	moves: Move[];
	moves_left_out: number;
	instructions: Instruction[];
	instructions_left_out: number;
}

export interface Direction {
	speed: Known<number>;
	link_share: Known<number>;
}

/** What lies between two parties. `there` is from the one to the other. */
export interface Link {
	one: number;
	other: number;
	label: string;
	kind: string;
	bytes_per_second: Known<number>;
	there: Direction;
	back: Direction;
}

export interface Route extends Sum, Direction {
	route: string;
	kind: string;
	link: Known<string>;
	link_bytes_per_second: Known<number>;
}

export interface Collective {
	name: Known<string>;
	size: Known<number>;
	algorithm: Known<string>;
	protocol: Known<string>;
	count: number;
	bytes: Known<number>;
	busbw: Known<number>;
	link: Known<string>;
	link_share: Known<number>;
	sent_bytes: Known<number>;
	sent_ratio: Known<number>;
	measured_bytes: Known<number>;
	measured_ratio: Known<number>;
}

export type MatrixName = "initiated" | "flow" | "logical";
export type Cells = number[][];

export interface Traffic {
	mode: Known<string>;
	totals: Record<"kernels" | "copies" | "logical", Sum>;
	parties: Party[];
	matrices: Record<MatrixName, Known<Cells>>;
	findings: Finding[];
	pairs: Pair[];
	pairs_left_out: number;
	objects: TrafficObject[];
	objects_left_out: number;
	lines: Line[];
	lines_left_out: number;
	collectives: Collective[];
	routes: Route[];
	links: Link[];
	links_missing: Known<string>;
	coverage: { reason: Known<string>; unit: string; seen: boolean; count: number }[];
	environment: { key: string; value: Known<string> }[];
}

const LOGICAL = ["collective", "send", "receive"];
export const isLogical = (ends: { kind: string }) => LOGICAL.includes(ends.kind);

// ---- what is chosen ----

export interface Chosen {
	/** The tab of a GPU. */
	party: number | null;
	/** A cell of a matrix. */
	cell: { matrix: MatrixName; row: number; column: number } | null;
	object: TrafficObject | null;
	line: Line | null;
}

/** The name of each line in the address: its label, with a number if several have it. */
export function lineKeys(lines: readonly Line[]): string[] {
	const seen = new Map<string, number>();
	return lines.map((line) => {
		const times = (seen.get(line.label) ?? 0) + 1;
		seen.set(line.label, times);
		return times > 1 ? `${line.label} (${times})` : line.label;
	});
}

export function cellKey(cell: NonNullable<Chosen["cell"]>): string {
	return `${cell.matrix}:${cell.row}:${cell.column}`;
}

export function readCell(text: string | undefined, count: number): Chosen["cell"] {
	const found = /^(initiated|flow|logical):(\d{1,4}):(\d{1,4})$/.exec(text ?? ""), row = Number(found?.[2]), column = Number(found?.[3]);
	return found && row < count && column < count ? { matrix: found[1] as MatrixName, row, column } : null;
}

/** The cell of a matrix that what moved lies in; null: it lies in none. */
export function cellOf(ends: Ends): string | null {
	if (!isLogical(ends)) return ends.owner === null ? null : cellKey({ matrix: "initiated", row: ends.initiator, column: ends.owner });
	return ends.from === null || ends.to === null ? null : cellKey({ matrix: "logical", row: ends.from, column: ends.to });
}

/** Does what moved lie in the chosen cell of a matrix? */
export function isInCell(ends: Ends, cell: Chosen["cell"]): boolean {
	if (!cell) return true;
	if (isLogical(ends) !== (cell.matrix === "logical")) return false;
	return cell.matrix === "initiated" ? ends.initiator === cell.row && ends.owner === cell.column : ends.from === cell.row && ends.to === cell.column;
}

export function isOfParty(ends: Ends, party: number | null): boolean {
	return party === null || [ends.initiator, ends.owner, ends.from, ends.to].includes(party);
}

/** The use of an object as what moved. */
export function endsOf(object: TrafficObject, use: Use): Ends {
	return { initiator: use.initiator, owner: object.owner, from: use.writes ? use.other : object.owner, to: use.writes ? object.owner : use.other, kind: use.kind };
}

/** The sum of rows. What is not known of one of them is not known of all. */
export function total(rows: readonly Sum[]): Sum {
	const add = (a: Known<number>, b: Known<number>) => (a === null || b === null ? null : a + b);
	const sum = rows.reduce<Sum>((all, row) => ({ bytes: add(all.bytes, row.bytes), accesses: all.accesses + row.accesses, warps: add(all.warps, row.warps),
		error_bytes: add(all.error_bytes, row.error_bytes === null ? null : row.error_bytes ** 2) }), { bytes: 0, accesses: 0, warps: 0, error_bytes: 0 });
	return { ...sum, error_bytes: sum.error_bytes === null ? null : Math.sqrt(sum.error_bytes) };
}

export function lanesOf(sum: Sum): number | null {
	return sum.warps ? sum.accesses / sum.warps : null;
}

/** The moves of a line that the choice leaves. */
export function movesOf(line: Line, chosen: Chosen): Move[] {
	return line.moves.filter((move) => isInCell(move, chosen.cell) && isOfParty(move, chosen.party) && (!chosen.object || move.object === chosen.object.id));
}

export interface Left<T> {
	/** Its place in the answer. */
	index: number;
	what: T;
	sum: Sum;
	/** Who reaches it, or whom it reaches: other parties, those with most bytes first. */
	parties: number[];
}

/** Parties by their bytes. */
function most(weights: Iterable<[number | null, number | null]>): number[] {
	const sums = new Map<number, number>();
	for (const [party, bytes] of weights) if (party !== null) sums.set(party, (sums.get(party) ?? 0) + (bytes ?? 0));
	return [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([party]) => party);
}

export function linesLeft(traffic: Traffic, chosen: Chosen): Left<Line>[] {
	const isNarrow = chosen.cell || chosen.party !== null || chosen.object;
	return traffic.lines.flatMap((what, index) => {
		const moves = isNarrow ? movesOf(what, chosen) : what.moves;
		if (isNarrow && moves.length === 0) return [];
		const remote = moves.filter((move) => move.owner !== move.initiator || isLogical(move));
		return [{ index, what, sum: isNarrow ? total(moves) : what, parties: most(remote.map((move) => [move.owner === move.initiator ? (move.from === move.owner ? move.to : move.from) : move.owner, move.bytes])) }];
	});
}

export function objectsLeft(traffic: Traffic, chosen: Chosen): (Left<TrafficObject> & { read: number; written: number })[] {
	return traffic.objects.flatMap((what, index) => {
		if (chosen.party !== null && what.owner !== chosen.party) return [];
		const moves: (Sum & { writes: boolean; ends: Ends })[] = chosen.line
			? chosen.line.moves.filter((move) => move.object === what.id && isInCell(move, chosen.cell)).map((move) => ({ ...move, writes: move.to === what.owner, ends: move }))
			: what.uses.map((use) => ({ ...use, ends: endsOf(what, use) })).filter((use) => isInCell(use.ends, chosen.cell));
		if ((chosen.line || chosen.cell) && moves.length === 0) return [];
		const isWhole = !chosen.line && !chosen.cell, part = (writes: boolean) => moves.reduce((sum, one) => sum + (one.writes === writes ? one.bytes ?? 0 : 0), 0);
		return [{ index, what, sum: isWhole ? { ...total(moves), accesses: what.accesses } : total(moves), read: isWhole ? what.read_bytes ?? 0 : part(false), written: isWhole ? what.written_bytes ?? 0 : part(true),
			parties: most(moves.filter((one) => one.ends.initiator !== what.owner).map((one) => [one.ends.initiator, one.bytes])) }];
	});
}

export function pairsLeft(traffic: Traffic, chosen: Chosen): Pair[] {
	return traffic.pairs.filter((pair) => isInCell(pair, chosen.cell) && isOfParty(pair, chosen.party));
}

/** A matrix of what the chosen line and object move; without them, all. null: the answer has none. */
export function cellsOf(traffic: Traffic, matrix: MatrixName, chosen: Chosen): Cells | null {
	if (!chosen.line && !chosen.object) return traffic.matrices[matrix];
	const count = traffic.parties.length, cells = Array.from({ length: count }, () => new Array<number>(count).fill(0)), received = cells.map((row) => row.slice());
	const only: Chosen = { party: null, cell: null, object: chosen.object, line: null };
	const moves: (Ends & Sum)[] = chosen.line ? movesOf(chosen.line, only) : (chosen.object as TrafficObject).uses.map((use) => ({ ...use, ...endsOf(chosen.object as TrafficObject, use) }));
	for (const move of moves) {
		const [row, column] = matrix === "initiated" ? [move.initiator, move.owner] : [move.from, move.to];
		if (isLogical(move) !== (matrix === "logical") || row === null || column === null) continue;
		const into = (move.kind === "receive" ? received : cells)[row] as number[];
		into[column] = (into[column] ?? 0) + (move.bytes ?? 0);
	}
	// A send and its receive are one movement.
	return cells.map((row, at) => row.map((bytes, column) => Math.max(bytes, (received[at] as number[])[column] as number)));
}

export function mostOf(cells: Cells): number {
	return cells.reduce((max, row) => row.reduce((most, bytes) => Math.max(most, bytes), max), 0);
}

// ---- links ----

/** "478 GB/s": links are sold and measured in powers of ten. */
export function speedWords(bytesPerSecond: Known<number> | undefined): string {
	if (bytesPerSecond === null || bytesPerSecond === undefined || !Number.isFinite(bytesPerSecond)) return "unknown";
	const value = bytesPerSecond / 1e9;
	return `${value >= 99.95 ? value.toFixed(0) : value >= 0.0995 ? value.toPrecision(3) : "< 0.1"} GB/s`;
}

export function linkBetween(traffic: Traffic, a: Known<number>, b: Known<number>): Link | null {
	return traffic.links.find((link) => (link.one === a && link.other === b) || (link.one === b && link.other === a)) ?? null;
}

// ---- findings ----

/** The findings about an object, and about the lines that reach it. */
export function findingsOf(traffic: Traffic): { object: (object: TrafficObject) => Finding[]; line: (line: Line) => Finding[]; about: (id: string | undefined) => TrafficObject | null } {
	const rule = traffic.findings.filter((one) => one.rule === "traffic");
	const isOf = (finding: Finding, object: TrafficObject) => finding.evidence["object"] === object.label && finding.evidence["owner"] === (object.owner === null ? "unknown" : traffic.parties[object.owner]?.label);
	return {
		object: (object) => rule.filter((one) => isOf(one, object)),
		line: (line) => rule.filter((one) => (Array.isArray(one.evidence["reached_at"]) ? (one.evidence["reached_at"] as { line: unknown }[]) : []).some((at) => at.line === line.label)),
		about: (id) => {
			const finding = id === undefined ? undefined : rule.find((one) => one.id === id);
			return (finding && traffic.objects.find((object) => isOf(finding, object))) ?? null;
		},
	};
}

// ---- addresses ----

/** A part of an object between two edges: accesses per byte by who reached it. */
export interface Segment {
	start: number;
	end: number;
	by: Map<number, number>;
	density: number;
}

/** Bins of several GPUs and kinds, which may be cut differently, as segments that do not overlap. */
export function segmentsOf(bins: readonly Bin[]): Segment[] {
	const edges = [...new Set(bins.flatMap((bin) => [bin.offset, bin.offset + bin.width]))].sort((a, b) => a - b);
	const place = new Map(edges.map((edge, index) => [edge, index]));
	const segments: Segment[] = edges.slice(0, -1).map((start, index) => ({ start, end: edges[index + 1] as number, by: new Map(), density: 0 }));
	for (const bin of bins) {
		const density = bin.width > 0 ? bin.accesses / bin.width : 0;
		for (let at = place.get(bin.offset) as number; at < (place.get(bin.offset + bin.width) as number); at++) {
			const segment = segments[at] as Segment;
			segment.by.set(bin.initiator, (segment.by.get(bin.initiator) ?? 0) + density);
			segment.density += density;
		}
	}
	return segments.filter((segment) => segment.density > 0);
}

/** The segments from START to END. */
export function segmentsIn(segments: readonly Segment[], start: number, end: number): Segment[] {
	let low = 0, high = segments.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if ((segments[middle] as Segment).end <= start) low = middle + 1;
		else high = middle;
	}
	const found: Segment[] = [];
	for (; low < segments.length && (segments[low] as Segment).start < end; low++) found.push(segments[low] as Segment);
	return found;
}

/** The bytes of one allocation of an object; null: not known. Parts of an object have their place in its allocation. */
export function sizeOf(object: TrafficObject): number | null {
	const end = object.histogram.reduce((max, bin) => Math.max(max, bin.offset + bin.width), 0);
	const one = object.bytes !== null && object.allocations > 0 ? Math.ceil(object.bytes / object.allocations) : 0;
	return Math.max(end, one) || null;
}

/** "64×128", or with x, a star or a comma. */
export function readShape(text: string | undefined): [number, number] | null {
	const found = /^\s*(\d{1,9})\s*[x×*,]\s*(\d{1,9})\s*$/i.exec(text ?? ""), rows = Number(found?.[1]), columns = Number(found?.[2]);
	return found && rows > 0 && columns > 0 ? [rows, columns] : null;
}
