// SPDX-License-Identifier: Apache-2.0
// A table that is sorted, filtered and drawn only where it is seen, so that it may have any number of rows.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { amount, visible } from "../draw/words";
import type { Finding } from "../protocol/types";
import { FindingMark } from "./marks";

export type Cell = string | number | boolean | null;

export interface TableColumn {
	id: string;
	title: string;
	unit?: string | null;
	isNumber: boolean;
	/** Words for a cell; otherwise it is shown with its unit. */
	words?: (value: Cell, row: number) => string;
	/** Where a cell leads. */
	href?: (row: number) => string | null;
	/** A part of 1 that is drawn as a bar behind the number. */
	bar?: (row: number) => number;
}

const ROW = 28, AROUND = 10;

export interface TableProps {
	label: string;
	columns: TableColumn[];
	count: number;
	cell: (row: number, column: number) => Cell;
	/** "column" or "-column": the greatest first. "": as given. */
	sort: string;
	onSort: (sort: string) => void;
	filter?: string;
	/** Opens a row; the first column then has a button. */
	onOpen?: ((row: number) => void) | undefined;
	/** Which rows open; without it all do. */
	canOpen?: (row: number) => boolean;
	indent?: (row: number) => number;
	picked?: number;
	/** The findings that a row is about; it then carries their mark. */
	found?: (row: number) => readonly Finding[];
	/** The file that they are of, if that is not the one of the page. */
	foundIn?: string | null;
}

/** The rows in their order: those that match the filter, sorted. Unknown values come last. */
export function orderRows(count: number, cell: (row: number, column: number) => Cell, columns: TableColumn[], sort: string, filter: string): number[] {
	const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
	const texts = columns.flatMap((column, index) => (column.isNumber ? [] : [index]));
	let rows = Array.from({ length: count }, (_, row) => row);
	if (words.length) {
		rows = rows.filter((row) => {
			const text = texts.map((index) => String(cell(row, index) ?? "")).join("\n").toLowerCase();
			return words.every((word) => text.includes(word));
		});
	}
	const way = sort.startsWith("-") ? -1 : 1, index = columns.findIndex((column) => column.id === sort.replace(/^-/, ""));
	if (index < 0) return rows;
	return rows.sort((a, b) => {
		const x = cell(a, index), y = cell(b, index);
		const isX = x !== null && x !== "" && !Number.isNaN(x), isY = y !== null && y !== "" && !Number.isNaN(y);
		if (!isX || !isY) return Number(isY) - Number(isX) || a - b;
		const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
		return way * order || a - b;
	});
}

export function cellText(column: TableColumn, value: Cell, row: number): string {
	if (column.words) return column.words(value, row);
	if (value === null) return "unknown";
	if (typeof value === "number") return amount(value, column.unit ?? null);
	return visible(String(value));
}

/** The tables that are on the page now, by their labels. */
const tables = new Map<string, TableProps>();

/** The rows of a table on the page (without a label, of the last one), in their order, with names in full and numbers as they are; below a header with units. */
export function shownRows(label?: string): Cell[][] {
	const shown = label === undefined ? [...tables.values()].pop() : tables.get(label);
	if (!shown) return [];
	const { columns, count, cell, sort, filter } = shown;
	const head = columns.map((column) => (column.unit ? `${column.title} (${column.unit})` : column.title));
	return [head, ...orderRows(count, cell, columns, sort, filter ?? "").map((row) => columns.map((_, at) => cell(row, at)))];
}

export function Table(props: TableProps) {
	const { columns, cell, sort, onOpen } = props;
	const box = useRef<HTMLDivElement>(null);
	const [place, setPlace] = useState({ top: 0, height: 600 });
	const rows = useMemo(() => orderRows(props.count, cell, columns, sort, props.filter ?? ""), [props.count, cell, columns, sort, props.filter]);
	useLayoutEffect(() => {
		tables.set(props.label, props);
		return () => void tables.delete(props.label);
	});
	useLayoutEffect(() => {
		const at = box.current;
		if (!at) return;
		const look = () => setPlace({ top: at.scrollTop, height: at.clientHeight });
		const watcher = new ResizeObserver(look);
		watcher.observe(at);
		at.addEventListener("scroll", look, { passive: true });
		look();
		return () => {
			watcher.disconnect();
			at.removeEventListener("scroll", look);
		};
	}, []);
	const first = Math.max(0, Math.floor(place.top / ROW) - AROUND), last = Math.min(rows.length, Math.ceil((place.top + place.height) / ROW) + AROUND);
	return (
		<div class="table" ref={box} tabIndex={0} role="region" aria-label={props.label}>
			<table aria-rowcount={rows.length + 1}>
				<thead>
					<tr aria-rowindex={1}>
						{columns.map((column) => {
							const way = sort === column.id ? "ascending" : sort === `-${column.id}` ? "descending" : undefined;
							const next = way === "descending" || (!way && !column.isNumber) ? column.id : `-${column.id}`;
							return (
								<th key={column.id} scope="col" aria-sort={way} class={column.isNumber ? "number" : ""}>
									<button type="button" onClick={() => props.onSort(next)}>
										{column.title}{way && <span aria-hidden="true">{way === "ascending" ? " ▲" : " ▼"}</span>}
									</button>
								</th>
							);
						})}
					</tr>
				</thead>
				<tbody>
					{first > 0 && <tr aria-hidden="true" style={{ height: `${first * ROW}px` }}><td colSpan={columns.length} /></tr>}
					{rows.slice(first, last).map((row, index) => (
						<tr key={row} aria-rowindex={first + index + 2} class={row === props.picked ? "picked" : ""}>
							{columns.map((column, at) => {
								const value = cell(row, at), text = cellText(column, value, row), href = column.href?.(row);
								const Head = at === 0 ? "th" : "td";
								return (
									<Head key={column.id} scope={at === 0 ? "row" : undefined} title={text} class={column.isNumber ? "number" : "words"}>
										{at === 0 && props.indent ? <span class="indent" style={{ width: `${Math.min(40, props.indent(row)) * 10}px` }} /> : null}
										{at === 0 && props.found ? <FindingMark found={props.found(row)} file={props.foundIn ?? null} /> : null}
										{column.bar ? <span class="bar" style={{ width: `${Math.max(0, Math.min(1, column.bar(row) || 0)) * 100}%` }} /> : null}
										{at === 0 && onOpen && (props.canOpen?.(row) ?? true) ? <button type="button" class="plain" onClick={() => onOpen(row)}>{text}</button>
											: href ? <a href={href}>{text}</a> : <span class={value === null ? "unknown" : ""}>{text}</span>}
									</Head>
								);
							})}
						</tr>
					))}
					{last < rows.length && <tr aria-hidden="true" style={{ height: `${(rows.length - last) * ROW}px` }}><td colSpan={columns.length} /></tr>}
				</tbody>
			</table>
			{rows.length === 0 && <p class="notice">{props.count ? "No row matches the filter." : "There are no rows."}</p>}
		</div>
	);
}
