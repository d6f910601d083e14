// SPDX-License-Identifier: Apache-2.0
// How the parties are wired, and over which links they exchange data, as a picture.
import { amount, percent, visible } from "../../draw/words";
import { useApp } from "../../state/app";
import { PALETTES } from "../../draw/colours";
import { linkBetween, mostOf, speedWords, type Cells, type Direction, type Link, type Party, type Traffic } from "./data";
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

/** "18 NVLinks through NVSwitch, 478 GB/s in one direction". */
const linkWords = (link: Link) => `${visible(link.label)}, ${link.bytes_per_second === null ? "its bandwidth is unknown" : `${speedWords(link.bytes_per_second)} in one direction`}`;

/** "; copies reached 225 GB/s there, 50.0 % of it". */
const reached = (way: Direction, where: string) => (way.speed === null ? "" : `; copies reached ${speedWords(way.speed)} ${where}${way.link_share === null ? "" : `, ${percent(way.link_share)} of it`}`);

/** The wiring: NVLinks to switches lead to the middle, all others from party to party. */
function Wires({ links, place, middle, colour, background, name }: { links: readonly Link[]; place: (index: number) => [number, number]; middle: number; colour: string; background: string; name: (index: number) => string }) {
	const spokes = new Map<number, Link>();
	for (const link of links) if (link.kind === "NVSwitch") for (const end of [link.one, link.other]) if (!spokes.has(end)) spokes.set(end, link);
	return <g class="wires" stroke={colour} stroke-opacity={0.6} fill="none">
		{links.filter((link) => link.kind !== "NVSwitch").map((link) => {
			const [x1, y1] = place(link.one), [x2, y2] = place(link.other);
			return <path key={`${link.one} ${link.other}`} class="wire" d={`M${x1} ${y1}L${x2} ${y2}`} stroke-width={link.kind === "NVLink" ? 3 : 1} {...(link.kind === "NVLink" ? {} : { "stroke-dasharray": "4 3" })}>
				<title>{name(link.one)} and {name(link.other)}: {linkWords(link)}</title></path>;
		})}
		{[...spokes].map(([end, link]) => {
			const [x, y] = place(end);
			return <path key={end} class="wire" d={`M${x} ${y}L${middle} ${middle}`} stroke-width={3}><title>{name(end)}: {linkWords(link)}, shared by all its pairs</title></path>;
		})}
		{spokes.size > 0 && <rect x={middle - 34} y={middle - 10} width={68} height={20} rx={4} stroke-width={1.5} fill={background} />}
	</g>;
}

export function Topology({ cells, traffic, parties, routes, cell, onPick }: {
	cells: Cells; traffic: Traffic; parties: Party[]; routes: (a: number, b: number) => string[]; cell: [number, number] | null; onPick: (from: number, to: number) => void;
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
		const via = routes(link.a, link.b), wire = linkBetween(traffic, link.a, link.b), isTurned = wire?.one !== link.a;
		const over = wire ? `, over ${linkWords(wire)}${reached(isTurned ? wire.back : wire.there, `to ${name(link.b)}`)}${reached(isTurned ? wire.there : wire.back, `to ${name(link.a)}`)}` : "";
		return `${name(link.a)} → ${name(link.b)} ${amount(link.there, "B")}, ${name(link.b)} → ${name(link.a)} ${amount(link.back, "B")}${via.length ? `, by ${via.join(", ")}` : ""}${over}`;
	};
	const wired = traffic.links.length <= LINKS_MOST ? traffic.links : traffic.links.filter((link) => link.kind === "NVSwitch" || link.kind === "NVLink");
	const hasSwitch = wired.some((link) => link.kind === "NVSwitch");
	if (links.length === 0 && wired.length === 0) return <p class="quiet">No data went from one to another.</p>;
	return (
		<figure class="topology">
			<svg viewBox={`0 0 ${size} ${size}`} width={size} height={size} role="img" aria-label={`${links.length} pairs that exchanged data, of ${count} parties. The tables of routes and pairs have the same.`}>
				<Wires links={wired} place={place} middle={middle} colour={palette.quiet} background={palette.background} name={name} />
				{hasSwitch && <text class="hub" x={middle} y={middle} font-size={11} text-anchor="middle" dominant-baseline="central" fill={palette.text}>NVSwitch</text>}
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
			<figcaption class="quiet">Each curve is a pair that exchanged data, the wider the more. {shown.length < links.length && `These are the ${shown.length} most used of ${links.length}. `}
				{traffic.links_missing === null ? `Straight lines are the wiring: solid ones NVLink, dashed ones PCIe or C2C.${wired.length < traffic.links.length ? " PCIe is left out." : ""}` : `How the GPUs are linked is not known: ${visible(traffic.links_missing)}.`}</figcaption>
		</figure>
	);
}
