// SPDX-License-Identifier: Apache-2.0
// Which rows cost most, as measured and corrected: a line from place to place.
import { heightOf, slopesOf } from "../../draw/slope";
import { short, visible } from "../../draw/words";
import type { Known } from "../../protocol/types";
import type { LevelValue } from "./data";

const MOST = 12, ROW = 24;

export function Slopes({ rows, before, after, onOpen }: { rows: LevelValue[]; before: Known<number>[]; after: Known<number>[]; onOpen: (row: number) => void }) {
	const most = Math.min(MOST, rows.length), slopes = slopesOf(before, after, most);
	const moved = slopes.filter((one) => one.before !== one.after), sure = slopes.filter((one) => rows[one.row]?.passes);
	if (slopes.length < 2) return null;
	const height = slopes.some((one) => one.before > most || one.after > most) ? most + 1 : most;
	const column = (side: "before" | "after") => {
		const shown = slopes.filter((one) => one[side] <= most).sort((a, b) => a[side] - b[side]);
		return (
			<ul class={side}>
				{shown.map((one) => {
					const row = rows[one.row] as LevelValue, name = short(visible(row.label));
					return <li key={one.row} style={{ height: `${ROW}px` }} class={row.passes ? "sure" : ""}>
						<button type="button" class="plain" title={`${visible(row.label)}: place ${one.before} as measured, ${one.after} corrected`} onClick={() => onOpen(one.row)}>{one[side]}. {name}</button></li>;
				})}
			</ul>
		);
	};
	return (
		<figure class="slopes">
			<div class="heads"><strong>as measured</strong><strong>corrected</strong></div>
			<div class="sides">
				{column("before")}
				<svg viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" style={{ height: `${height * ROW}px` }} role="img"
					aria-label={`The ${most} that cost most, as measured on the left and corrected on the right. ${moved.length} change their place, ${sure.length} of them by more than the runs differ. The table has the places of all.`}>
					{[...slopes].sort((a, b) => Number(!!rows[a.row]?.passes) - Number(!!rows[b.row]?.passes)).map((one) => (
						<path key={one.row} class={rows[one.row]?.passes ? "sure" : one.before !== one.after ? "moved" : ""} vector-effect="non-scaling-stroke"
							d={`M0 ${heightOf(one.before, most)}L100 ${heightOf(one.after, most)}`} />
					))}
				</svg>
				{column("after")}
			</div>
			<figcaption>{moved.length === 0 ? "Looking changes no place among these."
				: `${moved.length} of these change their place${sure.length ? `; ${sure.length} of them, drawn bold, by more than the runs differ` : ", none of them by more than the runs differ"}.`}
				{height > most && " Lines to the lower edge lead to places further down."}</figcaption>
		</figure>
	);
}
