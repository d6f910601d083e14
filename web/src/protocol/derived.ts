// SPDX-License-Identifier: Apache-2.0
// Flame graphs that a page in one file does not hold, made of the top-down one that it holds: without some layers or files, and the
// callers and callees of one frame. The server does the same (src/view/flame_tree.c, flame_invert.c), and a test compares both.
import { Column, Table } from "./columns";
import type { Query } from "./query";

const LAYERS = ["python", "module", "operator", "native", "gpu", "other"];
const FINDING = 1, FUSED = 4, BACKWARD = 64, ACCUMULATION = 128;
const MOST_NODES = 2 ** 20, MOST_STEPS = 2 ** 23;

interface Node {
	parent: number;
	frame: number;
	layer: number;
	marks: number;
	flags: number;
	/** Without the marks. */
	name: string;
	many: number;
	own: number;
}

class Tree {
	readonly nodes: Node[] = [{ parent: -1, frame: -1, layer: 5, marks: 0, flags: 0, name: "all", many: 1, own: 0 }];
	/** From this depth on callers are left out. */
	cut = 0;
	private readonly children = new Map<string, number>();

	/** The child of `parent` that is like `from`, made if it is missing. */
	child(parent: number, from: Node, marks: number): number {
		const key = `${parent} ${from.frame} ${marks}`, found = this.children.get(key), flags = from.flags & (FINDING | FUSED);
		if (found !== undefined) {
			const node = this.nodes[found] as Node;
			node.flags |= flags;
			node.many += from.many - 1;
			return found;
		}
		this.children.set(key, this.nodes.length);
		return this.nodes.push({ ...from, parent, marks, flags, own: 0 }) - 1;
	}

	add(node: number, value: number): void {
		(this.nodes[node] as Node).own += value;
	}
}

function markOf(marks: number): string {
	return marks & ACCUMULATION ? " [gradient accumulation]" : marks & BACKWARD ? " [backward]" : "";
}

/** The boxes of an answer as a tree. Merged ones count as the widest of them. */
function readTree(boxes: Table, total: Table): Tree {
	const tree = new Tree(), column = (name: string) => boxes.column(name).integers(-1);
	const number = column("node"), parent = column("parent"), frame = column("frame"), layer = column("layer"), flags = column("flags"), many = column("many");
	const value = boxes.column("value").numbers(), self = boxes.column("self").numbers(), names = boxes.column("name"), places = new Map<number, number>();
	tree.add(0, total.column("self").number(0));
	for (let box = 0; box < boxes.rows; box++) {
		const above = parent[box] === -1 ? 0 : places.get(parent[box] as number) ?? 0, marks = (flags[box] as number) & (BACKWARD | ACCUMULATION);
		const mark = (tree.nodes[above] as Node).marks & marks ? "" : markOf(marks), text = names.text(box), merged = (many[box] as number) > 1;
		places.set(number[box] as number, tree.nodes.push({
			parent: above, frame: frame[box] as number, layer: layer[box] as number, marks, flags: flags[box] as number,
			name: mark && text.endsWith(mark) ? text.slice(0, -mark.length) : text, many: many[box] as number,
			own: (merged ? value[box] : self[box]) as number,
		}) - 1);
	}
	return tree;
}

/** Which frames are hidden by their files and libraries. */
function hiddenFrames(frames: Table | null, hide: string): Set<number> {
	const hidden = new Set<number>(), expression = new RegExp(hide, "u");
	if (!frames) throw new Error("the page does not know the files of frames, because there are too many; use plumb view FILE");
	const number = frames.column("frame").integers(-1), texts = ["file", "source_file", "library"].map((name) => frames.column(name));
	for (let row = 0; row < frames.rows; row++) {
		if (texts.some((text) => text.isKnown(row) && expression.test(text.text(row)))) hidden.add(number[row] as number);
	}
	return hidden;
}

/** The children of each node, in order. */
function childrenOf(tree: Tree): number[][] {
	const children: number[][] = tree.nodes.map(() => []);
	tree.nodes.forEach((node, at) => node.parent >= 0 && (children[node.parent] as number[]).push(at));
	return children;
}

