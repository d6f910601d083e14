// SPDX-License-Identifier: Apache-2.0
// The tables of the page Traffic about links: routes, and what collectives take on them.
import { percent } from "../../draw/words";
import type { Query } from "../../protocol/query";
import { CsvButton } from "../../shell/parts";
import type { Cell } from "../../shell/table";
import { speedWords, type Collective, type Route, type Traffic } from "./data";
import { List, type Column } from "./lists";

const speeds = (value: Cell) => speedWords(value as number | null);
const shares = (value: Cell) => percent(value as number | null);
const ratios = (value: Cell) => (typeof value === "number" ? value.toFixed(2) : "unknown");

export function Routes({ traffic, query }: { traffic: Traffic; query: Query }) {
	const most = traffic.routes.reduce((max, one) => Math.max(max, one.bytes ?? 0), 0) || 1;
	const columns: Column<Route>[] = [
		{ id: "route", title: "route", isNumber: false, value: (row) => row.route },
		{ id: "kind", title: "kind", isNumber: false, value: (row) => row.kind },
		{ id: "link", title: "link", isNumber: false, value: (row) => row.link },
		{ id: "bytes", title: "moved", isNumber: true, unit: "B", value: (row) => row.bytes, bar: (row) => (traffic.routes[row]?.bytes ?? 0) / most },
		{ id: "accesses", title: "accesses", isNumber: true, value: (row) => row.accesses },
		{ id: "carries", title: "the link carries", isNumber: true, words: speeds, value: (row) => row.link_bytes_per_second },
		{ id: "speed", title: "copies at", isNumber: true, words: speeds, value: (row) => row.speed },
		{ id: "share", title: "of the link", isNumber: true, words: shares, value: (row) => row.link_share },
	];
	if (traffic.routes.length === 0) return null;
	return <>
		<div class="tools"><CsvButton name="routes" answer="traffic" query={{ ...query, by: "route", top: 0 }} table="Routes" /></div>
		<List label="Routes" rows={traffic.routes} columns={columns} sort="rsort" usual="-bytes" />
	</>;
}

export function Collectives({ traffic, query }: { traffic: Traffic; query: Query }) {
	const how = (row: Collective) => [row.algorithm, row.protocol].filter((word) => word !== null).join(" ") || null;
	const columns: Column<Collective>[] = [
		{ id: "operation", title: "operation", isNumber: false, value: (row) => row.name },
		{ id: "ranks", title: "ranks", isNumber: true, value: (row) => row.size },
		{ id: "times", title: "times", isNumber: true, value: (row) => row.count },
		{ id: "how", title: "how", isNumber: false, value: how },
		{ id: "asked", title: "a call asks for", isNumber: true, unit: "B", value: (row) => row.bytes },
		{ id: "sent", title: "a rank sends", isNumber: true, unit: "B", value: (row) => row.sent_bytes },
		{ id: "ratio", title: "ratio, computed", isNumber: true, words: ratios, value: (row) => row.sent_ratio },
		{ id: "measured", title: "all calls, measured", isNumber: true, unit: "B", value: (row) => row.measured_bytes },
		{ id: "mratio", title: "ratio, measured", isNumber: true, words: ratios, value: (row) => row.measured_ratio },
		{ id: "bus", title: "bus", isNumber: true, words: speeds, value: (row) => row.busbw },
		{ id: "share", title: "of the link", isNumber: true, words: shares, value: (row) => row.link_share },
		{ id: "link", title: "link", isNumber: false, value: (row) => row.link },
	];
	return <>
		<div class="tools"><CsvButton name="collectives" answer="traffic" query={{ ...query, by: "collective", top: 0 }} table="Collectives" /></div>
		<p class="quiet">What a rank sends in one call is computed from the algorithm and protocol. It is measured where the accesses of kernels were recorded.</p>
		<List label="Collectives" rows={traffic.collectives} columns={columns} sort="csort" usual="-asked" />
	</>;
}
