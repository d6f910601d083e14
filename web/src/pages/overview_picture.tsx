// SPDX-License-Identifier: Apache-2.0
// Where the time went, in one picture: the phases of the run from left to right, as wide as they took; below each what the host did
// and what the GPUs did.
import { PALETTES, PARTS } from "../draw/colours";
import { amount, percent, visible } from "../draw/words";
import type { Table } from "../protocol/columns";
import { canonical, type Query } from "../protocol/query";
import type { Overview, Window } from "../protocol/types";
import { common, useAnswer, useApp, type App } from "../state/app";
import { CsvButton, Waiting } from "../shell/parts";
import { windowWords } from "../shell/shell";

interface Share {
	lane: string;
	part: string;
	ns: number;
}

interface Phase {
	window: string;
	name: string;
	wall: number;
	shares: Share[];
}

/** Lanes of more ranks than this are on the page of ranks. */
const LANES_MOST = 8, PHASES_MOST = 8, SMALL = 0.005;

/** Parts in the order in which they stand, each with its colour. */
const COLOURS: Record<string, string> = {
	"operators and ranges": "host", "waits for the GPU": "waiting", "other code": "rest", computes: "computing", busy: "computing", communication: "communication",
	"waits for other ranks": "waiting", copies: "copies", waits: "waiting", idle: "idle", "nothing recorded": "idle",
};

function readShares(table: Table, window: Window | null): Share[] {
	const shares = Array.from({ length: table.rows }, (_, row): Share => {
		const number = (name: string) => table.column(name).number(row), isHost = table.column("lane").text(row) === "host";
		const rank = number("rank"), device = number("device");
		return { lane: [Number.isNaN(rank) ? "" : `rank ${rank}`, isHost ? "host" : `GPU ${device}`].filter(Boolean).join(", "), part: table.column("part").text(row), ns: number("ns") };
	});
	// What start-up did is known better: imports, loading, compiling.
	const hosts = [...new Set(shares.filter((share) => share.lane === "host").map((share) => share.lane))];
	if (!window?.parts?.length || hosts.length !== 1) return shares;
	const rest = window.wall_ns - window.parts.reduce((sum, part) => sum + part.ns, 0);
	const parts = window.parts.map((part): Share => ({ lane: "host", part: part.name, ns: part.ns }));
	if (rest > 0) parts.push({ lane: "host", part: "nothing recorded", ns: rest });
	return [...parts, ...shares.filter((share) => share.lane !== "host")];
}

/** The phases of the run by when they begin; the run itself if it has none. Short ones are left out. */
export function phasesOf(overview: Overview): Window[] {
	const whole = overview.run.wall_ns ?? 0;
	const shown = overview.windows.filter((window) => window.wall_ns >= SMALL * whole).sort((a, b) => b.wall_ns - a.wall_ns).slice(0, PHASES_MOST);
	return shown.sort((a, b) => a.start_ns - b.start_ns);
}

export function WhereTheTimeWent({ overview }: { overview: Overview }) {
	const app = useApp();
	const query = common(app), windows = phasesOf(overview);
	const names = windows.length ? windows.map((window) => window.name) : ["all"];
	const loaded = useAnswer<Phase[]>(canonical("shares", { ...query, window: names }), (signal) => Promise.all(names.map(async (name, index) => {
		const window = windows[index] ?? null;
		const [table] = await app.source.tables("shares", { ...query, window: name }, signal);
		if (!table) throw new Error("the answer has no shares");
		return { window: name, name: windowWords(name), wall: window?.wall_ns ?? overview.run.wall_ns ?? 0, shares: readShares(table, window) };
	})));
	return <Waiting loaded={loaded}>{(phases) => <Shown phases={phases} overview={overview} query={query} />}</Waiting>;
}

function lanesOf(phases: Phase[]): string[] {
	const lanes = [...new Set(phases.flatMap((phase) => phase.shares.map((share) => share.lane)))];
	const rank = (lane: string) => Number(/^rank (\d+)/.exec(lane)?.[1] ?? -1);
	return lanes.sort((a, b) => rank(a) - rank(b) || Number(b.endsWith("host")) - Number(a.endsWith("host")) || a.localeCompare(b));
}

