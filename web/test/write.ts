// SPDX-License-Identifier: Apache-2.0
// Writes binary columns, for tests.

export interface Written {
	name: string;
	unit?: string;
	/** 0 none, 1 text, 2 integer, 3 number, 4 truth. */
	type: number;
	values: (string | number)[];
	known?: number[];
}

export function write(id: string, title: string, columns: Written[]): Uint8Array {
	const encoder = new TextEncoder(), rows = Math.max(...columns.map((column) => column.values.length));
	let bytes = new Uint8Array(64 + 64 * columns.length);
	const add = (part: Uint8Array) => {
		const at = Math.ceil(bytes.length / 8) * 8, next = new Uint8Array(at + Math.ceil(part.length / 8) * 8);
		next.set(bytes);
		next.set(part, at);
		bytes = next;
		return at;
	};
	const later: ((view: DataView) => void)[] = [];
	const pair = (at: number, text: string | undefined) => {
		if (text === undefined) return;
		const part = encoder.encode(text), place = add(part);
		later.push((view) => {
			view.setBigUint64(at, BigInt(place), true);
			view.setBigUint64(at + 8, BigInt(part.length), true);
		});
	};
	pair(32, id);
	pair(48, title);
	columns.forEach((column, index) => {
		const at = 64 + 64 * index;
		pair(at + 8, column.name);
		pair(at + 24, column.unit);
		let values = new Uint8Array(), texts = new Uint8Array();
		if (column.type === 1) {
			const parts = column.values.map((value) => encoder.encode(String(value))), starts = new Uint32Array(rows + 1);
			parts.forEach((part, row) => (starts[row + 1] = (starts[row] as number) + part.length));
			values = new Uint8Array(starts.buffer);
			texts = new Uint8Array(parts.flatMap((part) => [...part]));
		} else if (column.type === 2) values = new Uint8Array(BigInt64Array.from(column.values.map((value) => BigInt(value))).buffer);
		else if (column.type === 3) values = new Uint8Array(Float64Array.from(column.values.map(Number)).buffer);
		else if (column.type === 4) values = Uint8Array.from(column.values.map(Number));
		const valuesAt = column.type ? add(values) : 0, knownAt = column.known ? add(Uint8Array.from(column.known)) : 0, textsAt = column.type === 1 ? add(texts) : 0;
		later.push((view) => {
			view.setUint8(at, column.type);
			view.setUint32(at + 4, texts.length, true);
			view.setBigUint64(at + 40, BigInt(valuesAt), true);
			view.setBigUint64(at + 48, BigInt(knownAt), true);
			view.setBigUint64(at + 56, BigInt(textsAt), true);
		});
	});
	const view = new DataView(bytes.buffer);
	bytes.set(encoder.encode("plumbcol"));
	view.setUint32(8, 1, true);
	view.setUint32(12, columns.length, true);
	view.setBigUint64(16, BigInt(bytes.length), true);
	view.setBigUint64(24, BigInt(rows), true);
	for (const act of later) act(view);
	return bytes;
}