/** What is hidden goes to the nearest caller that is shown, and what becomes equal there is merged. */
function project(base: Tree, isHidden: (node: Node) => boolean, marked: boolean): Tree {
	const tree = new Tree(), children = childrenOf(base), owner = new Int32Array(base.nodes.length), waiting = [...(children[0] as number[])].reverse();
	tree.add(0, (base.nodes[0] as Node).own);
	for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
		const node = base.nodes[at] as Node, parent = owner[node.parent] as number, hidden = isHidden(node);
		const to = hidden ? parent : tree.child(parent, node, marked ? node.marks : 0), found = tree.nodes[to] as Node;
		owner[at] = to;
		tree.add(to, node.own);
		found.flags |= node.flags & (FINDING | FUSED);
		for (const child of [...(children[at] as number[])].reverse()) waiting.push(child);
	}
	return tree;
}

/** Level by level outwards: each path is [what it brings, the next node of the base, where it is in the new tree]. */
function followCallers(base: Tree, starts: [number, number][]): Tree {
	const tree = new Tree();
	let paths: [number, number, number][] = starts.map(([value, at]) => [value, at, 0]), steps = 0;
	for (let depth = 0; paths.length; depth++) {
		const next: [number, number, number][] = [];
		if (depth) steps += paths.length;
		if (depth && (steps > MOST_STEPS || tree.nodes.length > MOST_NODES)) {
			tree.cut = depth;
			for (const [value, , to] of paths) tree.add(to, value);
			break;
		}
		for (const [value, at, to] of paths) {
			const from = base.nodes[at] as Node;
			if (at === 0) tree.add(to, value);
			else next.push([value, from.parent, tree.child(to, from, 0)]);
		}
		paths = next;
	}
	return tree;
}

function bottomUp(base: Tree): Tree {
	const starts: [number, number][] = [];
	base.nodes.forEach((node, at) => at && node.own !== 0 && starts.push([node.own, at]));
	const tree = followCallers(base, starts);
	tree.add(0, (base.nodes[0] as Node).own);
	return tree;
}

/** All places of a frame, and who called it. A place inside another one counts once. */
function callers(base: Tree, frame: number): Tree {
	const all = base.nodes.map((node) => node.own), inside = new Uint8Array(base.nodes.length), starts: [number, number][] = [];
	for (let at = base.nodes.length - 1; at > 0; at--) all[(base.nodes[at] as Node).parent] = (all[(base.nodes[at] as Node).parent] as number) + (all[at] as number);
	base.nodes.forEach((node, at) => {
		if (!at) return;
		const above = inside[node.parent] === 1;
		if (above || node.frame === frame) inside[at] = 1;
		if (!above && node.frame === frame) starts.push([all[at] as number, at]);
	});
	return followCallers(base, starts);
}

function callees(base: Tree, frame: number): Tree {
	const tree = new Tree(), place = new Int32Array(base.nodes.length);
	base.nodes.forEach((node, at) => {
		if (!at || (!place[node.parent] && node.frame !== frame)) return;
		place[at] = tree.child(place[node.parent] as number, node, 0);
		tree.add(place[at] as number, node.own);
	});
	return tree;
}

function number(name: string, unit: string | null, values: Float64Array, known: Uint8Array | null = null): Column {
	return new Column(name, unit, "number", values.length, values, known, new Uint8Array());
}

function text(name: string, texts: string[]): Column {
	const encoder = new TextEncoder(), parts = texts.map((one) => encoder.encode(one)), starts = new Uint32Array(parts.length + 1);
	parts.forEach((part, row) => { starts[row + 1] = (starts[row] as number) + part.length; });
	const all = new Uint8Array(starts[parts.length] as number);
	parts.forEach((part, row) => all.set(part, starts[row]));
	return new Column(name, null, "text", texts.length, starts, null, all);
}

