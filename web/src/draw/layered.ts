// SPDX-License-Identifier: Apache-2.0
// Places the nodes of a graph in layers, from top to bottom, and leads the edges around them. Nodes have an order, such as that of time.
// An edge to a lower layer goes down; the others go up beside the nodes between. The graph has some hundred nodes at most.

export interface Link {
	from: number;
	to: number;
}

export interface Layout {
	width: number;
	height: number;
	/** The left upper corner of each node. */
	nodes: { x: number; y: number }[];
	/** For each edge its points, from its node to the other. An edge to the same node has four points beside it. */
	lines: { points: [number, number][]; isBack: boolean }[];
}

/** A node, or a place where an edge passes a layer. */
interface Spot {
	layer: number;
	width: number;
	node: number;
	up: number[];
	down: number[];
	x: number;
}

const BETWEEN = 26, LANE = 16, DOWN = 44, SWEEPS = 8, MOVES = 12, PORT = 18;

/** The layer of each node: below all earlier nodes that lead to it. The last node is at the bottom. */
export function layersOf(count: number, links: Link[], order: number[]): number[] {
	const layer = new Array<number>(count).fill(0);
	const into: number[][] = Array.from({ length: count }, () => []);
	for (const { from, to } of links) if ((order[from] as number) < (order[to] as number)) into[to]?.push(from);
	const sorted = Array.from({ length: count }, (_, node) => node).sort((a, b) => (order[a] as number) - (order[b] as number));
	for (const node of sorted) for (const from of into[node] as number[]) layer[node] = Math.max(layer[node] as number, (layer[from] as number) + 1);
	const last = sorted[count - 1];
	if (last !== undefined) layer[last] = Math.max(...layer);
	return layer;
}

/** Layers decide, not the order: a node may lie below one that comes later. */
function goesBack(layer: number[], from: number, to: number): boolean {
	return (layer[from] as number) >= (layer[to] as number);
}

/** How many edges cross between two layers. */
function crossings(spots: Spot[], rows: number[][]): number {
	const place = new Map<number, number>();
	for (const row of rows) row.forEach((spot, index) => place.set(spot, index));
	let sum = 0;
	for (const row of rows) {
		const ends: number[] = [];
		for (const spot of row) ends.push(...(spots[spot] as Spot).down.map((to) => place.get(to) as number).sort((a, b) => a - b));
		for (let a = 0; a < ends.length; a++) for (let b = a + 1; b < ends.length; b++) if ((ends[a] as number) > (ends[b] as number)) sum++;
	}
	return sum;
}

/** Orders the spots of each layer by the mean place of those that they are linked to; keeps the best order that was seen. */
function orderRows(spots: Spot[], rows: number[][]): number[][] {
	let best = rows.map((row) => [...row]), least = crossings(spots, rows);
	for (let sweep = 0; sweep < SWEEPS && least > 0; sweep++) {
		const isDown = sweep % 2 === 0, place = new Map<number, number>();
		rows.forEach((row) => row.forEach((spot, index) => place.set(spot, index)));
		const turns = isDown ? rows : [...rows].reverse();
		for (const row of turns) {
			const mean = new Map(row.map((spot, index) => {
				const linked = isDown ? (spots[spot] as Spot).up : (spots[spot] as Spot).down;
				return [spot, linked.length ? linked.reduce((sum, one) => sum + (place.get(one) as number), 0) / linked.length : index];
			}));
			row.sort((a, b) => (mean.get(a) as number) - (mean.get(b) as number));
			row.forEach((spot, index) => place.set(spot, index));
		}
		const now = crossings(spots, rows);
		if (now < least) {
			least = now;
			best = rows.map((row) => [...row]);
		}
	}
	return best;
}

/** The nearest places to those that are wished for, in which no spot lies on another. */
function spread(row: Spot[], wished: number[]): void {
	const apart = (index: number) => {
		const [a, b] = [row[index] as Spot, row[index + 1] as Spot];
		return (a.width + b.width) / 2 + (a.node < 0 && b.node < 0 ? LANE : BETWEEN);
	};
	const right = [...wished], left = [...wished];
	for (let index = 1; index < row.length; index++) right[index] = Math.max(right[index] as number, (right[index - 1] as number) + apart(index - 1));
	for (let index = row.length - 2; index >= 0; index--) left[index] = Math.min(left[index] as number, (left[index + 1] as number) - apart(index));
	row.forEach((spot, index) => (spot.x = ((right[index] as number) + (left[index] as number)) / 2));
}

function placeRows(spots: Spot[], rows: number[][]): void {
	for (const row of rows) spread(row.map((spot) => spots[spot] as Spot), row.map(() => 0));
	for (let move = 0; move < MOVES; move++) {
		const turns = move % 2 === 0 ? rows : [...rows].reverse();
		for (const numbers of turns) {
			const row = numbers.map((spot) => spots[spot] as Spot);
			spread(row, row.map((spot) => {
				const linked = [...spot.up, ...spot.down];
				return linked.length ? linked.reduce((sum, one) => sum + (spots[one] as Spot).x, 0) / linked.length : spot.x;
			}));
		}
	}
	const least = Math.min(...spots.map((spot) => spot.x - spot.width / 2));
	for (const spot of spots) spot.x -= least;
}

