// SPDX-License-Identifier: Apache-2.0
// The extension: a read-only editor for *.plumb, values on source lines, and commands.
import * as vscode from "vscode";
import { Heat, type Values } from "./heat";
import { Profile, report } from "./profile";

class Document implements vscode.CustomDocument {
	constructor(readonly uri: vscode.Uri) {}
	dispose(): void {}
}

class Editor implements vscode.CustomReadonlyEditorProvider<Document> {
	private readonly open: Profile[] = [];

	constructor(private readonly media: vscode.Uri, private readonly heat: Heat) {}

	/** The profile that was shown last. */
	get current(): Profile | undefined {
		return this.open.at(-1);
	}

	openCustomDocument(uri: vscode.Uri): Document {
		return new Document(uri);
	}

	async resolveCustomEditor(document: Document, panel: vscode.WebviewPanel): Promise<void> {
		let isClosed = false;
		panel.onDidDispose(() => { isClosed = true; });
		if (document.uri.scheme !== "file") throw new Error("plumb reads profiles from the file system; save it to a file first");
		const mine: { values?: Values } = {};
		const profile: Profile = await Profile.open(document.uri.fsPath, panel, this.media, (values) => {
			mine.values = values;
			if (this.current === profile) this.heat.show(values);
		});
		if (isClosed) return profile.dispose();
		const toTop = () => {
			const at = this.open.indexOf(profile);
			if (at >= 0) this.open.splice(at, 1);
			this.open.push(profile);
			if (mine.values) this.heat.show(mine.values);
		};
		toTop();
		void vscode.commands.executeCommand("setContext", "plumb.isOpen", true);
		panel.onDidChangeViewState(() => panel.active && this.current !== profile && toTop());
		panel.onDidDispose(() => this.close(profile));
		profile.refresh().catch(report);
	}

	private close(profile: Profile): void {
		const wasCurrent = this.current === profile;
		this.open.splice(this.open.indexOf(profile), 1);
		profile.dispose();
		if (!wasCurrent) return;
		this.heat.show(null);
		this.current?.refresh().catch(report);
		void vscode.commands.executeCommand("setContext", "plumb.isOpen", this.open.length > 0);
	}

	dispose(): void {
		for (const profile of this.open) profile.dispose();
	}
}

export function activate(context: vscode.ExtensionContext): void {
	const heat = new Heat();
	const editor = new Editor(vscode.Uri.joinPath(context.extensionUri, "media"), heat);
	const current = (act: (profile: Profile) => Promise<void>) => {
		if (editor.current) return act(editor.current).catch(report);
		void vscode.window.showInformationMessage("Open a profile (*.plumb) first");
		return undefined;
	};
	context.subscriptions.push(heat, editor,
		vscode.window.registerCustomEditorProvider("plumb.profile", editor, { supportsMultipleEditorsPerDocument: false }),
		vscode.commands.registerCommand("plumb.chooseMetric", () => current((profile) => profile.chooseMetric())),
		vscode.commands.registerCommand("plumb.showInFlame", (name: unknown) => typeof name === "string" ? current((profile) => profile.showInFlame(name)) : undefined),
		vscode.commands.registerCommand("plumb.toggleLines", () => {
			const settings = vscode.workspace.getConfiguration("plumb");
			return settings.update("showLines", !settings.get("showLines", true), vscode.ConfigurationTarget.Global);
		}));
}
