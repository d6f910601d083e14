// SPDX-License-Identifier: Apache-2.0
// The boxes of a flame graph as a table: in the order of the tree, or sorted.
import { useMemo, useState } from "preact/hooks";
import { LAYER_NAMES } from "../../draw/colours";
import { FINDING, type Flame } from "../../draw/flame";
import { percent, signedAmount } from "../../draw/words";
import type { Finding } from "../../protocol/types";
import type { Marks } from "../../shell/marks";
import { Table, type Cell, type TableColumn } from "../../shell/table";

/** The boxes, each after the one that called it. */
export function treeOrder(flame: Flame): number[] {
	const order: number[] = [];
	const next = Array.from(flame.start.subarray(0, flame.rows)); // the next box of each row
	const visit = (row: number, end: number) => {
		if (row >= flame.rows) return;
		while ((next[row] as number) < (flame.start[row + 1] as number) && (flame.x0[next[row] as number] as number) < end - 1e-12) {
			const box = (next[row] as number);
			next[row] = box + 1;
			order.push(box);
			visit(row + 1, flame.x1[box] as number);
		}
	};
	visit(0, Infinity);
	return order;
}

/** The findings of a box that carries the mark. Of two profiles, frames have other numbers, so they are not named. */
export function foundIn(flame: Flame, box: number, marks: Marks): readonly Finding[] {
	return (flame.flags[box] as number) & FINDING && !flame.before ? marks.frame(flame.frame[box] as number) : [];
}

export function BoxTable({ flame, only, marks, onOpen }: { flame: Flame; only?: number[]; marks: Marks; onOpen: (box: number) => void }) {
	const [sort, setSort] = useState("");
	const boxes = useMemo(() => only ?? treeOrder(flame), [flame, only]);
	const columns: TableColumn[] = useMemo(() => [
		{ id: "name", title: "name", isNumber: false },
		{ id: "layer", title: "layer", isNumber: false },
		...(flame.before ? [
			{ id: "before", title: "before", isNumber: true, unit: flame.total.unit }, { id: "total", title: "after", isNumber: true, unit: flame.total.unit },
			{ id: "change", title: "change", isNumber: true, words: (value: Cell) => signedAmount(value as number, flame.total.unit) },
		] : [
			{ id: "self", title: "self", isNumber: true, unit: flame.total.unit }, { id: "total", title: "total", isNumber: true, unit: flame.total.unit },
			{ id: "share", title: "share", isNumber: true, words: (value: Cell) => percent(value as number) },
		]),
	], [flame]);
	const cell = useMemo(() => (row: number, column: number): Cell => {
		const box = boxes[row] as number;
		const number = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? null : value);
		switch (column) {
			case 0: return flame.name(box);
			case 1: return LAYER_NAMES[flame.layer[box] as number] ?? "other";
			case 2: return number(flame.before ? flame.beforeOf(box) : flame.self[box]);
			case 3: return number(flame.value[box]);
			default: return flame.before ? number((flame.value[box] as number) - flame.beforeOf(box)) : number((flame.value[box] as number) / flame.total.value);
		}
	}, [flame, boxes]);
	return <Table label="Boxes of the flame graph" columns={columns} count={boxes.length} cell={cell} sort={sort} onSort={setSort}
		onOpen={(row) => onOpen(boxes[row] as number)} found={(row) => foundIn(flame, boxes[row] as number, marks)} {...(only || sort ? {} : { indent: (row: number) => flame.depth[boxes[row] as number] as number })} />;
}
