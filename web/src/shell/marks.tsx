// SPDX-License-Identifier: Apache-2.0
// Which rows, spans and states the findings are about, and the mark that leads from them to the finding.
import { useMemo } from "preact/hooks";
import { LAYERS } from "../draw/colours";
import { visible } from "../draw/words";
import { canonical, type Query } from "../protocol/query";
import type { Finding } from "../protocol/types";
import { useAnswer, useApp } from "../state/app";
import { placeOf } from "./findings";

/** What a page knows of a row. */
export interface Place {
	name?: string | null | undefined;
	file?: string | null | undefined;
	line?: number | null | undefined;
}

const NONE: readonly Finding[] = [];
const listOf = <T,>(value: unknown): T[] => (Array.isArray(value) ? (value as T[]) : []);
const GPU = ["kernel", "copy", "set"];

/** What the findings are about: the frame that each names, its line of your code, and the kernels that its evidence lists by name. */
export class Marks {
	private readonly places = new Map<string, Finding[]>();
	/** The file that they are of, as an address has it; null: the one that the page shows. */
	constructor(findings: readonly Finding[], readonly file: string | null = null) {
		for (const finding of findings) this.addFinding(finding);
	}

	private addFinding(finding: Finding): void {
		const { frame, evidence } = finding, { names, user_file, user_line } = evidence;
		if (frame) {
			const kind = GPU.includes(frame.kind) ? "kernel" : frame.kind, { name, file, line } = frame;
			this.add(`context ${frame.context}`, finding);
			this.add(`frame ${frame.id}`, finding);
			this.add(kind === "python" ? `python ${file} ${name}` : `${kind} ${name}`, finding);
			if (kind === "python" && file && line) this.add(`line ${file}:${line}`, finding);
			// It is about all calls of a kernel or operator, wherever they are.
			if (evidence["name"] === name) this.add(`all ${kind} ${name}`, finding);
		}
		if (user_file && user_line) this.add(`line ${user_file}:${user_line}`, finding);
		for (const one of listOf<{ name?: unknown }>(names)) if (typeof one?.name === "string") this.add(`kernel ${one.name}`, finding);
		// Others wait for the rank that is late most often.
		const late = listOf<{ rank: number; late_times: number }>(evidence["ranks"]).reduce((most, one) => (one.late_times > (most?.late_times ?? 0) ? one : most), null as { rank: number; late_times: number } | null);
		if (late && finding.rule === "ranks") this.add(`wait ${late.rank} ${evidence["operation"]}`, finding);
	}

	private add(key: string, finding: Finding): void {
		const there = this.places.get(key);
		if (!there) this.places.set(key, [finding]);
		else if (!there.includes(finding)) there.push(finding);
	}

	get isEmpty(): boolean {
		return this.places.size === 0;
	}

	/** Of a row by kernel, operator, module, line, python (a function) or native. */
	row(by: string, { name, file, line }: Place): readonly Finding[] {
		const key = by === "line" ? `line ${file}:${line}` : by === "python" ? `python ${file} ${name}` : `${by} ${name}`;
		return this.places.get(key) ?? NONE;
	}

	/** Of ranks that wait for a rank in an operation. */
	wait(rank: number | null, operation: string): readonly Finding[] {
		return this.places.get(`wait ${rank} ${operation}`) ?? NONE;
	}

	/** Of a layer of a model: a module, an operator or a range. */
	layer(name: string): readonly Finding[] {
		return ["module", "operator", "range"].map((kind) => this.row(kind, { name })).find((found) => found.length) ?? NONE;
	}

	/** Of a frame, by its number. */
	frame(id: number): readonly Finding[] {
		return this.places.get(`frame ${id}`) ?? NONE;
	}

	/** Of a span: of its own place among the calls, or of all calls of its name. */
	span(context: number, layer: number, name: string): readonly Finding[] {
		const kind = LAYERS[layer] === "gpu" ? "kernel" : LAYERS[layer], here = this.places.get(`context ${context}`), all = this.places.get(`all ${kind} ${name}`);
		return here && all ? [...new Set([...here, ...all])] : here ?? all ?? NONE;
	}
}

/** The findings of a part of a file; without WINDOW, of the main loop if there is one. A page does not wait for them. */
export function useMarks(file: Query["file"], window: string | null | undefined = "all"): Marks {
	const app = useApp(), asked: Query = { file };
	const loaded = useAnswer(canonical("findings", asked), (signal) => app.source.json<{ findings: Finding[] }>("findings", asked, signal));
	const findings = loaded.state === "ready" ? loaded.value.findings : NONE;
	const of = window ?? app.about.windows.find((one) => one.main)?.name ?? "all";
	return useMemo(() => new Marks(of === "all" ? findings : findings.filter((one) => one.window === null || one.window === of),
		file === undefined || file === null ? null : String(file)), [findings, of, file]);
}

const TITLES = 3;

/** "finding: …", for who reads, points or listens. */
export function findingWords(found: readonly Finding[]): string {
	if (found.length === 0) return "";
	const titles = found.slice(0, TITLES).map((one) => visible(one.title)).join("; ");
	return found.length === 1 ? `finding: ${titles}` : `${found.length} findings: ${titles}${found.length > TITLES ? `; and ${found.length - TITLES} more` : ""}`;
}

/** The mark of a row: a link to its first finding. Its shape is that of the boxes in the flame graph. */
export function FindingMark({ found, file = null }: { found: readonly Finding[]; file?: string | null }) {
	const app = useApp(), first = found[0];
	if (!first) return null;
	const words = findingWords(found);
	return <a class="found" href={placeOf(first, app, file)?.[0] ?? app.link("overview")} title={words} aria-label={words}>
		<svg width="9" height="9" aria-hidden="true"><path d="M0 0H9V9z" /></svg></a>;
}

/** The findings of what is selected, each with its link. */
export function FindingList({ found }: { found: readonly Finding[] }) {
	const app = useApp();
	if (found.length === 0) return null;
	return (
		<ul class="findings" aria-label="Findings">
			{found.map((one) => {
				const place = placeOf(one, app);
				return <li key={`${one.id} ${one.window}`}><span class={`badge ${one.severity}`}>{one.severity}</span> {visible(one.title)}{place && <>{" "}<a href={place[0]}>{place[1]}</a></>}</li>;
			})}
		</ul>
	);
}
