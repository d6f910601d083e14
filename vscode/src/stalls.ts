// SPDX-License-Identifier: Apache-2.0
// Samples of GPU code on source lines: all classes of waiting together as one metric, and what causes the waiting of a line. Nothing here
// knows the editor.
import type { LineValue, Report } from "./lines";
import { percent } from "./words";

/** All metrics stall.… together. */
export const WAITING = { name: "stall", unit: "sample", words: "samples in which a warp waits and no other one issues" };
export const isStall = (metric: string) => metric === WAITING.name || metric.startsWith(`${WAITING.name}.`);

type Values = Report["rows"][number]["inclusive"];

function sumOf(values: Values): { sum: number | null } | undefined {
	const found = Object.entries(values).filter(([name]) => name.startsWith(`${WAITING.name}.`)).map(([, value]) => value?.sum ?? null).filter((one) => one !== null);
	return found.length ? { sum: found.reduce((sum, one) => sum + one, 0) } : undefined;
}

/** The samples of all kernels of a report by kernel. Kernels do not contain each other. */
export function waitingOf(kernels: Report): number | null {
	const found = kernels.rows.map((row) => sumOf(row.inclusive)?.sum ?? null).filter((one) => one !== null);
	return found.length ? found.reduce((sum, one) => sum + one, 0) : null;
}

/** REPORT with all classes of waiting as its metric; TOTAL is that of the part of the run. */
export function together(report: Report, total: number | null): Report {
	const added = (values: Values): Values => ({ ...values, [WAITING.name]: sumOf(values) });
	return { metric: WAITING.name, unit: WAITING.unit, total: { sum: total },
		rows: report.rows.map((row) => ({ ...row, inclusive: added(row.inclusive), exclusive: added(row.exclusive) })) };
}

interface Place {
	file: string | null;
	line: number | null;
	offset: number | null;
	inlined?: { file: string | null; line: number | null }[];
}

/** The answer `why`, as far as it is used. */
export interface Why {
	kernels: { stalls: (Place & { samples: number; causes: (Place & { name: string | null; kind: string; samples: number; evidence: string | null })[] })[] }[];
}

const CAUSES_MOST = 3;

const keyOf = (file: string, line: number) => `${file}\0${line}`;
const nameOf = (path: string) => path.replaceAll("\\", "/").split("/").at(-1) ?? path;

/** What the stalls of each line, and of those inlined there, wait for: the greatest parts, as sentences. */
export function causesOf(answers: Why[]): Map<string, string[]> {
	const lines = new Map<string, Map<string, number>>();
	for (const stall of answers.flatMap((one) => one.kernels).flatMap((one) => one.stalls)) {
		for (const { file, line } of [stall, ...(stall.inlined ?? [])]) {
			if (!file || !line) continue;
			const sums = lines.get(keyOf(file, line)) ?? new Map<string, number>();
			lines.set(keyOf(file, line), sums);
			for (const cause of stall.causes) {
				const place = cause.file && cause.line ? ` at ${nameOf(cause.file)}:${cause.line}` : "";
				const words = `${cause.name ?? cause.kind}${place}${cause.evidence ? `: ${cause.evidence}` : ""}`;
				sums.set(words, (sums.get(words) ?? 0) + cause.samples);
			}
		}
	}
	return new Map([...lines].map(([key, sums]) => {
		const all = [...sums.values()].reduce((sum, one) => sum + one, 0);
		const greatest = [...sums].filter(([, samples]) => samples > 0).sort((a, b) => b[1] - a[1]).slice(0, CAUSES_MOST);
		return [key, greatest.map(([words, samples]) => `${percent(samples / all)} of the waiting: ${words}`)];
	}));
}

/** LINES with what they wait for. */
export function explained(lines: LineValue[], causes: Map<string, string[]>): LineValue[] {
	return lines.map((one) => {
		const found = causes.get(keyOf(one.file, one.line));
		return found?.length ? { ...one, causes: found } : one;
	});
}