const WORDS: Record<string, string> = { "operators and ranges": "is in operators and ranges", "other code": "runs other code", busy: "works", communication: "exchanges data with other ranks",
	idle: "has no work", "nothing recorded": "does what nobody recorded" };

/** The greatest parts of a lane in a phase as words. */
function mostOf(phase: Phase, lane: string): string {
	const parts = phase.shares.filter((share) => share.lane === lane && share.ns > 0).sort((a, b) => b.ns - a.ns).slice(0, 2);
	return parts.map((share, index) => `${WORDS[share.part] ?? share.part} ${percent(share.ns / phase.wall)}${index ? "" : " of the time"}`).join(", and ");
}

/** "the host of rank 1", "GPU 0". */
function who(lane: string): string {
	const [, rank, what] = /^(?:(rank \d+), )?(.*)$/.exec(lane) ?? [];
	return `${what === "host" ? "the host" : what}${rank ? ` of ${rank}` : ""}`;
}

function Sentences({ phases, overview, lanes }: { phases: Phase[]; overview: Overview; lanes: string[] }) {
	const app = useApp();
	const main = overview.windows.find((window) => window.main), phase = phases.find((one) => one.window === main?.name) ?? phases[0];
	const startup = overview.windows.find((window) => window.name === "startup"), whole = overview.run.wall_ns ?? 0;
	const longest = startup?.parts?.reduce((most, part) => (part.ns > most.ns ? part : most), startup.parts[0] as { name: string; ns: number });
	if (!phase) return null;
	return <ul class="findings">
		<li>The run took <strong>{amount(whole, "ns")}</strong>.{startup && whole > 0 && <> Start-up is {percent(startup.wall_ns / whole)} of it{longest && <>, {longest.ns > startup.wall_ns / 2 ? "most of it" : "the longest known part"}: {longest.name} ({amount(longest.ns, "ns")})</>}.</>}
			{main && whole > 0 && <> The main loop is {percent(main.wall_ns / whole)} of it.</>}{!overview.windows.length && " It is not divided into phases."}</li>
		{main?.iteration?.mean_ns && <li>The main loop has {amount(main.iterations, null)} iterations of <strong>{amount(main.iteration.mean_ns, "ns")}</strong> (mean; standard deviation {amount(main.iteration.std_ns, "ns")}).
			{" "}<a href={app.link("iterations")}>Show the iterations</a></li>}
		{lanes.slice(0, 4).map((lane) => { const words = mostOf(phase, lane); return words && <li key={lane}>{main ? `In the main loop, ${who(lane)}` : who(lane).replace("the", "The")} {words}.</li>; })}
		{overview.devices.length === 0 && <li>The program did not use a GPU.</li>}
	</ul>;
}

/** Where a click on a part leads. */
function linkOf(app: App, phase: Phase, share: Share): string {
	if (share.lane.includes("GPU")) return share.part === "computes" || share.part === "busy" ? app.link("kernels", { window: phase.window }) : app.link("timeline");
	return app.link("flame", { window: phase.window, ...(app.about.metrics.some((metric) => metric.name === "op.time") ? { metric: "op.time" } : {}) });
}

function Shown({ phases, overview, query }: { phases: Phase[]; overview: Overview; query: Query }) {
	const app = useApp();
	const lanes = lanesOf(phases), shown = lanes.slice(0, LANES_MOST), whole = phases.reduce((sum, phase) => sum + phase.wall, 0);
	if (whole <= 0) return <p>How long the run took is unknown.</p>;
	const columns = phases.map((phase) => `minmax(2px, ${(phase.wall / whole).toFixed(6)}fr)`).join(" ");
	return <>
		<Sentences phases={phases} overview={overview} lanes={shown} />
		<figure class="phases">
			<figcaption>The phases of the run, as wide as the time they took. In each phase the parts of a line stand by kind, not in the order of time. A GPU is idle if the host gives it no work.</figcaption>
			<div class="lanes" style={{ gridTemplateColumns: `auto ${columns}` }} aria-hidden="true">
				<span />
				{phases.map((phase) => <a key={phase.window} tabIndex={-1} class="phase" href={app.link("flame", { window: phase.window })} title={`${phase.name}: ${amount(phase.wall, "ns")}`}>
					{phase.name} {amount(phase.wall, "ns")}</a>)}
				{shown.flatMap((lane) => [<span key={lane} class="lane">{lane}</span>, ...phases.map((phase) => <Lane key={`${lane} ${phase.window}`} phase={phase} lane={lane} whole={whole} app={app} />)])}
			</div>
			{lanes.length > shown.length && <p class="quiet">{amount(lanes.length - shown.length, null)} more lines are not drawn; the numbers below have all.</p>}
			<Legend phases={phases} app={app} />
		</figure>
		<Numbers phases={phases} lanes={lanes} query={query} app={app} />
	</>;
}

