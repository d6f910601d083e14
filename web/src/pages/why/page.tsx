// SPDX-License-Identifier: Apache-2.0
// The page Why: why the warps of a kernel wait. Source and machine code with their samples, and the causes of each stall.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { amount, percent, short, visible } from "../../draw/words";
import { canonical, type Query } from "../../protocol/query";
import { common, useAnswer, useApp, valueOf, type App } from "../../state/app";
import { Choice, CsvButton, Waiting } from "../../shell/parts";
import { register } from "../../shell/registry";
import { findKernel, keyOf, listOf, type Listed } from "../../shell/sampled";
import { Table, type Cell, type TableColumn } from "../../shell/table";
import { Code } from "./code";
import { Hot, type Kernel, type Stall, type Why } from "./data";
import { HeatLegend } from "./rows";
import { filesOf, Source, type SourceFile } from "./source";
import { placeWords, StallDetails } from "./stall";

const CHOICES_MOST = 1000;
const FRESH = { at: null, line: null, source: null, stall: null, cause: null };

function WhyPage() {
	const app = useApp(), query = common(app);
	const loaded = useAnswer(canonical("why/kernels", query), async (signal) => listOf((await app.source.tables("why/kernels", query, signal))[0]));
	return (
		<div class="page why-page">
			<h1 class="unseen">Why</h1>
			<Waiting loaded={loaded}>{(list) => <Kernels list={list} query={query} />}</Waiting>
		</div>
	);
}

function words(kernel: Listed): string {
	const share = Number.isFinite(kernel.share) ? `${percent(kernel.share)}, ` : "";
	return `${short(visible(kernel.name)).slice(0, 90)} (${share}${amount(kernel.samples, null)} samples)`;
}

function Kernels({ list, query }: { list: Listed[]; query: Query }) {
	const app = useApp(), name = app.state.values["kernel"], kernel = findKernel(list, name);
	if (list.length === 0) return <p class="notice">The profile has no kernels with code.</p>;
	const shown = list.slice(0, CHOICES_MOST);
	if (kernel && !shown.includes(kernel)) shown.push(kernel);
	const note = app.source.note("why/kernels", query);
	return <>
		<div class="tools">
			<Choice label="Kernel" value={kernel ? keyOf(list, kernel) : ""} onChange={(next) => app.set({ kernel: next, ...FRESH }, true)}
				options={[...(kernel ? [] : [["", "choose one"] as [string, string]]), ...shown.map((one): [string, string] => [keyOf(list, one), words(one)])]} />
			{list.length > shown.length && <span class="quiet">{amount(list.length - shown.length, null)} smaller kernels are not in the list</span>}
			{kernel && <CsvButton name="why" answer="why" query={{ ...query, kernel: kernel.number, top: 0 }} table="Causes" />}
		</div>
		{note && <p class="summary">{note}</p>}
		{!kernel && <p class="notice">No kernel with samples is named {visible(name ?? "")}. Choose another one.</p>}
		{kernel && <OneKernel key={`${kernel.number}`} number={kernel.number} query={{ ...query, kernel: kernel.number }} />}
	</>;
}

interface Known {
	kernel: Kernel;
	hot: Hot;
	files: SourceFile[];
}

async function ask(app: App, query: Query, signal: AbortSignal): Promise<Known> {
	const [why, code, files] = await Promise.all([app.source.json<Why>("why", query, signal), app.source.tables("why/code", { ...query, hot: 1, count: 0 }, signal),
		app.source.tables("why/source", query, signal)]);
	const [kernel] = why.kernels, [rows, functions] = code;
	if (!kernel || !rows || !functions) throw new Error("the answer has no kernel");
	return { kernel, hot: new Hot(rows, functions), files: filesOf(files[0]) };
}

