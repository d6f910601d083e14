// SPDX-License-Identifier: Apache-2.0
// The page Overview: what ran, where the time went, what plumb found, what it lost and what it cost.
import { amount, fileName, percent, visible } from "../draw/words";
import { canonical } from "../protocol/query";
import type { Finding, LedgerRow, Overview } from "../protocol/types";
import { common, useAnswer, useApp, type App } from "../state/app";
import { placeOf } from "../shell/findings";
import { CsvButton, Waiting } from "../shell/parts";
import { register } from "../shell/registry";
import { WhereTheTimeWent } from "./overview_picture";

function OverviewPage() {
	const app = useApp();
	const query = common(app);
	const loaded = useAnswer<Overview>(canonical("overview", query), (signal) => app.source.json<Overview>("overview", query, signal));
	return <Waiting loaded={loaded}>{(overview) => <Shown overview={overview} app={app} />}</Waiting>;
}

function Shown({ overview, app }: { overview: Overview; app: App }) {
	return (
		<div class="page overview">
			<WhatRan overview={overview} />
			<section aria-labelledby="time">
				<h2 id="time">Where the time went</h2>
				<WhereTheTimeWent overview={overview} />
			</section>
			<section aria-labelledby="found">
				<div class="row"><h2 id="found">Findings</h2>
					<CsvButton name="findings" answer="findings" query={common(app)} rows={() => [["severity", "title", "advice", "saving_ns"],
						...overview.findings.map((one) => [one.severity, one.title, one.advice, one.saving_ns])]} /></div>
				{overview.findings.length === 0 && <p>plumb found nothing that is worth a change.</p>}
				<ol class="findings">{overview.findings.map((finding) => <Found key={finding.id} finding={finding} app={app} />)}</ol>
			</section>
			<section aria-labelledby="lost">
				<h2 id="lost">What was recorded and dropped</h2>
				<Ledger rows={overview.ledger} />
			</section>
			<section aria-labelledby="cost">
				<h2 id="cost">What recording costs</h2>
				<Cost overview={overview} />
			</section>
		</div>
	);
}

function WhatRan({ overview }: { overview: Overview }) {
	const { run, devices, processes } = overview;
	const text = (key: string) => (run.environment[key] ? visible(run.environment[key]) : null);
	const names = new Map<string, number>();
	for (const device of devices) names.set(device.name ?? "GPU of unknown name", (names.get(device.name ?? "GPU of unknown name") ?? 0) + 1);
	const facts: [string, string | null][] = [
		["command", run.command === null ? null : visible(run.command)],
		["wall time", amount(run.wall_ns, "ns")],
		["exit code", run.exit_code === null ? "unknown" : String(run.exit_code)],
		["started", text("run.started")],
		["machine", [text("host.name"), text("host.cpu"), text("host.cpus") && `${text("host.cpus")} processors`].filter(Boolean).join(", ") || null],
		["GPU", devices.length ? [...names].map(([name, count]) => `${count > 1 ? `${count} × ` : ""}${visible(name)}`).join(", ") : "not used"],
		["processes", processes.length > 1 ? String(processes.length) : null],
		["PyTorch", text("torch.version")],
	];
	return (
		<section aria-labelledby="ran">
			<h1 id="ran">{run.command ? visible(run.command.split(" ").map(fileName).join(" ")) : "Overview"}</h1>
			<dl class="facts">{facts.filter(([, value]) => value).map(([key, value]) => <div key={key}><dt>{key}</dt><dd>{value}</dd></div>)}</dl>
			<details><summary>Environment</summary>
				<dl class="facts">{Object.entries(run.environment).map(([key, value]) => <div key={key}><dt>{visible(key)}</dt><dd>{visible(value)}</dd></div>)}</dl>
			</details>
		</section>
	);
}

function Found({ finding, app }: { finding: Finding; app: App }) {
	const place = placeOf(finding, app);
	return (
		<li>
			<p><span class={`badge ${finding.severity}`}>{finding.severity}</span> <strong>{visible(finding.title)}</strong></p>
			{finding.advice && <p>{visible(finding.advice)}</p>}
			<p class="quiet">saving: {finding.saving_ns === null ? "unknown" : `at most ${amount(finding.saving_ns, "ns")}`}
				{finding.saving_per_iteration_ns ? `, ${amount(finding.saving_per_iteration_ns, "ns")} an iteration` : ""}
				{finding.confidence === null ? "" : `; confidence: ${percent(finding.confidence)}`}
				{place && <>; <a href={place[0]}>{place[1]}</a></>}</p>
		</li>
	);
}

function Ledger({ rows }: { rows: LedgerRow[] }) {
	const dropped = rows.filter((row) => (row.dropped ?? 0) > 0);
	return <>
		<p>{dropped.length === 0 ? "Nothing was dropped." : dropped.map((row) => `${amount(row.dropped, null)} ${visible(row.unit)} were dropped`).join("; ")}</p>
		<details>
			<summary>The whole ledger</summary>
			<div class="wide" tabIndex={0} role="region" aria-label="Ledger">
				<table>
					<thead><tr><th scope="col">what</th><th scope="col">received</th><th scope="col">attributed</th><th scope="col">dropped</th><th scope="col">why</th></tr></thead>
					<tbody>{rows.map((row, index) => (
						<tr key={index}><th scope="row">{visible(row.unit)}</th><td>{amount(row.received, null)}</td><td>{amount(row.attributed, null)}</td>
							<td>{amount(row.dropped, null)}</td>
							<td class="why">{[row.reason, ...row.fates.map((fate) => `${amount(fate.count, null)}: ${fate.reason}`)].filter(Boolean).map((one) => visible(one as string)).join("; ")}</td></tr>))}</tbody>
				</table>
			</div>
		</details>
	</>;
}

function Cost({ overview }: { overview: Overview }) {
	const { cost, overhead_ns } = overview.run;
	const ratio = cost?.ratio;
	return (
		<p>
			{ratio ? `The ${cost.kind === "estimate" ? "estimated" : "measured"} cost: with plumb it takes ${ratio.toFixed(3)} times as long${
				cost.low && cost.high ? ` (between ${cost.low.toFixed(3)} and ${cost.high.toFixed(3)})` : ""}.` : `The cost of recording is unknown${cost?.why ? `: ${cost.why}` : ""}.`}
			{" "}plumb's own time: {amount(overhead_ns, "ns")}.
		</p>
	);
}

register({ id: "overview", title: "Overview", key: "o", needs: {}, follows: [], make: OverviewPage });
