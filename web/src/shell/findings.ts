// SPDX-License-Identifier: Apache-2.0
// Where a finding leads, for every page that lists findings: to the box of the flame graph that it is about.
import type { Finding } from "../protocol/types";
import type { App } from "../state/app";

/** The place of a finding as a link and its words; null: it has none. FILE is its file if that is not the one of the page. */
export function placeOf(finding: Finding, app: App, file: string | null = null): [string, string] | null {
	const window: Record<string, string> = { window: finding.window ?? "all", ...(file === null ? {} : { file }) };
	const names = finding.evidence["names"];
	const kernel = finding.evidence["kernel"] ?? finding.frame?.name;
	if (finding.rule === "stalls" && typeof kernel === "string" && app.about.has["code_samples"]) return [app.link("why", { ...(file === null ? {} : { file }), kernel }), "Show why it waits"];
	if (finding.rule === "traffic" && app.about.has["traffic"]) return [app.link("traffic", { ...(file === null ? {} : { file }), finding: finding.id }), "Show the traffic"];
	if (finding.context?.length) return [app.link("flame", { ...window, finding: finding.id }), "Show it in the flame graph"];
	if (Array.isArray(names) && names[0] && typeof (names[0] as { name?: unknown }).name === "string") {
		return [app.link("kernels", { ...window, filter: (names[0] as { name: string }).name }), "Show the kernels"];
	}
	if (finding.rule === "iterations" || finding.id.includes("iteration")) return [app.link("iterations"), "Show the iterations"];
	return null;
}
