// SPDX-License-Identifier: Apache-2.0
// One open profile: its page, its plumb, and the values of source lines.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { candidates } from "./address";
import { kernelsOf } from "./functions";
import { LineIndex, linesOf, type Report } from "./lines";
import { Link } from "./link";
import { flameOf, literally, stateValue, type ToPage } from "./messages";
import { openPlace } from "./open";
import { pageHtml } from "./page";
import { Plumb } from "./plumb";
import { causesOf, explained, isStall, together, WAITING, waitingOf, type Why } from "./stalls";
import type { Values } from "./heat";

export interface Metric {
	name: string;
	unit: string;
	words: string;
	adds_up: boolean;
	is_default: boolean;
}

interface About {
	metrics: Metric[];
	windows: { name: string; main: boolean }[];
}

const KERNELS_MOST = 8, STALLS_MOST = 200;

export class Profile implements vscode.Disposable {
	private about: About | null = null;
	private metric: string | null = null;
	private window: string | null = null;
	/** What the page said last. */
	private said: { metric: string | null; window: string | null } = { metric: null, window: null };
	private asked = 0;
	/** To show when the page is there again. */
	private place: ToPage | null = null;

	private constructor(private readonly panel: vscode.WebviewPanel, private readonly plumb: Plumb, private readonly show: (values: Values) => void) {}

	static async open(file: string, panel: vscode.WebviewPanel, media: vscode.Uri, show: (values: Values) => void): Promise<Profile> {
		const settings = vscode.workspace.getConfiguration("plumb");
		const folders = vscode.workspace.isTrusted ? (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath) : [];
		const plumb = await Plumb.open(candidates(settings.get("path", "").trim(), folders, process.env), file);
		const profile = new Profile(panel, plumb, show);
		profile.openPage(media);
		plumb.onEnd = (said) => void vscode.window.showWarningMessage(`plumb has ended. Open the profile again. ${said.trim().split("\n").at(-1) ?? ""}`);
		return profile;
	}

	private openPage(media: vscode.Uri): void {
		const { webview } = this.panel;
		const post = (message: ToPage) => void webview.postMessage(message);
		const link = new Link(this.plumb, {
			post,
			open: (file, line) => void openPlace(file, line),
			save: (name, text) => void save(name, text),
			state: (fragment) => void this.follow(fragment),
		});
		webview.onDidReceiveMessage((message: unknown) => {
			// A page that was hidden begins again, and misses what was said before.
			if (this.place && (message as { answer?: unknown } | null)?.answer === "about") post(this.place);
			this.place = null;
			return link.take(message);
		});
		webview.options = { enableScripts: true, localResourceRoots: [media] };
		const uri = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(media, name)).toString();
		webview.html = pageHtml(randomBytes(18).toString("base64url"), webview.cspSource, uri("app.js"), uri("app.css"));
	}

	/** Gets the values of source lines, and shows them unless others were asked for meanwhile. */
	async refresh(): Promise<void> {
		const number = ++this.asked;
		this.about ??= await this.plumb.json<About>("about");
		const { metrics } = this.about, stall = metrics.find((one) => isStall(one.name)), isAll = this.metric === WAITING.name;
		const metric = (isAll ? stall : metrics.find((one) => one.name === this.metric)) ?? metrics.find((one) => one.is_default);
		if (!metric) return;
		const window = this.window ?? this.about.windows.find((one) => one.main)?.name ?? "all";
		const query = `metric=${encodeURIComponent(metric.name)}&window=${encodeURIComponent(window)}&format=json&top=0`;
		const rows = (by: string) => this.plumb.json<Report>(`report?by=${by}&${query}`);
		const found = [await rows("line"), await rows("python"), await rows("native"), await rows("kernel")] as [Report, Report, Report, Report];
		const total = isAll && stall ? waitingOf(found[3]) : null;
		const [lines, python, native, kernels] = isAll && stall ? found.map((one) => together(one, total)) as typeof found : found;
		const causes = isStall(metric.name) ? causesOf(await this.whys()) : new Map<string, string[]>();
		if (number !== this.asked) return;
		const { name, words, unit } = isAll && stall ? WAITING : metric;
		this.show({ metric: name, words, unit, window, lines: new LineIndex(explained(linesOf(lines), causes)),
			functions: new LineIndex([...linesOf(python, false), ...linesOf(native, false)]), kernels: kernelsOf(kernels) });
	}

	/** Why the greatest kernels with samples wait. */
	private async whys(): Promise<Why[]> {
		const { columns, rows } = await this.plumb.json<{ columns: { name: string }[]; rows: unknown[][] }>("why/kernels?format=json");
		const at = (name: string) => columns.findIndex((one) => one.name === name);
		const sampled = rows.filter((row) => Number(row[at("samples")]) > 0).slice(0, KERNELS_MOST);
		const whys: Why[] = [];
		for (const row of sampled) whys.push(await this.plumb.json<Why>(`why?kernel=${Number(row[at("kernel")])}&top=${STALLS_MOST}`));
		return whys;
	}

	/** The page shows another metric or another part of the run: so do the lines. */
	private async follow(fragment: string): Promise<void> {
		const metric = stateValue(fragment, "metric"), window = stateValue(fragment, "window");
		// Another metric may have been chosen in the editor meanwhile: it stays until the page changes its own.
		if (metric === this.said.metric && window === this.said.window) return;
		this.said = { metric, window };
		if (metric === this.metric && window === this.window) return;
		[this.metric, this.window] = [metric, window];
		await this.refresh().catch(report);
	}

	async chooseMetric(): Promise<void> {
		this.about ??= await this.plumb.json<About>("about");
		const metrics = this.about.metrics.filter((one) => one.adds_up), first = metrics.findIndex((one) => isStall(one.name));
		if (first >= 0) metrics.splice(first, 0, { ...WAITING, adds_up: true, is_default: false });
		const chosen = await vscode.window.showQuickPick(metrics.map((one) => ({
			label: one.name, description: one.words, picked: one.name === this.metric,
		})), { title: "Metric of source lines", matchOnDescription: true });
		if (!chosen) return;
		this.metric = chosen.label;
		await this.refresh();
	}

	/** Shows the boxes with NAME in the flame graph. */
	async showInFlame(name: string): Promise<void> {
		const message: ToPage = { type: "show", fragment: flameOf(literally(name), this.metric, this.window) };
		const isHidden = this.panel.visible === false;
		if (isHidden) this.place = message;
		this.panel.reveal(undefined, false);
		if (!isHidden) await this.panel.webview.postMessage(message);
	}

	dispose(): void {
		this.plumb.close();
	}
}

async function save(name: string, text: string): Promise<void> {
	const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
	const uri = await vscode.window.showSaveDialog({ filters: { "comma-separated values": ["csv"] },
		...(folder ? { defaultUri: vscode.Uri.joinPath(folder, name) } : {}) });
	if (uri) await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
}

export function report(error: unknown): void {
	void vscode.window.showErrorMessage(`plumb: ${error instanceof Error ? error.message : String(error)}`);
}
