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

export class Profile implements vscode.Disposable {
	private about: About | null = null;
	private metric: string | null = null;
	private window: string | null = null;
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
		const metric = this.about.metrics.find((one) => one.name === this.metric) ?? this.about.metrics.find((one) => one.is_default);
		if (!metric) return;
		const window = this.window ?? this.about.windows.find((one) => one.main)?.name ?? "all";
		const query = `metric=${encodeURIComponent(metric.name)}&window=${encodeURIComponent(window)}&format=json&top=0`;
		const rows = (by: string) => this.plumb.json<Report>(`report?by=${by}&${query}`);
		const [lines, python, native, kernels] = [await rows("line"), await rows("python"), await rows("native"), await rows("kernel")];
		if (number !== this.asked) return;
		this.show({ metric: metric.name, words: metric.words, unit: metric.unit, window, lines: new LineIndex(linesOf(lines)),
			functions: new LineIndex([...linesOf(python, false), ...linesOf(native, false)]), kernels: kernelsOf(kernels) });
	}

	/** The page shows another metric or another part of the run: so do the lines. */
	private async follow(fragment: string): Promise<void> {
		const metric = stateValue(fragment, "metric"), window = stateValue(fragment, "window");
		if (metric === this.metric && window === this.window) return;
		[this.metric, this.window] = [metric, window];
		await this.refresh().catch(report);
	}

	async chooseMetric(): Promise<void> {
		this.about ??= await this.plumb.json<About>("about");
		const chosen = await vscode.window.showQuickPick(this.about.metrics.filter((one) => one.adds_up).map((one) => ({
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
