// SPDX-License-Identifier: Apache-2.0
// A dot with a whisker for each level: the mean, and its interval of 95 %.
import { axisOf, placeOn, type Axis, type Whisker } from "../../draw/whisker";
import { amount } from "../../draw/words";

const at = (axis: Axis, value: number) => `${placeOn(axis, value) * 100}%`;

/** "9.06 ms", "9.06 ms (8.90 ms to 9.21 ms)". */
export function whiskerWords({ value, low, high }: Whisker, words: (ns: number | null) => string = (ns) => amount(ns, "ns")): string {
	return value === null || low === null || high === null ? words(value) : `${words(value)} (${words(low)} to ${words(high)})`;
}

export function Whiskers({ title, rows, words }: { title: string; rows: (Whisker & { name: string })[]; words?: (ns: number | null) => string }) {
	const axis = axisOf(rows);
	if (!axis) return null;
	return (
		<figure class="whiskers">
			<figcaption>{title}</figcaption>
			<ul>
				{rows.map((row) => (
					<li key={row.name}>
						<strong>{row.name}</strong>
						<div class="track" aria-hidden="true">
							{axis.ticks.map((tick) => <span key={tick} class={tick === 0 ? "tick zero" : "tick"} style={{ left: at(axis, tick) }} />)}
							{row.value !== null && row.low !== null && row.high !== null &&
								<span class="whisker" style={{ left: at(axis, row.low), width: `${(placeOn(axis, row.high) - placeOn(axis, row.low)) * 100}%` }} />}
							{row.value !== null && <span class="dot" style={{ left: at(axis, row.value) }} />}
						</div>
						<span class="value">{whiskerWords(row, words)}</span>
					</li>
				))}
				<li aria-hidden="true" class="scale"><span /><div class="track">
					{axis.ticks.map((tick) => <span key={tick} class="label" style={{ left: at(axis, tick) }}>{tick === 0 ? "0" : (words ?? ((ns: number | null) => amount(ns, "ns")))(tick)}</span>)}</div><span /></li>
			</ul>
		</figure>
	);
}
