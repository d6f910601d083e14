// SPDX-License-Identifier: Apache-2.0
// The answer about levels as the page uses it.
import type { JsonTable, Known } from "../../protocol/types";
import { numbers, roofOf, texts } from "../layers/figures";

export interface Level {
	level: string;
	sees: string;
	runs: number;
	kept: number;
	scope: "run" | "step";
	bounds: string;
	steps: Known<number>;
	wall_ns: { mean: Known<number>; low: Known<number>; high: Known<number> };
	overhead_ns: Known<number>;
	overhead_low_ns: Known<number>;
	overhead_high_ns: Known<number>;
	why: Known<string>;
}

export interface LevelValue {
	context: number;
	kind: string;
	name: string;
	metric: string;
	measured_ns: Known<number>;
	corrected_ns: Known<number>;
	low_ns: Known<number>;
	high_ns: Known<number>;
	own_ns: Known<number>;
	passed_name: Known<string>;
	/** What it passes, as a sentence. */
	passes: Known<string>;
	label: string;
	/** The layer, or what the layer is in. */
	within: Known<string>;
	share: Known<number>;
}

export interface Levels {
	command: Known<string>;
	said: { of: "program" | "note" | "layers" | "kernels"; text: string }[];
	measured: Level[];
	rows: LevelValue[];
	rows_available: number;
	order: LevelValue[];
	left_out: LevelValue[];
}

/** Values are of all iterations of the loop: by how many one is divided. */
export function stepsOf(levels: Levels): number {
	const steps = levels.measured[0]?.steps ?? null;
	return steps !== null && steps >= 1 ? steps : 1;
}

export function unitOf(levels: Levels): string {
	return levels.measured[0]?.scope === "step" ? "an iteration" : "the run";
}

export const isLayer = (row: LevelValue) => row.metric === "op.time";

/** The corrected time that is shown: of GPU work its own. */
export function correctedOf(row: LevelValue): Known<number> {
	return isLayer(row) ? row.corrected_ns : row.own_ns ?? row.corrected_ns;
}

/** How much of what the roof allows at its intensity each row of a roofline's table achieves; NaN: not known. */
export function ofRoof(table: JsonTable): number[] {
	const kind = table.id === "A9" ? "kernel" : "layer", roof = roofOf(table, "");
	const intensity = numbers(table, `${kind}_arithmetic_intensity (flops/byte)`), throughput = numbers(table, `${kind}_arithmetic_throughput (GFlops)`);
	return table.rows.map((_, row) => (roof ? (throughput[row] as number) / Math.min(roof.peak, (intensity[row] as number) * roof.bandwidth) : NaN));
}

/** What each row of a roofline's table is of. */
export function namesOf(table: JsonTable): { name: string; layer: string }[] {
	const layers = texts(table, "layer_name"), kernels = texts(table, "kernel_name");
	return table.rows.map((_, row) => ({ name: (table.id === "A9" ? kernels[row] : layers[row]) ?? "", layer: layers[row] ?? "" }));
}
