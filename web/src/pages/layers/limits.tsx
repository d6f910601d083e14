// SPDX-License-Identifier: Apache-2.0
// What a GPU can do, for rooflines: which peak, and numbers that take the place of those that plumb knows.
import { useEffect, useState } from "preact/hooks";
import type { Query } from "../../protocol/query";
import { Choice } from "../../shell/parts";
import { useApp, type App } from "../../state/app";

const PRECISIONS: [string, string][] = [["fp32", "fp32"], ["tf32", "tf32"], ["fp16", "fp16"], ["bf16", "bf16"], ["fp8", "fp8"]];

/** What is chosen, as the query of a table. */
export function limitsOf({ state: { values } }: App): Query {
	return { precision: values["precision"], peak: values["peak"], bandwidth: values["bandwidth"] };
}

/** A page that holds its answers has one peak only. */
export function Limits() {
	const app = useApp();
	if (app.source.isOffline) return null;
	return <>
		<Choice label="Precision" value={app.state.values["precision"] ?? "fp32"} options={PRECISIONS} onChange={(next) => app.set({ precision: next === "fp32" ? null : next }, true)} />
		<Limit label="Peak, Gflop/s" name="peak" />
		<Limit label="Bandwidth, GB/s" name="bandwidth" />
	</>;
}

/** A number that takes the place of what plumb knows of the GPU. */
function Limit({ label, name }: { label: string; name: "peak" | "bandwidth" }) {
	const app = useApp(), held = app.state.values[name] ?? "";
	const [text, setText] = useState(held); // what is being typed stays when an answer comes
	useEffect(() => setText(held), [held]);
	const take = (typed: string) => {
		const value = /^[1-9]\d*$/.test(typed) ? typed : "";
		setText(value);
		app.set({ [name]: value || null }, true);
	};
	return <label class="choice"><span>{label}</span><input type="number" min="1" step="1" size={7} value={text} placeholder="known"
		onInput={(event) => setText(event.currentTarget.value)} onChange={(event) => take(event.currentTarget.value)} /></label>;
}