function OneKernel({ number, query }: { number: number; query: Query }) {
	const app = useApp();
	const loaded = useAnswer(canonical("why", query), (signal) => ask(app, query, signal));
	const note = app.source.note("why/code", query);
	return <>
		{note && <p class="summary">{note}</p>}
		<Waiting loaded={loaded}>{(known) => <Shown known={known} number={number} query={query} />}</Waiting>
	</>;
}

function Facts({ kernel }: { kernel: Kernel }) {
	const facts: string[] = [
		`${amount(kernel.samples, null)} samples, ${kernel.mode}`,
		`${percent(kernel.samples ? kernel.waiting / kernel.samples : null)} waiting, ${percent(kernel.samples ? kernel.hidden / kernel.samples : null)} hidden`,
		`GPU time ${amount(kernel.gpu_ns, "ns")}`,
		...(kernel.device ? [visible(kernel.device)] : []),
		...(kernel.registers !== null ? [`${kernel.registers} registers`] : []),
		...(kernel.coverage !== null ? [`coverage ${percent(kernel.coverage)}`] : []),
		...(kernel.estimated ? ["parts of its functions' samples are estimated"] : []),
		...(kernel.outside > 0 ? [`${amount(kernel.outside, null)} samples lie in no instruction`] : []),
		...(kernel.unknown_instructions ? [`${amount(kernel.unknown_instructions, null)} instructions are unknown`] : []),
	];
	return <p class="summary"><strong class="headline">{visible(kernel.summary)}</strong> <span>{facts.join("; ")}</span></p>;
}

/** The samples of the line that has most. */
function mostOfLines(hot: Hot, files: SourceFile[]): number {
	const sums = new Map<string, number>(), hidden = hot.code.column("hidden");
	for (let row = 0; row < hot.code.rows; row++) {
		const key = `${hot.code.column("line").text(row)} ${hot.code.column("file").text(row)}`;
		sums.set(key, (sums.get(key) ?? 0) + (hot.waiting[row] as number) + hidden.number(row));
	}
	return sums.size ? Math.max(...sums.values()) : Math.max(1, ...files.map((one) => one.waiting + one.hidden));
}

/** Stalls at an instruction: those of the answer, else asked for. */
function useStalls(known: Known, at: number, query: Query): { stalls: Stall[]; note: string | null } {
	const app = useApp(), here = known.kernel.stalls.filter((one) => one.number === at);
	const row = known.hot.numbers.indexOf(at), isLeftOut = at >= 0 && here.length === 0 && known.kernel.stalls_left_out > 0 && row >= 0 && (known.hot.waiting[row] as number) > 0;
	const asked: Query = { ...query, number: at };
	const loaded = useAnswer<Why | null>(isLeftOut ? canonical("why", asked) : "", (signal) => (isLeftOut ? app.source.json<Why>("why", asked, signal) : Promise.resolve(null)));
	if (!isLeftOut) return { stalls: here, note: null };
	if (loaded.state === "error") return { stalls: [], note: app.source.isOffline ? "This page holds the causes of the greatest stalls only." : loaded.error.message };
	const stalls = (valueOf(loaded)?.kernels[0]?.stalls ?? []).filter((one) => one.number === at);
	return { stalls, note: stalls.length ? null : "…" };
}