/** Where the edges of a node begin or end along its side, in the order of where they lead. */
function ports(ends: { line: number; x: number }[], middle: number, width: number): Map<number, number> {
	const step = Math.min(PORT, width / (ends.length + 1));
	const sorted = [...ends].sort((a, b) => a.x - b.x);
	return new Map(sorted.map((end, index) => [end.line, middle + (index - (sorted.length - 1) / 2) * step]));
}

export function layered(sizes: { width: number; height: number }[], links: Link[], order: number[]): Layout {
	const layer = layersOf(sizes.length, links, order), count = Math.max(0, ...layer) + 1;
	const spots: Spot[] = sizes.map((size, node) => ({ layer: layer[node] as number, width: size.width, node, up: [], down: [], x: 0 }));
	const join = (a: number, b: number) => {
		spots[a]?.down.push(b);
		spots[b]?.up.push(a);
	};
	// An edge back also passes the layers of its own nodes, so that it does not lie on an edge that goes down.
	const lanes = links.map(({ from, to }) => {
		if (from === to) return [];
		const isBack = goesBack(layer, from, to), top = isBack ? to : from, bottom = isBack ? from : to;
		const lane: number[] = [];
		for (let at = (layer[top] as number) + (isBack ? 0 : 1); at < (layer[bottom] as number) + (isBack ? 1 : 0); at++) {
			lane.push(spots.length);
			spots.push({ layer: at, width: 2, node: -1, up: [], down: [], x: 0 });
		}
		const all = isBack ? lane : [top, ...lane, bottom];
		for (let at = 1; at < all.length; at++) join(all[at - 1] as number, all[at] as number);
		return lane;
	});
	const first: number[][] = Array.from({ length: count }, () => []);
	spots.forEach((spot, index) => first[spot.layer]?.push(index));
	const rows = orderRows(spots, first);
	placeRows(spots, rows);
	const tops: number[] = [];
	let y = DOWN / 2; // edges back go above the first layer and below the last one
	for (const row of rows) {
		tops.push(y);
		y += Math.max(0, ...row.map((spot) => sizes[(spots[spot] as Spot).node]?.height ?? 0)) + DOWN;
	}
	const nodes = sizes.map((size, node) => ({ x: (spots[node] as Spot).x - size.width / 2, y: tops[layer[node] as number] as number }));
	return { width: Math.max(0, ...spots.map((spot) => spot.x + spot.width / 2)) + LANE * 2, height: y - DOWN / 2, nodes,
		lines: linesOf(sizes, links, layer, spots, lanes, nodes, tops) };
}

type Size = { width: number; height: number };
type End = { line: number; x: number };

function linesOf(sizes: Size[], links: Link[], layer: number[], spots: Spot[], lanes: number[][], nodes: { x: number; y: number }[], tops: number[]): Layout["lines"] {
	const isBack = (link: Link) => goesBack(layer, link.from, link.to);
	const out = new Map<number, End[]>(), into = new Map<number, End[]>();
	const add = (ends: Map<number, End[]>, node: number, line: number, x: number) => ends.set(node, [...(ends.get(node) ?? []), { line, x }]);
	const middle = (node: number) => (spots[node] as Spot).x;
	links.forEach((link, line) => {
		if (link.from === link.to) return;
		const lane = isBack(link) ? [...(lanes[line] as number[])].reverse() : (lanes[line] as number[]);
		add(out, link.from, line, middle(lane[0] ?? link.to));
		add(into, link.to, line, middle(lane[lane.length - 1] ?? link.from));
	});
	const place = (ends: Map<number, End[]>) => new Map([...ends].map(([node, all]) => [node, ports(all, middle(node), (sizes[node] as Size).width)]));
	const starts = place(out), stops = place(into);
	return links.map((link, line) => {
		const a = nodes[link.from] as { x: number; y: number }, b = nodes[link.to] as { x: number; y: number }, size = sizes[link.from] as Size;
		if (link.from === link.to) {
			const right = a.x + size.width, beside = right + LANE;
			return { isBack: true, points: [[right, a.y + size.height * 0.7], [beside, a.y + size.height * 0.7], [beside, a.y + size.height * 0.3], [right, a.y + size.height * 0.3]] };
		}
		const lane = lanes[line] as number[], from: [number, number] = [starts.get(link.from)?.get(line) as number, a.y + size.height];
		const to: [number, number] = [stops.get(link.to)?.get(line) as number, b.y];
		const pass = (spot: number, y: number): [number, number] => [middle(spot), y];
		if (!isBack(link)) return { isBack: false, points: [from, ...lane.map((spot) => pass(spot, (tops[(spots[spot] as Spot).layer] as number) + size.height / 2)), to] };
		// Below its node, beside all that lies between, and from above into the other: where it goes to the side, there are no nodes.
		const last = lane[lane.length - 1] as number, next = tops[(spots[last] as Spot).layer + 1];
		const below = next === undefined ? from[1] + DOWN / 3 : next - DOWN * 0.7, above = b.y - DOWN * 0.3;
		const up = [...lane].reverse().slice(1, -1).map((spot) => pass(spot, (tops[(spots[spot] as Spot).layer] as number) + size.height / 2));
		return { isBack: true, points: [from, [from[0], below], pass(last, below), ...up, pass(lane[0] as number, above), [to[0], above], to] };
	});
}
