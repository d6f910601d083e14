// SPDX-License-Identifier: Apache-2.0
// A long list of lines or instructions. Only rows that are seen are drawn, and only these are asked for.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { STALL_CLASSES, STALLS } from "../../draw/colours";
import { amount } from "../../draw/words";
import type { Table } from "../../protocol/columns";
import { useApp } from "../../state/app";
import { heatWords, type Heat } from "./data";

export const ROW = 20;
const AROUND = 12, PAGE = 500, PAGES_MOST = 40;

/** A row of an answer. */
export interface At {
	table: Table;
	row: number;
}

export interface Asked {
	/** A different key is a different list. */
	key: string;
	/** Rows of the list. */
	count: number;
	/** What the column NAME has in the first row of the list. */
	name: string;
	base: number;
	/** The answer is whole: its rows are those of the list. */
	isWhole: boolean;
	/** COUNT 0: all that there are. */
	ask(first: number, count: number): Promise<Table | undefined>;
}

/** The rows from FIRST to LAST, as far as they are there. */
export function usePages(asked: Asked, first: number, last: number): { at: (index: number) => At | null; error: Error | null } {
	const app = useApp(), isOne = asked.isWhole || app.source.isOffline;
	const held = useRef({ key: "", pages: new Map<number, Table | null>() });
	const [, tell] = useState(0), [error, setError] = useState<Error | null>(null);
	if (held.current.key !== asked.key) held.current = { key: asked.key, pages: new Map() };
	const { pages } = held.current, pageOf = (index: number) => (isOne ? 0 : Math.floor(index / PAGE));
	const from = pageOf(first), to = pageOf(Math.max(first, last - 1));
	useEffect(() => {
		setError(null);
		for (let page = from; asked.count > 0 && page <= to; page++) {
			if (pages.has(page)) continue;
			pages.set(page, null);
			asked.ask(isOne ? 0 : asked.base + page * PAGE, isOne ? 0 : PAGE).then((table) => {
				pages.set(page, table ?? null);
				for (const other of pages.keys()) if (pages.size > PAGES_MOST && Math.abs(other - page) > PAGES_MOST / 4) pages.delete(other);
				tell((times) => times + 1);
			}, (failed: unknown) => {
				pages.delete(page);
				setError(failed instanceof Error ? failed : new Error(String(failed)));
			});
		}
	}, [asked.key, from, to]);
	return {
		error,
		at: (index) => {
			const table = pages.get(pageOf(index));
			if (!table) return null;
			const row = asked.isWhole ? index : asked.base + index - table.column(asked.name).number(0);
			return row >= 0 && row < table.rows ? { table, row } : null;
		},
	};
}

/** What is visible of a box that scrolls, in rows. GO: the row to show, each time that it changes. */
export function useScroll(count: number, go: number) {
	const box = useRef<HTMLDivElement>(null);
	const [place, setPlace] = useState({ top: 0, height: 400 });
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
	useLayoutEffect(() => {
		const at = box.current;
		if (!at || go < 0) return;
		const top = go * ROW;
		if (top < at.scrollTop + ROW || top > at.scrollTop + at.clientHeight - 3 * ROW) at.scrollTop = Math.max(0, top - at.clientHeight / 3);
	}, [go, count]);
	const first = Math.max(0, Math.floor(place.top / ROW) - AROUND), last = Math.min(count, Math.ceil((place.top + place.height) / ROW) + AROUND);
	return { box, first, last };
}

/** Exposed samples by class, then hidden ones, striped. MOST is a whole bar. */
export function HeatBar({ heat, most }: { heat: Heat; most: number }) {
	const app = useApp(), colours = STALLS[app.look];
	const part = (value: number | undefined, index: number, kind: string) => (value ? <span key={`${kind}${index}`} class={kind} style={{ width: `${(value / most) * 100}%`, backgroundColor: colours[index] }} /> : null);
	return <span class="heat-bar" aria-hidden="true">{heat.exposed.map((value, index) => part(value, index, "exposed"))}{heat.covered.map((value, index) => part(value, index, "covered"))}</span>;
}

export function HeatCell({ heat, most }: { heat: Heat | null; most: number }) {
	return <td class="heat" title={heat ? heatWords(heat) : ""}>{heat && (heat.waiting + heat.hidden > 0) && <><HeatBar heat={heat} most={most} />
		<span class="many">{heat.waiting > 0 ? amount(heat.waiting, null) : `(${amount(heat.hidden, null)})`}</span></>}</td>;
}

export function HeatLegend() {
	const app = useApp();
	return <ul class="legend" aria-label="Classes of waiting">{STALL_CLASSES.map((name, index) => <li key={name}><span class="swatch" style={{ background: STALLS[app.look][index] }} />{name}</li>)}
		<li><span class="swatch covered" />hidden: another warp issued</li></ul>;
}

/** The spaces above and below the rows that are drawn. */
export function Gap({ rows, columns }: { rows: number; columns: number }): ComponentChildren {
	return rows > 0 ? <tr aria-hidden="true" style={{ height: `${rows * ROW}px` }}><td colSpan={columns} /></tr> : null;
}
