// SPDX-License-Identifier: Apache-2.0
// A small flame graph for tests.
import { AFTER, BEFORE, Flame } from "../src/draw/flame";
import { readTables } from "../src/protocol/columns";
import { write } from "./write";

// a: 0 to 0.6, with b (0 to 0.4) and c (0.4 to 0.6); d: 0.6 to 1; b has e (0.1 to 0.2).
export function make(pair = false): Flame {
	const before = pair ? [{ name: "before", type: 3, values: [30, 50, 40, 0, 0] }, { name: "before_self", type: 3, values: [0, 50, 40, 0, 0] }] : [];
	const flags = pair ? [AFTER | BEFORE, AFTER | BEFORE, AFTER | BEFORE, AFTER, AFTER | BEFORE] : [0, 0, 0, 0, 0];
	const boxes = write("flame", "", [...before,
		{ name: "node", type: 2, values: [1, 2, 3, 4, 5] }, { name: "parent", type: 2, values: [0, 0, 1, 1, 3], known: [0, 0, 1, 1, 1] },
		{ name: "depth", type: 2, values: [0, 0, 1, 1, 2] },
		{ name: "x0", type: 3, values: [0, 0.6, 0, 0.4, 0.1] }, { name: "x1", type: 3, values: [0.6, 1, 0.4, 0.6, 0.2] },
		{ name: "name", type: 1, values: ["a", "d", "b", "c", "ab"] }, { name: "layer", type: 2, values: [0, 0, 2, 2, 4] },
		{ name: "value", type: 3, values: [60, 40, 40, 20, 10] }, { name: "self", type: 3, values: [0, 40, 30, 20, 10] },
		{ name: "many", type: 2, values: [1, 1, 1, 1, 1] }, { name: "flags", type: 2, values: flags }, { name: "frame", type: 2, values: [1, 2, 3, 4, 5] },
	]);
	const total = write("flame.total", "", [{ name: "value", type: 3, values: [100] }, { name: "unit", type: 1, values: ["ns"] }, { name: "metric", type: 1, values: ["op.time"] }]);
	const [table, totals] = readTables(new Uint8Array([...boxes, ...total]));
	if (!table || !totals) throw new Error("no table");
	return new Flame(table, totals, [0, 1], 1000);
}
