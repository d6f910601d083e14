// SPDX-License-Identifier: Apache-2.0
// A time and its parts, as one bar with a legend that has the numbers.
import { PARTS } from "../draw/colours";
import { amount, percent } from "../draw/words";
import { useApp } from "../state/app";

export interface Part {
	name: string;
	/** A name of PARTS. */
	colour: string;
	/** A colour itself, instead. */
	fill?: string;
	value: number;
	href?: string;
}

export function StackedBar({ title, note, total, unit, parts }: { title: string; note?: string; total: number; unit: string; parts: Part[] }) {
	const app = useApp();
	const shown = parts.filter((part) => part.value > 0);
	const colours = PARTS[app.look];
	return (
		<figure class="stacked">
			<figcaption>{title}: {amount(total, unit)}{note && <span class="quiet">{" "}{note}</span>}</figcaption>
			<div class="stack" aria-hidden="true">
				{shown.map((part) => (
					<span key={part.name} title={`${part.name}: ${amount(part.value, unit)}`}
						style={{ width: `${(part.value / total) * 100}%`, background: part.fill ?? colours[part.colour] ?? colours["rest"] }} />
				))}
			</div>
			<ul class="legend">
				{shown.map((part) => (
					<li key={part.name}>
						<span class="swatch" style={{ background: part.fill ?? colours[part.colour] ?? colours["rest"] }} />
						{part.href ? <a href={part.href}>{part.name}</a> : part.name} {amount(part.value, unit)} ({percent(part.value / total)})
					</li>
				))}
			</ul>
		</figure>
	);
}
