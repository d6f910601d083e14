// SPDX-License-Identifier: Apache-2.0
// Reads binary columns (docs/folders/view.md, "Binary columns"). The arrays of a table lie in the answer itself: nothing is copied.
// What does not fit into the answer is an error, never a wrong number.

export type Kind = "none" | "text" | "integer" | "number" | "truth";
const KINDS: Kind[] = ["none", "text", "integer", "number", "truth"];
const MAGIC = "plumbcol";
const HEAD = 64;

export class Column {
	constructor(
		readonly name: string,
		readonly unit: string | null,
		readonly kind: Kind,
		readonly rows: number,
		private readonly values: Float64Array | BigInt64Array | Uint8Array | Uint32Array | null,
		private readonly known: Uint8Array | null,
		private readonly texts: Uint8Array,
	) {}

	isKnown(row: number): boolean {
		return this.kind !== "none" && (!this.known || this.known[row] === 1);
	}

	/** The number of a row; NaN if it is unknown or not a number. */
	number(row: number): number {
		if (!this.isKnown(row) || this.kind === "text" || !this.values) return NaN;
		return Number(this.values[row]);
	}

	/** The text of a row; "" if it is unknown. */
	text(row: number): string {
		if (!this.isKnown(row) || !this.values) return "";
		if (this.kind !== "text") return String(this.values[row]);
		return decoder.decode(this.texts.subarray(Number(this.values[row]), Number(this.values[row + 1])));
	}

	/** A cell as JSON has it. */
	cell(row: number): string | number | boolean | null {
		if (!this.isKnown(row)) return null;
		if (this.kind === "text") return this.text(row);
		return this.kind === "truth" ? this.number(row) === 1 : this.number(row);
	}

	/** All numbers; unknown ones are NaN. */
	numbers(): Float64Array {
		if (this.kind === "number" && !this.known) return this.values as Float64Array;
		const out = new Float64Array(this.rows);
		if (this.values instanceof BigInt64Array) {
			// Two halves are added several times faster than a BigInt is converted.
			const { buffer, byteOffset, length } = this.values;
			const low = new Uint32Array(buffer, byteOffset, 2 * length), high = new Int32Array(buffer, byteOffset, 2 * length);
			for (let row = 0; row < this.rows; row++) {
				out[row] = this.known && this.known[row] !== 1 ? NaN : (high[2 * row + 1] as number) * 2 ** 32 + (low[2 * row] as number);
			}
			return out;
		}
		for (let row = 0; row < this.rows; row++) out[row] = this.number(row);
		return out;
	}

	/** All integers as 32 bits; `unknown` where there is none. */
	integers(unknown = -1): Int32Array {
		const numbers = this.numbers();
		return Int32Array.from(numbers, (value) => (Number.isNaN(value) ? unknown : value));
	}
}

export class Table {
	readonly columns: Column[] = [];
	constructor(readonly id: string, readonly title: string, readonly rows: number) {}

	column(name: string): Column {
		const found = this.columns.find((column) => column.name === name);
		return found ?? new Column(name, null, "none", this.rows, null, null, new Uint8Array());
	}
}

const decoder = new TextDecoder("utf-8");

/** All tables of an answer. */
export function readTables(bytes: Uint8Array): Table[] {
	// The arrays need an aligned start.
	const all = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
	const tables: Table[] = [];
	let at = 0;
	while (at < all.length) {
		const size = number64(view(all, at, HEAD), 16);
		tables.push(readTable(all, at, size));
		at += size;
	}
	return tables;
}

function bad(why: string): Error {
	return new Error(`the answer is damaged: ${why}; load the page again`);
}

function view(bytes: Uint8Array, at: number, length: number): DataView {
	if (at < 0 || length < 0 || at + length > bytes.length) throw bad("it ends too early");
	return new DataView(bytes.buffer, bytes.byteOffset + at, length);
}

function number64(data: DataView, at: number): number {
	const value = Number(data.getBigUint64(at, true));
	if (value > Number.MAX_SAFE_INTEGER) throw bad("a size is too large");
	return value;
}

function readTable(all: Uint8Array, start: number, size: number): Table {
	const head = view(all, start, HEAD);
	if (decoder.decode(all.subarray(start, start + 8)) !== MAGIC) throw bad("it has no binary columns");
	if (head.getUint32(8, true) !== 1) throw bad("it has another version");
	if (size < HEAD || size % 8 !== 0 || start + size > all.length) throw bad("a table is larger than it");
	const part = all.subarray(start, start + size);
	const columns = head.getUint32(12, true);
	const rows = number64(head, 24);
	const text = (data: DataView, at: number) => {
		const from = number64(data, at), length = number64(data, at + 8);
		view(part, from, length);
		return decoder.decode(part.subarray(from, from + length));
	};
	const table = new Table(text(head, 32), text(head, 48), rows);
	for (let index = 0; index < columns; index++) {
		const data = view(part, HEAD + 64 * index, 64);
		const unit = text(data, 24);
		const kind = KINDS[data.getUint8(0)];
		if (!kind) throw bad("a column has an unknown type");
		const valuesAt = number64(data, 40), knownAt = number64(data, 48), textsAt = number64(data, 56);
		const values = kind === "none" || valuesAt === 0 ? null : arrayOf(kind, part, valuesAt, rows);
		const known = knownAt ? slice(part, knownAt, rows) : null;
		const texts = textsAt ? slice(part, textsAt, data.getUint32(4, true)) : new Uint8Array();
		table.columns.push(new Column(text(data, 8), unit || null, values ? kind : "none", rows, values, known, texts));
	}
	return table;
}

function slice(part: Uint8Array, at: number, length: number): Uint8Array {
	view(part, at, length);
	return part.subarray(at, at + length);
}

function arrayOf(kind: Kind, part: Uint8Array, at: number, rows: number) {
	const sizes = { none: 0, text: 4, integer: 8, number: 8, truth: 1 };
	const count = kind === "text" ? rows + 1 : rows;
	view(part, at, count * sizes[kind]);
	const from = part.byteOffset + at;
	if (kind === "number") return new Float64Array(part.buffer, from, count);
	if (kind === "integer") return new BigInt64Array(part.buffer, from, count);
	if (kind === "text") return new Uint32Array(part.buffer, from, count);
	return new Uint8Array(part.buffer, from, count);
}
