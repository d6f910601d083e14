// SPDX-License-Identifier: Apache-2.0
// The page Flame: the views, the choices above the graph, and what is selected.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { LAYERS, LAYER_NAMES, PALETTES } from "../../draw/colours";
import { FINDING, Flame, FUSED, type View } from "../../draw/flame";
import { amount, percent } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import { common, useApp, useAnswer, type App } from "../../state/app";
import { copyText, CsvButton, Switches, Trouble } from "../../shell/parts";
import { register } from "../../shell/registry";
import { Controller } from "./controller";
import { Details } from "./details";
import { BoxTable } from "./boxes";
import { Menu, type MenuItem } from "./menu";

type ViewName = "down" | "heavy" | "up" | "sandwich";
const VIEWS: [ViewName, string][] = [["down", "Top-down"], ["heavy", "Left-heavy"], ["up", "Bottom-up"], ["sandwich", "Sandwich"]];

interface Chosen {
	flame: Flame;
	box: number;
	/** Of the graph that it is in. */
	query: Query;
}

function useQuery(app: App): { view: ViewName; query: Query } {
	const values = app.state.values;
	const view = (VIEWS.find(([id]) => id === values["view"])?.[0] ?? "down");
	const query: Query = { ...common(app, ["metric", "window"]), view, root: values["root"], search: values["search"], hide: values["hide"],
		recursion: values["recursion"], phase: values["phase"], layers: values["layers"], rank: values["rank"] };
	return { view, query };
}

export function describe(flame: Flame, box: number): string {
	const flags = flame.flags[box] as number, many = flame.many[box] as number;
	return [
		flame.name(box), LAYER_NAMES[flame.layer[box] as number] ?? "other",
		`${amount(flame.value[box], flame.total.unit)}, ${percent((flame.value[box] as number) / flame.total.value)} of all`,
		`itself ${amount(flame.self[box], flame.total.unit)}`,
		many > 1 ? `with ${many - 1} narrower boxes beside it` : "", flags & FINDING ? "it has a finding" : "", flags & FUSED ? "a fused operator" : "",
	].filter(Boolean).join("; ");
}

function FlamePage() {
	const app = useApp();
	const { view, query } = useQuery(app);
	const values = app.state.values;
	const [chosen, setChosen] = useState<Chosen | null>(null);
	const [flame, setFlame] = useState<Flame | null>(null);
	const of = values["of"];
	const setView = (next: ViewName) => app.set({ view: next === "down" ? null : next, x0: null, x1: null, root: null, node: null }, true);

	useEffect(() => {
		const key = (event: KeyboardEvent) => {
			if (event.ctrlKey || event.metaKey || event.altKey || (event.target instanceof HTMLElement && event.target.matches("input, select, textarea"))
				|| document.querySelector("dialog[open]")) return;
			const next = VIEWS[Number(event.key) - 1];
			if (next) setView(next[0]);
			else if (event.key === "r") app.set({ recursion: values["recursion"] ? null : "collapse", node: null, root: null }, true);
		};
		addEventListener("keydown", key);
		return () => removeEventListener("keydown", key);
	});

	const asTable = values["as"] === "table";
	return (
		<div class="page flame">
			<h1 class="unseen">Flame graph</h1>
			<div class="tools">
				<Switches label="View" value={view} options={app.source.isOffline ? VIEWS.slice(0, 3) : VIEWS} onChange={setView} />
				<LayerSwitches />
				<Search flame={flame} />
				<Switches label="As" value={asTable ? "table" : "graph"} options={[["graph", "Graph"], ["table", "Table"]]}
					onChange={(as) => app.set({ as: as === "table" ? as : null }, true)} />
				<CsvButton name="flame" rows={() => (flame ? boxRows(flame) : [])} />
				{!app.source.isOffline && <button type="button" aria-pressed={values["recursion"] === "collapse"} title="r"
					onClick={() => app.set({ recursion: values["recursion"] ? null : "collapse", node: null, root: null }, true)}>Collapse recursion</button>}
				{app.about.has["layers"] && !app.source.isOffline && <button type="button" aria-pressed={values["phase"] === "apart"}
					onClick={() => app.set({ phase: values["phase"] ? null : "apart", node: null, root: null }, true)}>Backward apart</button>}
				{values["hide"] && <button type="button" onClick={() => app.set({ hide: null, node: null, root: null }, true)}>Show {values["hide"]} again</button>}
				{values["rank"] && <button type="button" onClick={() => app.set({ rank: null, node: null, root: null }, true)}>Only rank {values["rank"]}: show all</button>}
				{values["root"] && <button type="button" onClick={() => app.set({ root: null, x0: null, x1: null }, true)}>End the focus</button>}
			</div>
			<Summary flame={flame} />
			<div class="split">
				<div class="charts">
					{view === "sandwich" ? (of ? <>
						<h2>Callers</h2>
						<Chart key={`callers ${of}`} query={{ ...query, view: "callers", of, root: null }} keeps={false} onAnswer={() => undefined} onChosen={setChosen} asTable={asTable} />
						<h2>Callees</h2>
						<Chart key={`callees ${of}`} query={{ ...query, view: "callees", of, root: null }} keeps={false} onAnswer={setFlame} onChosen={setChosen} asTable={asTable} />
					</> : <Frames query={query} />)
						: <Chart query={query} keeps={true} onAnswer={setFlame} onChosen={setChosen} asTable={asTable} />}
				</div>
				{chosen && <Details flame={chosen.flame} box={chosen.box} query={{ ...chosen.query, root: null, search: null }} onClose={() => { setChosen(null); app.set({ node: null }); }} />}
			</div>
		</div>
	);
}

