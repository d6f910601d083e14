// SPDX-License-Identifier: Apache-2.0
// A link to a finding: the page asks which box it is about, zooms there and selects it.
import { useEffect, useState } from "preact/hooks";
import type { Query } from "../../protocol/query";
import type { FrameDetails } from "../../protocol/types";
import type { App } from "../../state/app";

interface Found {
	frame: FrameDetails;
	/** The one that the box has a value of, if it is not the one that was chosen. */
	metric: string | null;
}

/** The box of a finding. What waits has no GPU time, so other metrics are tried until the box itself is shown. */
async function findBox(app: App, query: Query, finding: string, signal: AbortSignal): Promise<Found | null> {
	const chosen = app.state.values["metric"];
	const first = ["gpu.time", "op.time", "cpu.time"], rank = (name: string) => (first.indexOf(name) + first.length + 1) % (first.length + 1);
	const others = app.about.metrics.filter((metric) => metric.adds_up && metric.unit === "ns" && !(chosen ? metric.name === chosen : metric.is_default))
		.map((metric) => metric.name).sort((a, b) => rank(a) - rank(b));
	let nearest: Found | null = null, error: unknown = null;
	for (const metric of [null, ...others]) {
		try {
			const frame = await app.source.json<FrameDetails>("frame", { ...query, ...(metric ? { metric } : {}), finding }, signal);
			const found = { frame, metric };
			if (frame.findings.some((one) => one.id === finding)) return found;
			if (frame.node > (nearest?.frame.node ?? 0)) nearest = found;
		} catch (one) {
			error ??= one;
		}
	}
	if (!nearest && error) throw error;
	return nearest;
}

/** Follows `finding` of the address. Returns what could not be done, in words. */
export function useFinding(app: App, query: Query): string | null {
	const finding = app.state.values["finding"];
	const [trouble, setTrouble] = useState<string | null>(null);
	useEffect(() => {
		if (!finding) return;
		const stop = new AbortController();
		setTrouble(null);
		const plain: Query = { file: query["file"], window: query["window"], metric: query["metric"] };
		findBox(app, plain, finding, stop.signal).then((found) => {
			if (stop.signal.aborted) return;
			const { frame, metric } = found ?? {};
			app.set({ finding: null, view: null, root: null, search: null, hide: null, recursion: null, phase: null, layers: null, ...(metric ? { metric } : {}),
				node: frame?.node || null, x0: frame?.node ? frame.x0.toPrecision(9) : null, x1: frame?.node ? frame.x1.toPrecision(9) : null });
			if (!frame?.node) setTrouble("The finding is about a call path that holds nothing of any metric in this part of the run.");
		}, (error: unknown) => {
			if (stop.signal.aborted) return;
			app.set({ finding: null });
			setTrouble(error instanceof Error ? error.message : String(error));
		});
		return () => stop.abort();
	}, [finding]);
	return trouble;
}
