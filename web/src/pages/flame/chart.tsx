// SPDX-License-Identifier: Apache-2.0
// A flame graph with what belongs to it: words under the pointer, the menu of a box, and its boxes as a table.
import { useEffect, useRef, useState } from "preact/hooks";
import { LAYER_NAMES } from "../../draw/colours";
import { FINDING, FUSED, type Flame, type View } from "../../draw/flame";
import { amount, percent, signedAmount } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import { useApp, type App } from "../../state/app";
import { findingWords, useMarks, type Marks } from "../../shell/marks";
import { copyText, Trouble } from "../../shell/parts";
import { BoxTable, foundIn } from "./boxes";
import { Controller } from "./controller";
import { pathOf } from "./details";
import { Menu, type MenuItem } from "./menu";

export interface Chosen {
	flame: Flame;
	box: number;
	/** Of the graph that it is in. */
	query: Query;
}

export function describe(flame: Flame, box: number, marks: Marks): string {
	const flags = flame.flags[box] as number, many = flame.many[box] as number, { unit, value } = flame.total;
	const parts = [flame.name(box), LAYER_NAMES[flame.layer[box] as number] ?? "other"];
	if (flame.before) {
		parts.push(`${amount(flame.value[box], unit)} after, ${amount(flame.beforeOf(box), unit)} before: ${
			signedAmount((flame.value[box] as number) - flame.beforeOf(box), unit)} (${flame.changeWords(box)})`);
	} else {
		parts.push(`${amount(flame.value[box], unit)}, ${percent((flame.value[box] as number) / value)} of all`, `itself ${amount(flame.self[box], unit)}`);
	}
	parts.push(many > 1 ? `with ${many - 1} narrower boxes beside it` : "", flags & FINDING ? findingWords(foundIn(flame, box, marks)) || "it has a finding" : "", flags & FUSED ? "a fused operator" : "");
	return parts.filter(Boolean).join("; ");
}

export function Chart({ query, keeps, onAnswer, onChosen, asTable }: {
	query: Query; keeps: boolean; onAnswer: (flame: Flame) => void; onChosen: (chosen: Chosen | null) => void; asTable: boolean;
}) {
	const app = useApp();
	const canvas = useRef<HTMLCanvasElement>(null);
	const controller = useRef<Controller | null>(null);
	const [flame, setFlame] = useState<Flame | null>(null);
	const [error, setError] = useState<Error | null>(null);
	const [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null);
	const [menu, setMenu] = useState<{ x: number; y: number; items: MenuItem[] } | null>(null);
	const values = app.state.values;
	const key = canonical("flame", query);
	const from = (): View => ({ x0: keeps ? Number(values["x0"] ?? 0) || 0 : 0, x1: keeps ? Number(values["x1"] ?? 1) || 1 : 1, top: 0 });
	const newest = useRef(app);
	newest.current = app;
	const marks = useMarks(query["file"]), found = useRef(marks);
	found.current = marks;

	useEffect(() => {
		if (!canvas.current) return;
		setError(null);
		// The box of the address may be too narrow for the first answer.
		let waits = true;
		const wanted = keeps ? Number(values["node"] ?? -1) : -1;
		const made = new Controller(canvas.current, app.source, query, app.look, {
			onSelect(at, box) {
				waits = false;
				onChosen(box < 0 ? null : { flame: at, box, query });
				if (box >= 0) newest.current.say(describe(at, box, found.current));
				if (keeps) newest.current.set({ node: box < 0 ? null : at.node[box] });
			},
			onHover(at, box, x, y) {
				setTip(box < 0 ? null : { x, y, text: describe(at, box, found.current) });
			},
			onMenu(at, box, x, y) {
				setTip(null);
				setMenu({ x, y, items: menuItems(newest.current, at, box, query, made) });
			},
			onView(view, isStep) {
				const isAll = view.x1 - view.x0 > 1 - 1e-9;
				if (keeps) newest.current.set({ x0: isAll ? null : view.x0.toPrecision(9), x1: isAll ? null : view.x1.toPrecision(9) }, isStep);
			},
			onAnswer(at) {
				setError(null);
				setFlame(at);
				onAnswer(at);
				const box = waits ? at.find(wanted) : -1;
				if (box < 0) return;
				waits = false;
				onChosen({ flame: at, box, query });
			},
			onError: setError,
			onOut: () => newest.current.state.values["root"] && newest.current.set({ root: null, x0: null, x1: null }, true),
		}, from(), wanted);
		controller.current = made;
		Object.assign(canvas.current, { plumbTimes: made.times });
		return () => made.end();
	}, [key, asTable]);
	useEffect(() => controller.current?.setLook(app.look), [app.look]);
	useEffect(() => {
		if (keeps) controller.current?.setView(from());
	}, [values["x0"], values["x1"]]);

	return (
		<div class="chart">
			{error && <div class="over"><Trouble error={error} /></div>}
			<canvas ref={canvas} tabIndex={0} role="application" class={asTable ? "behind" : ""} aria-roledescription="flame graph"
				aria-label={`Flame graph of ${flame?.total.metric ?? "the profile"}. Arrow keys go from box to box, Enter zooms, Escape goes out, m opens the menu.`} />
			{asTable && flame && <BoxTable flame={flame} marks={marks} onOpen={(box) => controller.current?.select(flame, box)} />}
			{flame && flame.count === 0 && <p class="notice over">No box has a value of this metric in this part of the run. Choose another metric, part or layer.</p>}
			{!flame && !error && <p class="notice over" aria-busy="true">Loading…</p>}
			{tip && !menu && <div class="tip" aria-hidden="true" style={{ left: `${Math.min(tip.x + 12, innerWidth - 260)}px`, top: `${tip.y + 18}px` }}>{tip.text}</div>}
			{menu && <Menu {...menu} onClose={() => { setMenu(null); canvas.current?.focus(); }} />}
		</div>
	);
}