function boxRows(flame: Flame): (string | number | null)[][] {
	const rows: (string | number | null)[][] = [["depth", "name", "layer", `self (${flame.total.unit})`, `total (${flame.total.unit})`, "share", "boxes"]];
	for (let box = 0; box < flame.count; box++) {
		rows.push([flame.depth[box] as number, flame.name(box), LAYERS[flame.layer[box] as number] ?? "other", flame.self[box] as number,
			flame.value[box] as number, (flame.value[box] as number) / flame.total.value, flame.many[box] as number]);
	}
	return rows;
}

function Summary({ flame }: { flame: Flame | null }) {
	const app = useApp();
	if (!flame) return <p class="summary">&nbsp;</p>;
	const { value, unit, metric, matched, nodes } = flame.total;
	const note = app.source.note("flame", { view: app.state.values["view"], metric: app.state.values["metric"], window: app.state.values["window"] });
	return (
		<p class="summary">
			{metric}: {amount(value, unit)} in {amount(nodes, null)} boxes
			{app.state.values["search"] && <>; <strong>{percent(matched / value)} match ({amount(matched, unit)})</strong></>}
			{note && <>; {note}</>}
		</p>
	);
}

function LayerSwitches() {
	const app = useApp();
	const shown = (app.state.values["layers"] ?? LAYERS.join(",")).split(",");
	const palette = PALETTES[app.look];
	const turn = (layer: string) => {
		const next = LAYERS.filter((one) => (one === layer ? !shown.includes(one) : shown.includes(one)));
		if (next.length) app.set({ layers: next.length === LAYERS.length ? null : next.join(","), root: null, node: null, x0: null, x1: null }, true);
	};
	return (
		<div class="switches layers" role="group" aria-label="Layers shown">
			{LAYERS.map((layer, index) => app.source.isOffline ? (
				<span key={layer} class="legend-item"><span class="swatch" style={{ background: palette.layers[index] }} />{LAYER_NAMES[index]}</span>
			) : (
				<button key={layer} type="button" aria-pressed={shown.includes(layer)} onClick={() => turn(layer)}>
					<span class="swatch" style={{ background: palette.layers[index] }} />{LAYER_NAMES[index]}
				</button>
			))}
		</div>
	);
}

function Search({ flame }: { flame: Flame | null }) {
	const app = useApp();
	const [text, setText] = useState(app.state.values["search"] ?? "");
	const timer = useRef(0);
	useEffect(() => setText(app.state.values["search"] ?? ""), [app.state.values["search"]]);
	useEffect(() => {
		if (flame && app.state.values["search"]) app.say(`${percent(flame.total.matched / flame.total.value)} match`);
	}, [flame]);
	return (
		<input type="search" aria-label="Search: an extended regular expression" placeholder="Search (/)" value={text}
			onInput={(event) => {
				const next = event.currentTarget.value;
				setText(next);
				clearTimeout(timer.current);
				timer.current = window.setTimeout(() => app.set({ search: next }), 200);
			}}
			onKeyDown={(event) => {
				if (event.key === "Escape") app.set({ search: null });
				if (event.key === "Enter" || event.key === "Escape") document.querySelector<HTMLElement>(".chart canvas")?.focus();
			}} />
	);
}

