// SPDX-License-Identifier: Apache-2.0
// The answers about why a kernel waits, as the page uses them.
import { STALL_CLASSES } from "../../draw/colours";
import { amount } from "../../draw/words";
import type { Table } from "../../protocol/columns";
import type { Known } from "../../protocol/types";

/** A place in the code; what it lies in is null if nobody knows it. */
export interface Place {
	offset: Known<number>;
	function?: Known<string>;
	file: Known<string>;
	line: Known<number>;
	inlined?: { function: Known<string>; file: Known<string>; line: Known<number> }[];
	/** Of the instruction, counted through all functions of the kernel. */
	number?: Known<number>;
	instruction?: Known<string>;
}

export interface Hop extends Place {
	via: Known<string>;
	counter: Known<string>;
}

export interface Cause extends Place {
	kind: string;
	name: Known<string>;
	samples: number;
	share: Known<number>;
	confidence: Known<number>;
	evidence: Known<string>;
	advice: Known<string>;
	saving_ns: Known<number>;
	saving: Known<number>;
}

export interface StallCause extends Cause {
	chain: Hop[];
	proved: boolean;
	ambiguous_with: number[];
	factors: Record<string, Known<number>>;
}

/** All that one line (or instruction) causes in the kernel. */
export interface KernelCause extends Cause {
	together: number;
	stalls: Known<number>;
	ambiguous: boolean;
}

export interface Stall extends Place {
	reason: string;
	class: string;
	samples: number;
	hidden: number;
	share: Known<number>;
	causes: StallCause[];
}

export interface Kernel {
	name: string;
	mangled: Known<string>;
	device: Known<string>;
	devices: Known<number>;
	architecture: Known<string>;
	mode: string;
	samples: number;
	waiting: number;
	hidden: number;
	outside: number;
	estimated: boolean;
	gpu_ns: Known<number>;
	registers: Known<number>;
	stack_bytes: Known<number>;
	shared_bytes: Known<number>;
	coverage: Known<number>;
	unknown_instructions: Known<number>;
	problem: Known<string>;
	summary: string;
	causes: KernelCause[];
	stalls: Stall[];
	stalls_left_out: number;
}

export interface Why {
	samples: number;
	kernels: Kernel[];
}

/** The samples of a row of code or source: exposed and hidden ones, by class. */
export interface Heat {
	all: number;
	waiting: number;
	hidden: number;
	exposed: number[];
	covered: number[];
}

/** Null: it has none. */
export function heatOf(table: Table, row: number): Heat | null {
	const number = (name: string) => table.column(name).number(row), all = number("samples");
	if (!(all > 0)) return null;
	return { all, waiting: number("waiting"), hidden: number("hidden"), exposed: STALL_CLASSES.map(number), covered: STALL_CLASSES.map((name) => number(`${name}_hidden`)) };
}

/** "1,234 samples: waiting 1,200 (memory 1,100, fetch 100), hidden 34 (memory 34)" */
export function heatWords(heat: Heat): string {
	const parts = (counts: number[]) => STALL_CLASSES.flatMap((name, index) => (counts[index] ? [`${name} ${amount(counts[index], null)}`] : [])).join(", ");
	const exposed = parts(heat.exposed), covered = parts(heat.covered);
	return `${amount(heat.all, null)} samples: waiting ${amount(heat.waiting, null)}${exposed && ` (${exposed})`}, hidden ${amount(heat.hidden, null)}${covered && ` (${covered})`}`;
}

/** All instructions with samples, and where functions begin. */
export class Hot {
	readonly numbers: Int32Array;
	readonly waiting: Float64Array;
	private readonly order: number[];
	readonly count: number;
	/** The most samples that an instruction has in which warps wait, hidden or not. */
	readonly most: number;

	constructor(readonly code: Table, readonly functions: Table) {
		this.numbers = code.column("number").integers();
		this.waiting = code.column("waiting").numbers();
		const hidden = code.column("hidden").numbers();
		this.most = this.waiting.reduce((most, value, row) => Math.max(most, value + (hidden[row] as number)), 0);
		this.order = Array.from(this.numbers.keys()).filter((row) => (this.waiting[row] as number) > 0);
		this.count = functions.rows ? functions.column("first").number(functions.rows - 1) + functions.column("instructions").number(functions.rows - 1) : 0;
	}

	/** The next instruction with waiting after (before, if STEP is -1) NUMBER; -1: there is none. */
	next(number: number, step: number): number {
		const rows = step > 0 ? this.order : [...this.order].reverse();
		const found = rows.find((row) => ((this.numbers[row] as number) - number) * step > 0);
		return found === undefined ? -1 : (this.numbers[found] as number);
	}

	/** The instruction of a line with the most waiting; -1: none of it waits. */
	ofLine(file: string, line: number): number {
		const lines = this.code.column("line"), files = this.code.column("file");
		let best = -1, most = -1;
		for (let row = 0; row < this.code.rows; row++) {
			if (lines.number(row) !== line || (this.waiting[row] as number) <= most || files.text(row) !== file) continue;
			[best, most] = [this.numbers[row] as number, this.waiting[row] as number];
		}
		return best;
	}

	/** "0x1d0" of an instruction in the kernel itself, "2:0x1d0" in another function. */
	functionOf(number: number): number {
		const first = this.functions.column("first");
		let found = 0;
		for (let row = 0; row < this.functions.rows; row++) if (first.number(row) <= number) found = row;
		return found;
	}

	/** The number of the instruction that an address names; -1: there is none. Instructions of a function have one size, as far as it is known. */
	numberOf(at: string | undefined): number {
		const found = /^(?:(\d+):)?0x([0-9a-f]{1,8})$/.exec(at ?? "");
		if (!found) return -1;
		const row = Number(found[1] ?? 0), offset = parseInt(found[2] as string, 16);
		if (row >= this.functions.rows) return -1;
		const count = this.functions.column("instructions").number(row), bytes = this.functions.column("bytes").number(row);
		const number = Math.floor((offset * count) / bytes);
		return number >= 0 && number < count ? this.functions.column("first").number(row) + number : -1;
	}

	atOf(number: number): string {
		const row = this.functionOf(number), count = this.functions.column("instructions").number(row), bytes = this.functions.column("bytes").number(row);
		return `${row ? `${row}:` : ""}0x${Math.floor(((number - this.functions.column("first").number(row)) * bytes) / count).toString(16)}`;
	}
}

export const offsetWords = (offset: number): string => `0x${offset.toString(16).padStart(4, "0")}`;