function Shown({ known, number, query }: { known: Known; number: number; query: Query }) {
	const app = useApp(), { kernel, hot, files } = known, values = app.state.values;
	const list = useMemo(() => [...new Set(kernel.stalls.flatMap((one) => (typeof one.number === "number" && one.samples > 0 ? [one.number] : [])))], [known]);
	const most = useMemo(() => mostOfLines(hot, files), [known]);
	const named = hot.numberOf(values["at"]), at = named >= 0 ? named : list[0] ?? -1;
	const { stalls, note } = useStalls(known, at, query);
	const stall = stalls[Number(values["stall"] ?? 0)] ?? stalls[0] ?? null, cause = stall?.causes[Number(values["cause"] ?? 0)] ?? stall?.causes[0] ?? null;
	const ownRow = hot.numbers.indexOf(at), own = stall ?? (ownRow >= 0 ? { file: hot.code.column("file").text(ownRow) || null, line: hot.code.column("line").number(ownRow) || null } : null);
	const fileOf = (path: string | null | undefined) => files.find((one) => one.file === path);
	const file = files.find((one) => String(one.number) === values["source"]) ?? fileOf(own?.file) ?? files[0];
	const line = values["line"] ? Number(values["line"]) || 0 : file && own?.file === file.file ? own.line ?? 0 : 0;
	const pick = (next: number) => next >= 0 && app.set({ ...FRESH, at: hot.atOf(next) }, true);
	const latest = useRef({ at, list, cause, pick });
	latest.current = { at, list, cause, pick };

	useEffect(() => {
		const key = (event: KeyboardEvent) => {
			const now = latest.current, target = event.target instanceof Element ? event.target : null;
			if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || target?.closest("input, select, textarea, dialog")) return;
			const isOnControl = !!target?.closest("a, button, summary"), isInCode = !target || target === document.body || !!target.closest(".code");
			const step = event.key === "j" || (event.key === "ArrowDown" && isInCode) ? 1 : event.key === "k" || (event.key === "ArrowUp" && isInCode) ? -1 : 0;
			let next = -1;
			if (step) next = now.list[Math.max(0, Math.min(now.list.length - 1, now.list.indexOf(now.at) + step))] ?? -1;
			else if (event.key === "n" || event.key === "N") next = hot.next(now.at, event.key === "n" ? 1 : -1);
			else if (event.key === "Enter" && !isOnControl) next = now.cause?.number ?? -1;
			else return;
			event.preventDefault();
			if (next >= 0) now.pick(next);
			else app.say("There is no more");
		};
		addEventListener("keydown", key);
		return () => removeEventListener("keydown", key);
	}, [known]);
	const spoken = stall ? `${placeWords(stall, true)}: ${stall.reason}, ${stall.samples} samples${cause ? `; cause: ${cause.name ?? cause.kind} ${placeWords(cause, true)}` : ""}` : "";
	useEffect(() => { if (values["at"] && spoken) app.say(spoken); }, [values["at"], spoken]);

	return <>
		<Facts kernel={kernel} />
		{kernel.problem && <p class="notice">{visible(kernel.problem)}</p>}
		<HeatLegend />
		<div class="split why-split">
			{file && <Source kernel={number} query={query} files={files} file={file} line={line} most={most} onFile={(next) => app.set({ source: next, line: null })}
				onPick={(next, first) => {
					const found = hot.ofLine(file.file, next), to = found >= 0 ? found : first;
					app.set({ ...FRESH, at: Number.isFinite(to) && to >= 0 ? hot.atOf(to) : null, line: next, source: file.number }, true);
				}} />}
			{hot.count > 0 && <Code kernel={number} query={query} hot={hot} hasLines={files.length > 0} at={at} line={file && line ? { file: file.file, line } : null} stall={stall} cause={cause} onPick={pick} />}
			{hot.count > 0 && <StallDetails at={at} offset={at >= 0 ? hot.atOf(at) : ""} stalls={stalls} stall={stall} cause={cause} note={note} onPick={pick}
				waiting={kernel.stalls.filter((one) => one.number !== at && one.causes.some((by) => by.number === at))}
				onStall={(next) => app.set({ at: hot.atOf(at), stall: next, cause: null })} onCause={(next) => app.set({ at: hot.atOf(at), cause: next })} />}
		</div>
		{files.length === 0 && hot.count > 0 && <p class="summary">The code has no lines of source. nvcc -lineinfo keeps them.</p>}
		{hot.count > 0 ? <Causes kernel={kernel} onPick={(next, by) => app.set({ ...FRESH, at: hot.atOf(next), cause: by }, true)} /> : <Bare kernel={kernel} />}
	</>;
}

const placeCell = (place: { file: string | null; line: number | null; offset: number | null }): Cell => placeWords(place as never, true) || null;

