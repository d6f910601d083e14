// SPDX-License-Identifier: Apache-2.0
// The page inside an editor. The extension starts plumb and asks it; the page asks the extension, by messages. vscode/src/messages.ts
// has the other end.
import type { Reply } from "./source";

/** What VS Code gives to a page of an extension, once. */
export interface Port {
	postMessage(message: unknown): void;
	getState(): unknown;
	setState(state: unknown): void;
}

/** From the extension. */
export type ToPage =
	| { type: "answer"; id: number; status: number; body: ArrayBuffer }
	| { type: "show"; fragment: string };

/** From the page. */
export type ToEditor =
	| { type: "ask"; id: number; answer: string }
	| { type: "stop"; id: number }
	| { type: "open"; file: string; line: number | null }
	| { type: "save"; name: string; text: string }
	| { type: "state"; fragment: string };

interface Waiting {
	done(reply: Reply): void;
}

export class Editor {
	private readonly waiting = new Map<number, Waiting>();
	private next = 1;
	/** Until the page can show it, a place is kept. */
	private early: string | null = null;
	private show: (fragment: string) => void = (fragment) => { this.early = fragment; };

	constructor(private readonly port: Port) {}

	/** A message from the extension. Others are left alone. */
	take(message: ToPage | null | undefined): void {
		if (message?.type === "show") this.show(String(message.fragment));
		if (message?.type !== "answer") return;
		const found = this.waiting.get(message.id);
		this.waiting.delete(message.id);
		found?.done({ status: message.status, body: message.body });
	}

	ask(answer: string, signal?: AbortSignal): Promise<Reply> {
		const id = this.next++;
		return new Promise((done, failed) => {
			const stop = () => {
				if (this.waiting.delete(id)) this.post({ type: "stop", id });
				failed(new DOMException("cancelled", "AbortError"));
			};
			if (signal?.aborted) return stop();
			signal?.addEventListener("abort", stop, { once: true });
			this.waiting.set(id, { done: (reply) => { signal?.removeEventListener("abort", stop); done(reply); } });
			this.post({ type: "ask", id, answer });
		});
	}

	/** Opens a line of a source. */
	open(file: string, line: number | null): void {
		this.post({ type: "open", file, line });
	}

	save(name: string, text: string): void {
		this.post({ type: "save", name, text });
	}

	kept(): string {
		const state = this.port.getState() as { fragment?: unknown } | null | undefined;
		return typeof state?.fragment === "string" ? state.fragment : "";
	}

	keep(fragment: string): void {
		this.port.setState({ fragment });
		this.post({ type: "state", fragment });
	}

	onShow(show: (fragment: string) => void): void {
		this.show = show;
		if (this.early !== null) show(this.early);
		this.early = null;
	}

	private post(message: ToEditor): void {
		this.port.postMessage(message);
	}
}

/** The editor around this page; null: a browser. */
export function openEditor(): Editor | null {
	const acquire = (globalThis as { acquireVsCodeApi?: () => Port }).acquireVsCodeApi;
	if (!acquire) return null;
	const editor = new Editor(acquire());
	addEventListener("message", (event: MessageEvent<ToPage>) => editor.take(event.data));
	return editor;
}
