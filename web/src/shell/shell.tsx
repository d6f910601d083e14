// SPDX-License-Identifier: Apache-2.0
// The frame around the pages: tabs, choices, keys, help. It holds the state, which is the address.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { fileName, visible } from "../draw/words";
import type { Source } from "../protocol/source";
import type { About } from "../protocol/types";
import type { Address } from "../state/address";
import { AppContext, type App } from "../state/app";
import { change, format, parse, turn, type State } from "../state/fragment";
import { applyLook, chooseLook, chosenLook, type Look } from "../state/theme";
import { Help, Palette, type Act } from "./dialogs";
import { Choice, Command, LinkButton } from "./parts";
import { lacks, pageOf, pages } from "./registry";

const isTyping = (event: KeyboardEvent) => event.target instanceof HTMLElement && event.target.matches("input, select, textarea");

export function Shell({ source, about, address }: { source: Source; about: About; address: Address }) {
	const [state, setState] = useState<State>(() => parse(address.now()));
	const [look, setLook] = useState<Look>(applyLook);
	const [open, setOpen] = useState<"help" | "palette" | null>(null);
	const [said, say] = useState("");
	const now = useRef(state);
	now.current = state;

	useEffect(() => {
		const unwatch = address.watch(() => setState(parse(address.now())));
		const dark = matchMedia("(prefers-color-scheme: dark)");
		const adapt = () => !chosenLook() && setLook(applyLook());
		dark.addEventListener("change", adapt);
		const marks = new MutationObserver(adapt);
		marks.observe(document.body, { attributes: true, attributeFilter: ["data-vscode-theme-kind"] });
		return () => {
			unwatch();
			dark.removeEventListener("change", adapt);
			marks.disconnect();
		};
	}, []);

	const page = pageOf(state.page) ?? pages().find((one) => !lacks(one, about)) ?? pages()[0];
	const show = useCallback((next: State, isStep: boolean) => {
		const at = format(next);
		if (at === address.now()) return;
		address.put(at, isStep);
		now.current = next;
		setState(next);
	}, []);
	const id = page?.id ?? "";
	const set: App["set"] = useCallback((values, isStep = false) => show(change({ ...now.current, page: id }, values), isStep), [id]);
	const go: App["go"] = useCallback((to, values = {}) => show(turn(now.current, to, values), true), []);
	const link: App["link"] = useCallback((to, values = {}) => format(turn(now.current, to, values)), []);
	const turnLook = useCallback(() => {
		const next = document.documentElement.dataset["look"] === "dark" ? "light" : "dark";
		chooseLook(next);
		setLook(next);
	}, []);

	const acts = useMemo<Act[]>(() => [
		...pages().filter((one) => !one.isOptional || !lacks(one, about)).map((one) => ({ title: `Open ${one.title}`, keys: `g ${one.key}`, run: () => go(one.id) })),
		...about.metrics.filter((metric) => metric.adds_up).map((metric) => ({ title: `Metric: ${metric.name}`, run: () => set({ metric: metric.name }, true) })),
		...windowsOf(about).map(([name, words]) => ({ title: `Part of the run: ${words}`, run: () => set({ window: name }, true) })),
		{ title: "Light or dark", keys: "t", run: turnLook },
		{ title: "Help", keys: "?", run: () => setOpen("help") },
	], [about, set]);

	const wasG = useRef(-Infinity);
	useEffect(() => {
		const key = (event: KeyboardEvent) => {
			if (event.ctrlKey && event.shiftKey && event.key.toLowerCase() === "p") {
				event.preventDefault();
				setOpen("palette");
				return;
			}
			const search = document.querySelector<HTMLInputElement>("main input[type=search]");
			if (search && !document.querySelector("dialog[open]") && ((event.ctrlKey && event.key === "f") || (event.key === "/" && !isTyping(event)))) {
				event.preventDefault();
				search.focus();
				search.select();
				return;
			}
			if (isTyping(event) || event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
			if (performance.now() - wasG.current < 1500) {
				wasG.current = -Infinity;
				const to = pages().find((one) => one.key === event.key);
				if (to) {
					event.preventDefault();
					event.stopPropagation();
					go(to.id);
					return;
				}
			}
			if (event.key === "g") wasG.current = performance.now();
			else if (event.key === "?") setOpen("help");
			else if (event.key === "t") turnLook();
		};
		addEventListener("keydown", key, true);
		return () => removeEventListener("keydown", key, true);
	}, []);

	useEffect(() => {
		document.title = `${page?.title ?? "plumb"} · ${visible(about.files[Number(state.values["file"] ?? 0)]?.name ?? "plumb")}`;
	}, [page, state.values["file"]]);

	const app: App = { source, about, state, look, set, go, link, say };
	const lacking = page && lacks(page, about);
	return (
		<AppContext.Provider value={app}>
			<a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>To the content</a>
			<header>
				<strong class="brand">plumb</strong>
				<nav aria-label="Pages">
					{pages().filter((one) => one === page || !one.isOptional || !lacks(one, about)).map((one) => (
						<a key={one.id} href={link(one.id)} class={lacks(one, about) ? "lacking" : ""} aria-current={one === page ? "page" : undefined}
							title={`g ${one.key}`}>{one.title}</a>
					))}
				</nav>
				<div class="choices">
					{about.files.length > 1 && <Choice label="File" value={state.values["file"] ?? "0"} onChange={(file) => set({ file }, true)}
						options={about.files.map((file, index) => [String(index), visible(fileName(file.name))])} />}
					{page?.follows.includes("metric") && about.metrics.length > 0 && <Choice label="Metric" onChange={(metric) => set({ metric, ...FRESH }, true)}
						value={state.values["metric"] ?? about.metrics.find((one) => one.is_default)?.name ?? ""}
						options={about.metrics.filter((one) => one.adds_up).map((one) => [one.name, one.name])} />}
					{page?.follows.includes("window") && about.windows.length > 0 && <Choice label="Part" onChange={(window) => set({ window, ...FRESH }, true)}
						value={state.values["window"] ?? page.usualWindow ?? defaultWindow(about)} options={windowsOf(about)} />}
					{address.isShared && <LinkButton />}
					<button type="button" onClick={turnLook} aria-label={look === "dark" ? "Switch to the light look" : "Switch to the dark look"}>
						{look === "dark" ? "☀" : "☾"}</button>
					<button type="button" onClick={() => setOpen("help")} aria-label="Help and keys">?</button>
				</div>
			</header>
			<main id="content" tabIndex={-1}>
				{page && !lacking && <page.make key={`${page.id} ${state.values["file"] ?? ""}`} />}
				{page && lacking && (
					<div class="notice">
						<h1>{page.title}</h1>
						<p>This profile has no data for this page. This command records it:</p>
						<Command text={lacking.remedy} />
					</div>
				)}
			</main>
			<div class="spoken" role="status" aria-live="polite">{said}</div>
			{open === "help" && <Help pages={pages()} page={page} onClose={() => setOpen(null)} />}
			{open === "palette" && <Palette acts={acts} onClose={() => setOpen(null)} />}
		</AppContext.Provider>
	);
}

/** What no longer fits if the metric or the part of the run changes. */
const FRESH = { root: null, node: null, x0: null, x1: null, of: null };

export function defaultWindow(about: About): string {
	return about.windows.find((window) => window.main)?.name ?? "all";
}

const WINDOW_WORDS: Record<string, string> = { all: "whole run", startup: "start-up", loop: "main loop", rest: "the rest" };

export function windowWords(name: string): string {
	return WINDOW_WORDS[name] ?? name.replace(/^loop:(\d+)$/, "loop $1");
}

function windowsOf(about: About): [string, string][] {
	return ["all", ...about.windows.map((window) => window.name).filter((name) => name !== "all")].map((name) => [name, windowWords(name)]);
}
