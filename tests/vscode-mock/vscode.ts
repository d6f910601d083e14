// SPDX-License-Identifier: Apache-2.0
// A stand-in for the parts of VS Code's module that the extension uses. It notes what the extension does in `did`.

export class Disposable {
	constructor(private readonly act: () => void = () => {}) {}
	dispose(): void { this.act(); }
}

export class EventEmitter<T> {
	private readonly listeners = new Set<(value: T) => unknown>();
	readonly event = (listener: (value: T) => unknown) => {
		this.listeners.add(listener);
		return new Disposable(() => this.listeners.delete(listener));
	};
	fire(value: T): void { for (const listener of [...this.listeners]) listener(value); }
	dispose(): void { this.listeners.clear(); }
}

export class Uri {
	private constructor(readonly scheme: string, readonly fsPath: string) {}
	static file(path: string): Uri { return new Uri("file", path); }
	static joinPath(uri: Uri, ...parts: string[]): Uri { return new Uri(uri.scheme, [uri.fsPath, ...parts].join("/")); }
	toString(): string { return `${this.scheme}://${this.fsPath}`; }
}

export class Range {
	constructor(readonly startLine: number, readonly startColumn: number, readonly endLine: number, readonly endColumn: number) {}
}
export class CodeLens {
	constructor(readonly range: Range, readonly command?: { title: string; command: string; arguments?: unknown[] }) {}
}
export class ThemeColor {
	constructor(readonly id: string) {}
}
export class MarkdownString {
	value = "";
	appendText(text: string): this {
		this.value += text;
		return this;
	}
}
export const OverviewRulerLane = { Right: 4 };
export const ViewColumn = { Beside: -2 };
export const FileType = { File: 1 };
export const ConfigurationTarget = { Global: 1 };

export interface Document {
	uri: Uri;
	isDirty: boolean;
	lineCount: number;
	languageId: string;
	getText(): string;
}

export function documentOf(path: string, text: string): Document {
	return { uri: Uri.file(path), isDirty: false, lineCount: text.split("\n").length, languageId: path.endsWith(".py") ? "python" : "cpp", getText: () => text };
}

export class TextEditor {
	readonly shown = new Map<unknown, unknown[]>();
	constructor(readonly document: Document) {}
	setDecorations(type: unknown, options: unknown[]): void { this.shown.set(type, options); }
	/** All decorations, the palest first. */
	get decorations(): { range: Range; renderOptions: { after: { contentText: string } }; hoverMessage: MarkdownString }[] {
		return [...this.shown.values()].flat() as never;
	}
}

const visible = new EventEmitter<TextEditor[]>(), edited = new EventEmitter<unknown>(), configured = new EventEmitter<unknown>();

/** What the extension did, and what the user answers. */
export const did = {
	commands: new Map<string, (...words: unknown[]) => unknown>(),
	editor: null as null | { openCustomDocument(uri: Uri): unknown; resolveCustomEditor(document: unknown, panel: unknown): Promise<void> },
	lenses: null as null | { provideCodeLenses(document: Document): CodeLens[] },
	context: {} as Record<string, unknown>,
	asked: [] as string[],
	answer: undefined as string | undefined,
	errors: [] as string[],
	opened: [] as { path: string; line: number }[],
	saved: {} as Record<string, string>,
	settings: {} as Record<string, unknown>,
	files: [] as string[],
	folders: [] as string[],
	editAt(document: Document): void { edited.fire({ document, contentChanges: [{}] }); },
	set(key: string, value: unknown): void {
		did.settings[key] = value;
		configured.fire({ affectsConfiguration: (name: string) => name === "plumb" });
	},
};

export const window = {
	visibleTextEditors: [] as TextEditor[],
	createTextEditorDecorationType: () => new Disposable(),
	onDidChangeVisibleTextEditors: visible.event,
	registerCustomEditorProvider: (_: string, provider: typeof did.editor) => {
		did.editor = provider;
		return new Disposable();
	},
	showWarningMessage: async (text: string) => {
		did.asked.push(text);
		return did.answer;
	},
	showInformationMessage: async (text: string) => void did.asked.push(text),
	showErrorMessage: async (text: string) => void did.errors.push(text),
	showQuickPick: async (items: { label: string }[]) => items.find((item) => item.label === did.answer),
	showSaveDialog: async (options: { defaultUri?: Uri }) => options.defaultUri,
	showTextDocument: async (document: Document, options: { selection: Range }) => {
		did.opened.push({ path: document.uri.fsPath, line: options.selection.startLine + 1 });
	},
};

export const languages = {
	registerCodeLensProvider: (_: unknown, provider: typeof did.lenses) => {
		did.lenses = provider;
		return new Disposable();
	},
};

export const workspace = {
	isTrusted: true,
	textDocuments: [] as Document[],
	get workspaceFolders() { return did.folders.map((folder) => ({ uri: Uri.file(folder) })); },
	getConfiguration: () => ({
		get: (key: string, usual: unknown) => did.settings[key] ?? usual,
		update: async (key: string, value: unknown) => did.set(key, value),
	}),
	onDidChangeTextDocument: edited.event,
	onDidChangeConfiguration: configured.event,
	openTextDocument: async (uri: Uri) => documentOf(uri.fsPath, ""),
	findFiles: async (pattern: string) => did.files.filter((file) => file.endsWith(pattern.slice(2))).map((file) => Uri.file(file)),
	fs: {
		stat: async (uri: Uri) => {
			if (!did.files.includes(uri.fsPath)) throw new Error("no such file");
			return { type: FileType.File };
		},
		writeFile: async (uri: Uri, bytes: Uint8Array) => { did.saved[uri.fsPath] = new TextDecoder().decode(bytes); },
	},
};

export const commands = {
	registerCommand: (name: string, act: (...words: unknown[]) => unknown) => {
		did.commands.set(name, act);
		return new Disposable();
	},
	executeCommand: async (name: string, key: string, value: unknown) => { if (name === "setContext") did.context[key] = value; },
};

/** A panel with a page that the test plays. */
export function panelOf() {
	const messages = new EventEmitter<unknown>(), ended = new EventEmitter<void>(), changed = new EventEmitter<void>();
	const posted: Record<string, unknown>[] = [];
	return {
		active: true,
		revealed: 0,
		posted,
		reveal() { this.revealed++; },
		onDidDispose: ended.event,
		onDidChangeViewState: changed.event,
		close: () => ended.fire(),
		say: (message: unknown) => messages.fire(message),
		webview: {
			html: "", options: {}, cspSource: "https://file.test",
			asWebviewUri: (uri: Uri) => uri,
			onDidReceiveMessage: messages.event,
			postMessage: async (message: Record<string, unknown>) => { posted.push(message); return true; },
		},
	};
}
