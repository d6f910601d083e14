// SPDX-License-Identifier: Apache-2.0
// The JSON answers, as far as the pages use them. What is unknown is null.

export type Known<T> = T | null;

export interface Window {
	name: string;
	start_ns: number;
	end_ns: number;
	iterations: Known<number>;
	wall_ns: number;
	main: boolean;
	stretches?: number;
	parts?: { name: string; ns: number }[];
	iteration?: {
		mean_ns: Known<number>;
		std_ns: Known<number>;
		devices: { device: number; busy_ns: Known<number>; idle_ns: Known<number>; wait_ns: Known<number>; copy_ns: Known<number> }[];
	};
}

export interface Metric {
	name: string;
	unit: string;
	words: string;
	total: Known<number>;
	/** Values of several boxes can be added. */
	adds_up: boolean;
	is_default: boolean;
}

export interface About {
	schema: number;
	plumb: string;
	files: { name: string }[];
	/** With several files: how many of them are those before. */
	before: Known<number>;
	windows: Window[];
	metrics: Metric[];
	has: Record<string, boolean>;
}

export interface Finding {
	id: string;
	rule: string;
	severity: string;
	title: string;
	advice: Known<string>;
	saving_ns: Known<number>;
	saving_per_iteration_ns?: Known<number>;
	window: Known<string>;
	confidence: Known<number>;
	evidence: Record<string, unknown>;
	context: string[];
	/** What the path ends in; null: it is about no path. */
	frame: Known<{ id: number; kind: string; name: string; file: Known<string>; line: Known<number>; context: number }>;
}

export interface LedgerRow {
	source: string;
	unit: string;
	received: Known<number>;
	attributed: Known<number>;
	dropped: Known<number>;
	reason: Known<string>;
	fates: { count: number; dropped: boolean; reason: string; detail: Known<string> }[];
}

export interface Device {
	id: number;
	name: Known<string>;
	ordinal: Known<number>;
	rank: Known<number>;
	kernels: { count: number; ns: number };
	copies: { count: number; ns: number; bytes: number };
	busy_ns: Known<number>;
	idle_ns: Known<number>;
	span_ns: Known<number>;
	late?: number;
}

export interface GpuWork {
	device: number;
	pid: Known<number>;
	rank: Known<number>;
	whole_ns: number;
	computing_ns: Known<number>;
	collectives_ns: Known<number>;
	waiting_ns: Known<number>;
	copies_ns: Known<number>;
	idle_ns: Known<number>;
	hidden_ns: Known<number>;
	from: string;
}

export interface Overview {
	run: {
		command: Known<string>;
		wall_ns: Known<number>;
		overhead_ns: Known<number>;
		exit_code: Known<number>;
		environment: Record<string, string>;
		cost: Known<{ kind: Known<string>; ratio: Known<number>; low: Known<number>; high: Known<number>; why: Known<string> }>;
	};
	window: Window;
	windows: Window[];
	processes: { pid: number; rank: Known<number>; host: Known<string>; command: Known<string>; wall_ns: Known<number>; exit_code: Known<number> }[];
	devices: Device[];
	gpu_work: GpuWork[];
	findings: Finding[];
	ledger: LedgerRow[];
}

export interface Values {
	sum: Known<number>;
	count: Known<number>;
	min: Known<number>;
	max: Known<number>;
	mean: Known<number>;
	std: Known<number>;
}

export interface ReportRow {
	name: string;
	kind: string;
	file: Known<string>;
	line: Known<number>;
	user_file: Known<string>;
	user_line: Known<number>;
	library: Known<string>;
	calls: Known<number>;
	mean_ns: Known<number>;
	share: Known<number>;
	exclusive: Record<string, Values>;
	inclusive: Record<string, Values>;
}

export interface Report {
	metric: string;
	unit: string;
	by: string;
	total: Known<Values>;
	rows_available: number;
	rows: ReportRow[];
}

export interface JsonTable {
	id: string;
	title: string;
	columns: { name: string; unit: Known<string>; source: Known<string> }[];
	rows: (string | number | boolean | null)[][];
}

export interface Tables {
	model: Known<string>;
	runs: Known<number>;
	order: string;
	tables: JsonTable[];
}