/** The tables of an answer: level by level, each from left to right, as wide as the magnitudes of what a node and those below hold. */
function write(tree: Tree, ordered: boolean, total: Table): Table[] {
	const { nodes } = tree, mass = nodes.map((node) => Math.abs(node.own)), value = nodes.map((node) => node.own), children = childrenOf(tree);
	const at = (list: number[], index: number) => list[index] as number, depth = new Int32Array(nodes.length), start = new Float64Array(nodes.length);
	// A child comes after its parent.
	for (let node = nodes.length - 1; node > 0; node--) {
		const { parent } = nodes[node] as Node;
		mass[parent] = at(mass, parent) + at(mass, node);
		value[parent] = at(value, parent) + at(value, node);
	}
	const order = [0], numbers = new Int32Array(nodes.length);
	for (let index = 0; index < order.length; index++) {
		const node = at(order, index), shown = (children[node] as number[]).filter((child) => at(mass, child) > 0);
		let from = start[node] as number;
		numbers[node] = index;
		if (!ordered) shown.sort((a, b) => at(mass, b) - at(mass, a));
		for (const child of shown) {
			depth[child] = (depth[node] as number) + 1;
			start[child] = from;
			from += at(mass, child);
			order.push(child);
		}
	}
	const rows = order.slice(1), whole = at(mass, 0) || 1, unit = total.column("value").unit;
	const of = (make: (node: number) => number) => Float64Array.from(rows, make), get = (node: number) => nodes[node] as Node;
	const above = (node: number) => numbers[get(node).parent] as number;
	const label = (node: Node) => node.name + ((nodes[node.parent] as Node).marks & node.marks ? "" : markOf(node.marks));
	const boxes = new Table("flame", "", rows.length), root = new Table("flame.total", "the root", 1);
	boxes.columns.push(
		number("node", null, of((node) => numbers[node] as number)),
		number("parent", null, of(above), Uint8Array.from(rows, (node) => (above(node) ? 1 : 0))),
		number("depth", null, of((node) => (depth[node] as number) - 1)),
		number("x0", null, of((node) => (start[node] as number) / whole)),
		number("x1", null, of((node) => ((start[node] as number) + at(mass, node)) / whole)),
		text("name", rows.map((node) => label(get(node)))),
		number("layer", null, of((node) => get(node).layer)),
		number("value", unit, of((node) => at(value, node))),
		number("self", unit, of((node) => get(node).own)),
		number("many", null, of((node) => get(node).many)),
		number("flags", null, of((node) => get(node).flags | get(node).marks)),
		number("frame", null, of((node) => get(node).frame)),
	);
	const one = (name: string, of: number) => number(name, unit, Float64Array.of(of), Uint8Array.of(Number.isNaN(of) ? 0 : 1));
	root.columns.push(one("value", at(value, 0)), one("self", get(0).own), one("matched", NaN), one("depth", rows.length ? (depth[rows[rows.length - 1] as number] as number) : 0),
		one("nodes", rows.length), one("cut", tree.cut || NaN), total.column("unit"), total.column("metric"));
	return [boxes, root];
}

/** Is it a flame graph that can be made of another one? Then the query of that one. */
export function baseOf(query: Query): Query | null {
	const { layers, hide, view, recursion, phase, rank, against, ...rest } = query;
	if (recursion || phase || rank || against || !(layers || hide || view === "callers" || view === "callees")) return null;
	for (const key of ["of", "root", "search", "named", "depth", "depths"]) delete rest[key];
	return rest;
}

/** The answer to `query`, of the tables of the top-down graph, and of `flame/frames` if there is one. */
export function deriveFlame(boxes: Table, total: Table, frames: Table | null, query: Query): Table[] {
	const shown = typeof query["layers"] === "string" ? query["layers"].split(",") : LAYERS, view = query["view"], of = Number(query["of"]);
	const hidden = typeof query["hide"] === "string" && query["hide"] ? hiddenFrames(frames, query["hide"]) : null;
	const isHidden = (node: Node) => !shown.includes(LAYERS[node.layer] ?? "other") || (hidden?.has(node.frame) ?? false);
	const tree = project(readTree(boxes, total), isHidden, view !== "heavy");
	const turned = view === "up" ? bottomUp(tree) : view === "callers" ? callers(tree, of) : view === "callees" ? callees(tree, of) : tree;
	return write(turned, turned === tree && view !== "heavy", total);
}
