// SPDX-License-Identifier: Apache-2.0
// Values on source lines: a background by share and the value after the line, and a lens above each function. They are of the profile
// that was shown last, and go from a file when you change it, because its lines are then others.
import * as vscode from "vscode";
import { placeFunctions, placeKernels } from "./functions";
import { greater, LEVELS, LineIndex, levelOf, type LineValue } from "./lines";
import { amount, percent, visible } from "./words";

export interface Values {
	metric: string;
	words: string;
	unit: string;
	/** Part of the run. */
	window: string;
	lines: LineIndex;
	functions: LineIndex;
	/** By plain name. */
	kernels: Map<string, LineValue>;
}

export class Heat implements vscode.CodeLensProvider, vscode.Disposable {
	private values: Values | null = null;
	private readonly changed = new Set<string>();
	private readonly parts: vscode.Disposable[] = [];
	private readonly levels: vscode.TextEditorDecorationType[];
	private readonly lenses = new vscode.EventEmitter<void>();
	readonly onDidChangeCodeLenses = this.lenses.event;

	constructor() {
		this.levels = Array.from({ length: LEVELS }, (_, level) => vscode.window.createTextEditorDecorationType({
			isWholeLine: true, backgroundColor: `rgba(230, 110, 20, ${(0.05 + (0.35 * level) / (LEVELS - 1)).toFixed(2)})`,
			overviewRulerColor: level >= LEVELS / 2 ? "rgba(230, 110, 20, 0.8)" : undefined,
			overviewRulerLane: vscode.OverviewRulerLane.Right,
			after: { margin: "0 0 0 2em", color: new vscode.ThemeColor("editorCodeLens.foreground") },
		}));
		this.parts.push(...this.levels, this.lenses,
			vscode.languages.registerCodeLensProvider({ scheme: "file" }, this),
			vscode.window.onDidChangeVisibleTextEditors(() => this.draw()),
			vscode.workspace.onDidChangeTextDocument((event) => this.edited(event)),
			vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("plumb") && this.redraw()));
	}

	/** Shows VALUES; null: nothing. */
	show(values: Values | null): void {
		this.values = values;
		this.changed.clear();
		for (const document of vscode.workspace.textDocuments) if (document.isDirty) this.changed.add(document.uri.toString());
		this.redraw();
	}

	provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
		const values = this.usable(document);
		if (!values) return [];
		const functions = this.beginnings(document, values);
		return functions.map((one) => {
			const line = one.line - 1;
			return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), {
				title: `${values.metric}: ${amount(one.value, values.unit)}, ${percent(one.share)} of the ${partWords(values.window)}`,
				tooltip: "Show in Flame Graph", command: "plumb.showInFlame", arguments: [one.name],
			});
		});
	}

	dispose(): void {
		for (const part of this.parts) part.dispose();
	}

	private redraw(): void {
		this.draw();
		this.lenses.fire();
	}

	private edited(event: vscode.TextDocumentChangeEvent): void {
		const key = event.document.uri.toString();
		if (!event.contentChanges.length || !this.values || this.changed.has(key)) return;
		this.changed.add(key);
		this.redraw();
	}

	/** The values, if the lines of DOCUMENT are still those of the profile. */
	private usable(document: vscode.TextDocument): Values | null {
		const isShown = vscode.workspace.getConfiguration("plumb").get("showLines", true);
		return isShown && document.uri.scheme === "file" && !this.changed.has(document.uri.toString()) ? this.values : null;
	}

	/** What begins in DOCUMENT: functions and kernels, one at a line. */
	private beginnings(document: vscode.TextDocument, values: Values): LineValue[] {
		const text = document.getText(), path = document.uri.fsPath;
		const lines = values.lines.of(path), isPython = document.languageId === "python" || path.endsWith(".py");
		const functions = placeFunctions(values.functions.of(path), lines, text.split(/\r?\n/), isPython);
		const found = new Map(functions.map((one) => [one.line, one]));
		for (const one of placeKernels(values.kernels, text)) found.set(one.line, greater(found.get(one.line), one));
		return this.large([...found.values()]);
	}

	private large(values: LineValue[]): LineValue[] {
		const least = vscode.workspace.getConfiguration("plumb").get("leastShare", 0.1) / 100;
		return values.filter((one) => levelOf(one.share, least) !== null);
	}

	private draw(): void {
		for (const editor of vscode.window.visibleTextEditors) {
			const values = this.usable(editor.document);
			const options: vscode.DecorationOptions[][] = this.levels.map(() => []);
			for (const one of values ? this.large(values.lines.of(editor.document.uri.fsPath)) : []) {
				if (one.line > editor.document.lineCount) continue;
				options[levelOf(one.share, 0) ?? 0]?.push(this.option(one, values as Values));
			}
			this.levels.forEach((level, index) => editor.setDecorations(level, options[index] ?? []));
		}
	}

	private option(one: LineValue, values: Values): vscode.DecorationOptions {
		const text = `${amount(one.value, values.unit)}  ${percent(one.share)}`;
		const hover = `plumb: ${values.metric} (${values.words}) of this line, with all that it calls: ${amount(one.value, values.unit)}, ` +
			`${percent(one.share)} of the ${partWords(values.window)}`;
		return {
			range: new vscode.Range(one.line - 1, 0, one.line - 1, 0),
			// Markdown of a profile would be somebody else's: text only.
			hoverMessage: (one.causes ?? []).reduce((text, cause) => text.appendText("\n").appendText(visible(cause)), new vscode.MarkdownString().appendText(visible(hover))),
			renderOptions: { after: { contentText: text } },
		};
	}
}

function partWords(window: string): string {
	if (window === "all") return "whole run";
	return window === "loop" ? "main loop" : window === "startup" ? "start-up" : visible(window);
}