/** All causes of the kernel, by line. */
function Causes({ kernel, onPick }: { kernel: Kernel; onPick: (number: number, cause: number) => void }) {
	const app = useApp(), { causes } = kernel;
	const most = causes.reduce((max, one) => Math.max(max, one.share ?? 0), 0) || 1;
	const columns: TableColumn[] = useMemo(() => [
		{ id: "cause", title: "cause", isNumber: false },
		{ id: "share", title: "share of waiting", isNumber: true, words: (value) => percent(value as number | null), bar: (row) => (causes[row]?.share ?? 0) / most },
		{ id: "place", title: "at", isNumber: false },
		{ id: "samples", title: "samples", isNumber: true },
		{ id: "stalls", title: "stalls", isNumber: true },
		{ id: "confidence", title: "confidence", isNumber: true, words: (value) => percent(value as number | null) },
		{ id: "ambiguous", title: "ambiguous", isNumber: false, words: (value) => (value ? "yes" : "no") },
		{ id: "saving", title: "saving, at most", isNumber: true, unit: "ns" },
		{ id: "evidence", title: "evidence", isNumber: false, words: (value) => visible(String(value ?? "")) },
		{ id: "advice", title: "advice", isNumber: false, words: (value) => visible(String(value ?? "")) },
	], [kernel]);
	const cell = useMemo(() => (row: number, column: number): Cell => {
		const one = causes[row];
		if (!one) return null;
		return [one.name ?? one.kind, one.share, placeCell({ file: one.file ?? null, line: one.line ?? null, offset: one.offset ?? null }), one.samples, one.stalls, one.confidence, one.ambiguous, one.saving_ns, one.evidence, one.advice][column] ?? null;
	}, [kernel]);
	// Of the stalls that it causes, the greatest.
	const stallOf = (row: number): [number, number] | null => {
		const one = causes[row];
		for (const stall of one ? kernel.stalls : []) {
			const by = stall.causes.findIndex((other) => other.kind === one?.kind && other.name === one.name && (other.number ?? null) === (one.number ?? null));
			if (by >= 0 && typeof stall.number === "number") return [stall.number, by];
		}
		return typeof one?.number === "number" ? [one.number, 0] : null;
	};
	return <Table label="Causes" columns={columns} count={causes.length} cell={cell} sort={app.state.values["sort"] ?? "-share"} onSort={(sort) => app.set({ sort })}
		canOpen={(row) => stallOf(row) !== null} onOpen={(row) => { const found = stallOf(row); if (found) onPick(...found); }} />;
}

/** Stalls of code that cannot be looked at. */
function Bare({ kernel }: { kernel: Kernel }) {
	const app = useApp(), { stalls } = kernel;
	const columns: TableColumn[] = useMemo(() => [
		{ id: "place", title: "at", isNumber: false },
		{ id: "reason", title: "reason", isNumber: false },
		{ id: "class", title: "class", isNumber: false },
		{ id: "share", title: "share of waiting", isNumber: true, words: (value) => percent(value as number | null) },
		{ id: "samples", title: "waiting", isNumber: true },
		{ id: "hidden", title: "hidden", isNumber: true },
	], [kernel]);
	const cell = useMemo(() => (row: number, column: number): Cell => {
		const one = stalls[row];
		return one ? [placeCell(one), one.reason, one.class, one.share, one.samples, one.hidden][column] ?? null : null;
	}, [kernel]);
	return <Table label="Causes" columns={columns} count={stalls.length} cell={cell} sort={app.state.values["sort"] ?? "-samples"} onSort={(sort) => app.set({ sort })} />;
}

register({ id: "why", title: "Why", key: "w", needs: { code_samples: "plumb run --stalls -- PROGRAM" }, follows: [], make: WhyPage, keys: [
	["j and k, or arrows in the code", "the next and the previous stall, those with most samples first"],
	["Enter", "the instruction that causes the stall"],
	["n and N", "the next and the previous instruction at which warps wait"],
] });
