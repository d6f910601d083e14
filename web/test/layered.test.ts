// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { layered, layersOf, type Link } from "../src/draw/layered";

const size = { width: 200, height: 40 };

function place(count: number, links: Link[]) {
	return layered(Array.from({ length: count }, () => size), links, Array.from({ length: count }, (_, node) => node));
}

test("a chain is a column", () => {
	const { nodes, lines } = place(4, [{ from: 0, to: 1 }, { from: 1, to: 2 }, { from: 2, to: 3 }]);
	assert.equal(new Set(nodes.map((node) => node.x)).size, 1);
	assert.ok(nodes.every((node, index) => index === 0 || node.y > (nodes[index - 1] as { y: number }).y));
	assert.ok(lines.every((line) => !line.isBack && line.points.length === 2));
});

test("an edge back goes beside the nodes, and one to the same node too", () => {
	const { nodes, lines, width } = place(3, [{ from: 0, to: 1 }, { from: 1, to: 2 }, { from: 2, to: 1 }, { from: 2, to: 0 }, { from: 1, to: 1 }]);
	for (const at of [2, 3]) {
		const { isBack, points } = lines[at] as { isBack: boolean; points: [number, number][] };
		assert.ok(isBack);
		// No point between the first and the last lies in a node.
		for (const [x, y] of points.slice(1, -1)) {
			assert.ok(!nodes.some((node) => x > node.x && x < node.x + size.width && y > node.y && y < node.y + size.height), `${x} ${y}`);
			assert.ok(x >= 0 && x <= width);
		}
	}
	assert.equal(lines[4]?.points.length, 4);
});

/** Random graphs: no node lies on another, layers follow the order, and all is within the picture. */
test("random graphs", () => {
	let seed = 5;
	const random = (below: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
	for (let turn = 0; turn < 60; turn++) {
		const count = 2 + random(turn < 55 ? 30 : 100);
		const links: Link[] = [];
		for (let node = 1; node < count; node++) if (turn % 2) links.push({ from: node - 1, to: node });
		for (let more = random(count * 2); more > 0; more--) {
			const link = { from: random(count), to: random(count) };
			if (!links.some((one) => one.from === link.from && one.to === link.to)) links.push(link);
		}
		const { nodes, lines, width, height } = place(count, links);
		const layer = layersOf(count, links, Array.from({ length: count }, (_, node) => node));
		for (const { from, to } of links) if (from < to) assert.ok((layer[from] as number) < (layer[to] as number));
		nodes.forEach((a, i) => nodes.slice(0, i).forEach((b) => assert.ok(a.y !== b.y || Math.abs(a.x - b.x) >= size.width - 1e-6, "nodes overlap")));
		for (const line of lines) for (const [x, y] of line.points) assert.ok(x >= -1e-6 && x <= width && y >= 0 && y <= height + 1e-6);
		links.forEach((link, index) => {
			const points = lines[index]?.points as [number, number][], a = nodes[link.from] as { x: number; y: number }, b = nodes[link.to] as { x: number; y: number };
			const touches = ([x, y]: [number, number], node: { x: number; y: number }) => x >= node.x - 1e-6 && x <= node.x + size.width + 1e-6 && y >= node.y && y <= node.y + size.height;
			assert.ok(touches(points[0] as [number, number], a) && touches(points[points.length - 1] as [number, number], b));
		});
	}
});