export interface Iteration {
	step: Known<number>;
	start_ns: number;
	end_ns: number;
	duration_ns: Known<number>;
	ops: Known<number>;
	interval_ns: Known<number>;
	overlap_ns: Known<number>;
	idle_ns: Known<number>;
	op_time_ns: Known<number>;
	copy_bytes: Known<number>;
	outlier: boolean;
	/** The mean of each hardware counter over time; only if the profile has such. */
	counters?: Record<string, Known<number>>;
}

export interface Level {
	period_ops: number;
	occurrences: number;
	first_op: Known<string>;
	coverage: Known<number>;
	verdict: Known<string>;
	growing: boolean;
	interval_share: Known<number>;
	overlap_share: Known<number>;
	idle_share: Known<number>;
	summary: { outliers?: number; duration_ns?: Spread; interval_ns?: Spread; counters?: { name: string; unit: Known<string> }[] };
	iterations: Iteration[];
}

export interface Spread {
	avg: Known<number>;
	max: Known<number>;
	p50: Known<number>;
	p95: Known<number>;
}

export interface Loop {
	loop: number;
	main: boolean;
	start_ns: number;
	time_ns: Known<number>;
	kernels: number;
	occurrences: Known<number>;
	verdict: Known<string>;
	stretches: unknown[];
	/** Of the main loop they are the track's. */
	levels: Level[];
}

export interface Track {
	track: number;
	role: string;
	rank: Known<number>;
	process: Known<number>;
	device: Known<number>;
	stream: Known<number>;
	ops: number;
	levels: Level[];
	loops?: Loop[];
	outside?: { where: string; start_ns: number; end_ns: number; kernels: number; name: Known<string> }[];
	cycles?: Known<number>;
}

export interface Explained {
	explain: {
		track: number;
		level: number;
		iteration: number;
		median_iteration: Known<number>;
		ns: Known<number>;
		median_ns: Known<number>;
		rows: { cause: string; text: string; difference_ns: Known<number>; name: Known<string> }[];
	};
}

export interface Iters {
	newest: boolean;
	tracks: Track[];
	/** Steps of a program without GPU work. */
	host: Known<{ marker: Known<string>; count: number; track: Known<number>; duration_ns: Spread; iterations: { start_ns: number; duration_ns: Known<number> }[] }>;
}

export interface FrameValue {
	metric: string;
	unit: string;
	self: Known<number>;
	total: Known<number>;
	count: Known<number>;
	mean: Known<number>;
	min: Known<number>;
	max: Known<number>;
}

export interface Origin {
	reason: string;
	operator: Known<string>;
	stack: { name: string; file: Known<string>; line: Known<number> }[];
}

export interface FrameDetails {
	node: number;
	frame: number;
	name: string;
	kind: string;
	layer: string | number;
	file: Known<string>;
	line: Known<number>;
	function: Known<string>;
	library: Known<string>;
	user: Known<{ file: Known<string>; line: Known<number> }>;
	/** Where its box is. */
	depth: Known<number>;
	x0: number;
	x1: number;
	values: FrameValue[];
	/** Of two profiles: in the one before. */
	before_values?: FrameValue[];
	path: string[];
	findings: Finding[];
	/** What compiled code was made from. */
	from: Origin[];
}

export interface Change {
	name: string;
	before: Known<number>;
	after: Known<number>;
	change: Known<number>;
	ratio: Known<number>;
	low: Known<number>;
	high: Known<number>;
}

export interface DiffRow extends Change {
	kind: Known<string>;
	file: Known<string>;
	line: Known<number>;
	after_line: Known<number>;
	spread: Known<string>;
	/** Of operators and kernels that have other names on the other side, or are fused there. */
	before_names?: Known<string[]>;
	after_names?: Known<string[]>;
	fused_in?: Known<string[]>;
}

export interface Diff {
	by: string;
	metric: string;
	unit: string;
	statistic: string;
	environment: { key: string; before: Known<string>; after: Known<string> }[];
	measures: (Change & { unit: string })[];
	/** If the GPU's rows explain nothing: those of the host. */
	host: Known<{ metric: string; by: string; explained: Known<number>; rows: Change[] }>;
	rows: DiffRow[];
}

export interface Ranks {
	/** What the rows are of; null: no rank has GPU work. */
	of: "loop" | "collectives" | "work" | null;
	start_ns: Known<number>;
	end_ns: Known<number>;
	steps: Known<number>;
	newest: boolean;
	waits_available: number;
	ranks: JsonTable;
	waits: JsonTable;
}
