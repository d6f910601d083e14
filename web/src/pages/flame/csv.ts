// SPDX-License-Identifier: Apache-2.0
// The boxes that are shown, as rows of a CSV file: names in full, numbers as they are, one header.
import { LAYERS } from "../../draw/colours";
import { FINDING, MATCH, type Flame } from "../../draw/flame";
import { treeOrder } from "./boxes";

type Field = string | number | null;

/** The part of the width that the address names. */
export function visibleRange(values: Record<string, string>): [number, number] {
	return [Number(values["x0"] ?? 0) || 0, Number(values["x1"] ?? 1) || 1];
}

/** Of each graph by its view: its boxes in the range, each after the one that called it. */
export function csvRows(flames: Record<string, Flame | null>, [from, to]: [number, number]): Field[][] {
	const all = Object.entries(flames).flatMap(([view, flame]) => (flame ? [{ view, flame }] : []));
	const first = all[0]?.flame, isPair = first?.before;
	if (!first) return [];
	const { unit } = first.total;
	const rows: Field[][] = [["view", "depth", "name", "layer", `self (${unit})`, `total (${unit})`, ...(isPair ? [`before (${unit})`, `change (${unit})`] : ["share"]),
		"boxes", "finding", "match", "path"]];
	const number = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? null : value);
	for (const { view, flame } of all) {
		const path: string[] = [];
		for (const box of treeOrder(flame)) {
			const depth = flame.depth[box] as number, name = flame.name(box), value = flame.value[box] as number, flags = flame.flags[box] as number;
			path.length = depth;
			path.push(name);
			if ((flame.x1[box] as number) <= from || (flame.x0[box] as number) >= to) continue;
			rows.push([view, depth, name, LAYERS[flame.layer[box] as number] ?? "other", number(flame.self[box]), number(value),
				...(isPair ? [number(flame.beforeOf(box)), number(value - flame.beforeOf(box))] : [number(value / flame.total.value)]),
				flame.many[box] as number, flags & FINDING ? 1 : 0, flags & MATCH ? 1 : 0, path.join(";")]);
		}
	}
	return rows;
}
