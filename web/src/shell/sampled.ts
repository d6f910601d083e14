// SPDX-License-Identifier: Apache-2.0
// The kernels with samples, for every page that leads to the page Why.
import { useMemo } from "preact/hooks";
import type { Table } from "../protocol/columns";
import { canonical, type Query } from "../protocol/query";
import { useAnswer, useApp } from "../state/app";

/** A kernel of the list. */
export interface Listed {
	number: number;
	name: string;
	mangled: string;
	samples: number;
	waiting: number;
	gpu_ns: number;
	share: number;
}

export function listOf(table: Table | undefined): Listed[] {
	if (!table) return [];
	const column = (name: string) => table.column(name);
	const number = column("kernel"), name = column("name"), mangled = column("mangled"), samples = column("samples"), waiting = column("waiting"), ns = column("gpu_ns"), share = column("gpu_share");
	return Array.from({ length: table.rows }, (_, row) => ({ number: number.number(row), name: name.text(row), mangled: mangled.text(row), samples: samples.number(row),
		waiting: waiting.number(row), gpu_ns: ns.number(row), share: share.number(row) }));
}

/** The kernel that an address names, by either name; a number, if two have one name. Without a name the first. */
export function findKernel(list: Listed[], name: string | undefined): Listed | undefined {
	if (!name) return list.find((one) => one.samples > 0) ?? list[0];
	return list.find((one) => one.mangled === name) ?? list.find((one) => one.name === name) ?? (/^\d+$/.test(name) ? list[Number(name)] : undefined);
}

/** How an address names a kernel. */
export function keyOf(list: Listed[], kernel: Listed): string {
	return list.find((one) => one.mangled === kernel.mangled) === kernel && kernel.mangled ? kernel.mangled : String(kernel.number);
}

export interface Sampled {
	kernel: Listed;
	/** To the page Why. */
	href: string;
}

/** Of the name of a kernel: null, if it has no samples. A page does not wait for it. */
export function useSampled(): (name: string | null | undefined) => Sampled | null {
	const app = useApp(), query: Query = { file: app.state.values["file"] }, has = app.about.has["code_samples"] === true;
	const loaded = useAnswer<Listed[]>(has ? canonical("why/kernels", query) : "", async (signal) => (has ? listOf((await app.source.tables("why/kernels", query, signal))[0]) : []));
	const list = loaded.state === "ready" ? loaded.value : null;
	return useMemo(() => {
		const found = new Map<string, Listed>();
		for (const kernel of list ?? []) for (const name of [kernel.mangled, kernel.name]) if (kernel.samples > 0 && !found.has(name)) found.set(name, kernel);
		return (name) => {
			const kernel = found.get(name ?? "");
			return kernel && list ? { kernel, href: app.link("why", { kernel: keyOf(list, kernel) }) } : null;
		};
	}, [list, app.state]);
}