function menuItems(app: App, flame: Flame, box: number, query: Query, controller: Controller): MenuItem[] {
	const node = flame.node[box] as number;
	const ask = async (): Promise<{ library: string | null; file: string | null }> => {
		if (!app.source.isOffline) return app.source.json("frame", { ...query, root: null, search: null, node });
		const [files] = await app.source.tables("flame/frames", { file: query["file"] }), row = files?.column("frame").integers().indexOf(flame.frame[box] as number) ?? -1;
		const text = (name: string) => (row < 0 ? null : files?.column(name).text(row) || null);
		return { library: text("library"), file: text("source_file") ?? text("file") };
	};
	const hide = async () => {
		try {
			const { library, file } = await ask();
			const what = library ?? file;
			if (!what) app.say("The library of this box is unknown");
			else app.set({ hide: `${what.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`, node: null, root: null, x0: null, x1: null }, true);
		} catch (error) {
			app.say(String(error));
		}
	};
	const path = () => pathOf(flame, box).join("\n");
	const isSandwich = query["view"] === "callers" || query["view"] === "callees", isPair = query["against"] !== undefined;
	return [
		{ title: "Zoom in", run: () => controller.zoomTo(flame, box) },
		...(isSandwich || app.source.isOffline ? [] : [{ title: "Focus on this box", run: () => app.set({ root: node, x0: null, x1: null }, true) }]),
		...((flame.frame[box] as number) < 0 || isPair ? [] : [
			{ title: "Callers and callees (sandwich)", run: () => app.set({ view: "sandwich", of: flame.frame[box] as number, root: null, node: null, x0: null, x1: null }, true) }]),
		...(app.source.isOffline && isPair ? [] : [{ title: "Hide its library or file", run: () => void hide() }]),
		...(app.source.isOffline ? [] : [
			{ title: "Collapse recursion (r)", run: () => app.set({ recursion: "collapse", node: null, root: null }, true) },
		]),
		{ title: "Copy the name", run: () => void copyText(flame.name(box)).then(() => app.say("Copied")) },
		{ title: "Copy the call path", run: () => void copyText(path()).then(() => app.say("Copied")) },
	];
}
