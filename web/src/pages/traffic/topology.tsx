// SPDX-License-Identifier: Apache-2.0
// Which parties exchange data, as a picture of the links that were used.
import { amount, visible } from "../../draw/words";
import { useApp } from "../../state/app";
import { PALETTES } from "../../draw/colours";
import { mostOf, type Cells, type Party } from "./data";
import { shortLabel } from "./matrix";

const LINKS_MOST = 400;

/** Links by what went both ways. */
function linksOf(cells: Cells): { a: number; b: number; there: number; back: number }[] {
	const links: { a: number; b: number; there: number; back: number }[] = [];
	for (let a = 0; a < cells.length; a++) {
		for (let b = a + 1; b < cells.length; b++) {
			const there = cells[a]?.[b] ?? 0, back = cells[b]?.[a] ?? 0;
			if (there > 0 || back > 0) links.push({ a, b, there, back });
		}
	}
	return links.sort((x, y) => y.there + y.back - x.there - x.back);
}

export function Topology({ cells, parties, routes, cell, onPick }: {
	cells: Cells; parties: Party[]; routes: (a: number, b: number) => string[]; cell: [number, number] | null; onPick: (from: number, to: number) => void;
}) {
	const app = useApp(), palette = PALETTES[app.look], count = parties.length;
	const links = linksOf(cells), shown = links.slice(0, LINKS_MOST), most = Math.max(1, mostOf(cells));
	const radius = Math.max(90, Math.min(250, count * 7 + 40)), size = radius * 2 + 90, middle = size / 2, widest = shown.length > 100 ? 2 : 8, node = count > 24 ? 9 : 15;
	const place = (index: number): [number, number] => {
		const angle = (index / count) * 2 * Math.PI - Math.PI / 2;
		return [middle + radius * Math.cos(angle), middle + radius * Math.sin(angle)];
	};
	const name = (index: number) => visible(parties[index]?.label ?? "?");
	const words = (link: (typeof links)[number]) => {
		const via = routes(link.a, link.b);
		return `${name(link.a)} → ${name(link.b)} ${amount(link.there, "B")}, ${name(link.b)} → ${name(link.a)} ${amount(link.back, "B")}${via.length ? `, by ${via.join(", ")}` : ""}`;
	};
	if (links.length === 0) return <p class="quiet">No link was used.</p>;
	return (
		<figure class="topology">
			<svg viewBox={`0 0 ${size} ${size}`} width={size} height={size} role="img" aria-label={`${links.length} links that were used, between ${count} parties. The table of pairs has the same.`}>
				{shown.map((link) => {
					const [x1, y1] = place(link.a), [x2, y2] = place(link.b), share = (link.there + link.back) / (2 * most);
					const isPicked = cell !== null && ((cell[0] === link.a && cell[1] === link.b) || (cell[0] === link.b && cell[1] === link.a));
					// Curves of neighbours would lie on each other if they were straight.
					const bend = 0.12, cx = (x1 + x2) / 2 * (1 - bend) + middle * bend, cy = (y1 + y2) / 2 * (1 - bend) + middle * bend;
					return (
						<path key={`${link.a} ${link.b}`} class="link" d={`M${x1} ${y1}Q${cx} ${cy} ${x2} ${y2}`} fill="none" stroke={isPicked ? palette.mark : palette.layers[0]} stroke-width={0.7 + widest * Math.sqrt(Math.min(1, share))}
							stroke-opacity={isPicked ? 1 : shown.length > 100 ? 0.4 : 0.75} onClick={() => (link.there >= link.back ? onPick(link.a, link.b) : onPick(link.b, link.a))}><title>{words(link)}</title></path>
					);
				})}
				{parties.map((party, index) => {
					const [x, y] = place(index);
					return <g key={index}><circle cx={x} cy={y} r={node} fill={palette.background} stroke={palette.text} stroke-width={party.kind === "device" ? 1.5 : 0.7} /><title>{name(index)}</title>
						<text x={x} y={y} font-size={count > 24 ? 9 : 11} text-anchor="middle" dominant-baseline="central" fill={palette.text} pointer-events="none">{shortLabel(party).replace(/^rank /, "")}</text></g>;
				})}
			</svg>
			<figcaption class="quiet">Each line is a link that was used, the wider the more data. {shown.length < links.length && `These are the ${shown.length} most used of ${links.length}. `}
				How the machine is wired is not recorded.</figcaption>
		</figure>
	);
}