function Chart({ query, keeps, onAnswer, onChosen, asTable }: {
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

	useEffect(() => {
		if (!canvas.current) return;
		setError(null);
		let isFirst = true;
		const wanted = keeps ? Number(values["node"] ?? -1) : -1;
		const made = new Controller(canvas.current, app.source, query, app.look, {
			onSelect(at, box) {
				onChosen(box < 0 ? null : { flame: at, box, query });
				if (box >= 0) newest.current.say(describe(at, box));
				if (keeps) newest.current.set({ node: box < 0 ? null : at.node[box] });
			},
			onHover(at, box, x, y) {
				setTip(box < 0 ? null : { x, y, text: describe(at, box) });
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
				if (isFirst && wanted >= 0) {
					const box = at.find(wanted);
					if (box >= 0) onChosen({ flame: at, box, query });
				}
				isFirst = false;
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
			{asTable && flame && <BoxTable flame={flame} onOpen={(box) => controller.current?.select(flame, box)} />}
			{flame && flame.count === 0 && <p class="notice over">No box has a value of this metric in this part of the run. Choose another metric, part or layer.</p>}
			{!flame && !error && <p class="notice over" aria-busy="true">Loading…</p>}
			{tip && !menu && <div class="tip" aria-hidden="true" style={{ left: `${Math.min(tip.x + 12, innerWidth - 260)}px`, top: `${tip.y + 18}px` }}>{tip.text}</div>}
			{menu && <Menu {...menu} onClose={() => { setMenu(null); canvas.current?.focus(); }} />}
		</div>
	);
}

function menuItems(app: App, flame: Flame, box: number, query: Query, controller: Controller): MenuItem[] {
	const node = flame.node[box] as number;
	const ask = () => app.source.json<{ library: string | null; file: string | null }>("frame", { ...query, root: null, search: null, node });
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
	const path = () => {
		const names: string[] = [];
		for (let at = box; at >= 0; at = flame.parentOf(at)) names.unshift(flame.name(at));
		return names.join("\n");
	};
	const isSandwich = query["view"] === "callers" || query["view"] === "callees";
	return [
		{ title: "Zoom in", run: () => controller.zoomTo(flame, box) },
		...(isSandwich || app.source.isOffline ? [] : [{ title: "Focus on this box", run: () => app.set({ root: node, x0: null, x1: null }, true) }]),
		...((flame.frame[box] as number) < 0 || app.source.isOffline ? [] : [
			{ title: "Callers and callees (sandwich)", run: () => app.set({ view: "sandwich", of: flame.frame[box] as number, root: null, node: null, x0: null, x1: null }, true) }]),
		...(app.source.isOffline ? [] : [
			{ title: "Hide its library or file", run: () => void hide() },
			{ title: "Collapse recursion (r)", run: () => app.set({ recursion: "collapse", node: null, root: null }, true) },
		]),
		{ title: "Copy the name", run: () => void copyText(flame.name(box)).then(() => app.say("Copied")) },
		{ title: "Copy the call path", run: () => void copyText(path()).then(() => app.say("Copied")) },
	];
}

/** All frames, by what they take themselves: where a sandwich begins. */
function Frames({ query }: { query: Query }) {
	const app = useApp();
	const all: Query = { ...query, view: "up", root: null, px: 16384 };
	const loaded = useAnswer(canonical("flame", all), async (signal) => {
		const tables = await app.source.tables("flame", all, signal);
		const [boxes, total] = tables;
		if (!boxes || !total) throw new Error("the answer has no flame graph");
		return new Flame(boxes, total, [0, 1], 16384);
	});
	const roots = useMemo(() => loaded.state === "ready" ? Array.from({ length: loaded.value.start[1] ?? 0 }, (_, box) => box) : [], [loaded]);
	if (loaded.state === "error") return <Trouble error={loaded.error} />;
	if (loaded.state === "loading") return <p class="notice" aria-busy="true">Loading…</p>;
	return <>
		<p class="notice">Choose a frame: its callers and callees are shown.</p>
		<BoxTable flame={loaded.value} only={roots} onOpen={(box) => app.set({ of: loaded.value.frame[box] as number }, true)} />
	</>;
}


register({
	id: "flame", title: "Flame", key: "f", needs: {}, follows: ["metric", "window"], make: FlamePage,
	keys: [
		["1 2 3 4", "top-down, left-heavy, bottom-up, sandwich"], ["arrows", "from box to box"], ["click or Enter", "zoom to the box"],
		["double click, f or 0", "show all"], ["Esc", "out by one"], ["wheel, w s", "zoom"], ["drag, a d", "move to the side"],
		["Shift+wheel, Alt+wheel", "move to the side, up and down"], ["r", "collapse recursion"], ["m or right click", "menu of a box"],
	],
});