function colourOf(app: App, part: string): string {
	return (PARTS[app.look][COLOURS[part] ?? "startup"] as string);
}

/** A name in a part that is narrower than this part of the picture would not be read. */
const NAMED = 0.05;

function Lane({ phase, lane, whole, app }: { phase: Phase; lane: string; whole: number; app: App }) {
	const shares = phase.shares.filter((share) => share.lane === lane && share.ns > 0);
	return <div class="stack">
		{shares.map((share) => <a key={share.part} tabIndex={-1} href={linkOf(app, phase, share)} title={`${phase.name}, ${lane}: ${share.part} ${amount(share.ns, "ns")} (${percent(share.ns / phase.wall)})`}
			style={{ width: `${Math.min(100, (share.ns / phase.wall) * 100)}%`, background: colourOf(app, share.part), color: PALETTES[app.look].text }}>{share.ns / whole > NAMED ? share.part : ""}</a>)}
		{shares.length === 0 && <span class="quiet">{phase.wall / whole > NAMED ? "unknown" : ""}</span>}
	</div>;
}

function Legend({ phases, app }: { phases: Phase[]; app: App }) {
	const parts = [...new Set(phases.flatMap((phase) => phase.shares.filter((share) => share.ns > 0).map((share) => share.part)))].filter((part) => COLOURS[part]);
	const isHost = (part: string) => phases.some((phase) => phase.shares.some((share) => share.part === part && share.lane.includes("host")));
	return <ul class="legend" aria-hidden="true">{parts.map((part) => <li key={part}><span class="swatch" style={{ background: colourOf(app, part) }} />{isHost(part) ? "host" : "GPU"}: {part}</li>)}
		{phases.some((phase) => phase.shares.some((share) => share.ns > 0 && !COLOURS[share.part])) && <li><span class="swatch" style={{ background: PARTS[app.look]["startup"] }} />host: parts of start-up</li>}</ul>;
}

/** The same as numbers. */
function Numbers({ phases, lanes, query, app }: { phases: Phase[]; lanes: string[]; query: Query; app: App }) {
	const rows = lanes.flatMap((lane) => [...new Set(phases.flatMap((phase) => phase.shares.filter((share) => share.lane === lane && share.ns > 0).map((share) => share.part)))].map((part) => ({ lane, part })));
	const at = (phase: Phase, lane: string, part: string) => phase.shares.find((share) => share.lane === lane && share.part === part)?.ns ?? null;
	return (
		<details>
			<summary>The numbers</summary>
			<div class="wide" tabIndex={0} role="region" aria-label="Where the time went, as numbers">
				<table>
					<thead><tr><th scope="col">line</th><th scope="col">part</th>{phases.map((phase) => <th key={phase.window} scope="col"><a href={app.link("flame", { window: phase.window })}>{visible(phase.name)}</a> {amount(phase.wall, "ns")}</th>)}</tr></thead>
					<tbody>{rows.map(({ lane, part }) => <tr key={`${lane} ${part}`}><th scope="row">{lane}</th><td class="why">{part}</td>
						{phases.map((phase) => { const ns = at(phase, lane, part); return <td key={phase.window}>{ns === null ? "" : `${amount(ns, "ns")} (${percent(ns / phase.wall)})`}</td>; })}</tr>)}</tbody>
				</table>
			</div>
			<CsvButton name="shares" answer="shares" query={query} rows={() => [["phase", "line", "part", "ns"], ...phases.flatMap((phase) => phase.shares.map((share) => [phase.name, share.lane, share.part, share.ns]))]} />
		</details>
	);
}
