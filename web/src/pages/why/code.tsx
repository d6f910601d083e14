// SPDX-License-Identifier: Apache-2.0
// Machine code with its samples, and arrows from the instruction that is chosen to what made it wait.
import { percent, visible } from "../../draw/words";
import type { Query } from "../../protocol/query";
import { useApp } from "../../state/app";
import { Trouble } from "../../shell/parts";
import { heatOf, offsetWords, type Hot, type Stall, type StallCause } from "./data";
import { Gap, HeatCell, ROW, usePages, useScroll } from "./rows";

const HEAD = 22, GUTTER = 58, ARROWS_MOST = 6;

interface CodeProps {
	kernel: number;
	query: Query;
	hot: Hot;
	hasLines: boolean;
	/** The instruction that is chosen, and the line. */
	at: number;
	line: { file: string; line: number } | null;
	/** Of this the causes are shown. */
	stall: Stall | null;
	cause: StallCause | null;
	onPick: (number: number) => void;
}

export function Code({ kernel, query, hot, hasLines, at, line, stall, cause, onPick }: CodeProps) {
	const app = useApp();
	const { box, first, last } = useScroll(hot.count, at);
	const { at: rowAt, error } = usePages({
		key: `${query["file"] ?? 0} ${kernel}`, count: hot.count, name: "number", base: 0, isWhole: false,
		ask: async (from, count) => (await app.source.tables("why/code", app.source.isOffline ? query : { ...query, first: from, count }))[0],
	}, first, last);
	const columns = hasLines ? 5 : 4, numbers = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
	const causes = new Map(stall?.causes.flatMap((one) => (typeof one.number === "number" ? [[one.number, one] as const] : [])));
	return (
		<div class="rows code" ref={box} tabIndex={0} role="region" aria-label="Machine code">
			{error && <Trouble error={error} />}
			<div class="sheet">
				<table aria-rowcount={hot.count + 1}>
					<thead><tr aria-rowindex={1}><th scope="col" class="heat">waiting</th><th scope="col" class="gutter"><span class="unseen">causes</span></th><th scope="col" class="number">offset</th><th scope="col">instruction</th>{hasLines && <th scope="col" class="number">line</th>}</tr></thead>
					<tbody>
						<Gap rows={first} columns={columns} />
						{numbers.map((number) => {
							const found = rowAt(number), heat = found && heatOf(found.table, found.row), of = causes.get(number);
							const here = found?.table.column("line").number(found.row) ?? NaN, isOfLine = line !== null && here === line.line && found?.table.column("file").text(found.row) === line.file;
							const offset = found ? offsetWords(found.table.column("offset").number(found.row)) : "";
							return (
								<tr key={number} aria-rowindex={number + 2} class={number === at ? "picked" : isOfLine ? "akin" : ""} aria-current={number === at ? "true" : undefined} onClick={() => onPick(number)}>
									<HeatCell heat={heat} most={hot.most} />
									<td class="gutter">{of && <span class="unseen">cause of {percent(of.share)} of it</span>}</td>
									<th scope="row" class="number">{found ? <button type="button" class="plain" onClick={(event) => { event.stopPropagation(); onPick(number); }}>{offset}</button> : "…"}</th>
									<td class="words">{found ? visible(found.table.column("instruction").text(found.row)) : app.source.isOffline ? "this page does not hold it" : ""}</td>
									{hasLines && <td class="number">{Number.isNaN(here) ? "" : here}</td>}
								</tr>
							);
						})}
						<Gap rows={hot.count - last} columns={columns} />
					</tbody>
				</table>
				{stall && <Arrows stall={stall} cause={cause} first={first} last={last} />}
			</div>
		</div>
	);
}

/** Arrows to what made the stall wait, as strong as its share; and, dashed, what that waited for in turn. */
function Arrows({ stall, cause, first, last }: { stall: Stall; cause: StallCause | null; first: number; last: number }) {
	const to = stall.number;
	if (typeof to !== "number") return null;
	const arrows = stall.causes.filter((one) => typeof one.number === "number").slice(0, ARROWS_MOST).map((one) => ({ from: one.number as number, to, share: one.share ?? 0, isChain: false, isPicked: one === cause }));
	const chain = (cause?.chain ?? []).flatMap((hop, index, all) => (index && typeof hop.number === "number" && typeof all[index - 1]?.number === "number"
		? [{ from: hop.number, to: all[index - 1]?.number as number, share: 0.2, isChain: true, isPicked: false }] : []));
	const y = (number: number) => (Math.max(first - 1, Math.min(last, number)) - first) * ROW + ROW / 2;
	return (
		<svg class="arrows" aria-hidden="true" width={GUTTER} height={(last - first) * ROW} style={{ top: `${HEAD + first * ROW}px` }}>
			{[...arrows, ...chain].map((arrow, index) => {
				const from = y(arrow.from), end = y(arrow.to), x = GUTTER - 12 - 7 * (index % 6);
				if (arrow.from === arrow.to) return <path key={index} class={`own ${arrow.isPicked ? "picked" : ""}`} d={`M${GUTTER - 4} ${end + 5}A6 6 0 1 1 ${GUTTER - 4} ${end - 5}`} stroke-width={1 + 2 * arrow.share} />;
				return (
					<g key={index} class={arrow.isPicked ? "picked" : arrow.isChain ? "chain" : ""}>
						<path d={`M${GUTTER - 2} ${end}H${x}V${from}H${GUTTER - 5}`} stroke-width={1 + 2 * arrow.share} />
						<path class="tip" d={`M${GUTTER - 8} ${from - 4}L${GUTTER - 1} ${from}L${GUTTER - 8} ${from + 4}z`} />
					</g>
				);
			})}
		</svg>
	);
}
