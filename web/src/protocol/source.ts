// SPDX-License-Identifier: Apache-2.0
// Where answers come from: the server that sent the page, the editor around the page, or the page itself.
import { decompress } from "fzstd";
import { readTables, type Table } from "./columns";
import { baseOf, deriveFlame } from "./derived";
import type { Editor } from "./editor";
import { canonical, type Query } from "./query";

/** Why there is no answer, and the command that brings one. */
export class NoAnswer extends Error {
	constructor(message: string, readonly remedy: string | null, readonly status: number) {
		super(message);
	}
}

/** What a server says; 0 as the status: it does not answer. */
export interface Reply {
	status: number;
	body: ArrayBuffer;
}

export interface Source {
	/** The page holds its answers: there is no server. */
	readonly isOffline: boolean;
	/** The editor around the page, which can open a line and save a file. */
	readonly editor: Editor | null;
	json<T>(answer: string, query?: Query, signal?: AbortSignal): Promise<T>;
	tables(answer: string, query?: Query, signal?: AbortSignal): Promise<Table[]>;
	/** What was left out of an answer that the page holds. */
	note(answer: string, query?: Query): string | null;
	/** CSV of an answer, as text. */
	csv(answer: string, query?: Query): Promise<string>;
}

export function openSource(editor: Editor | null): Source {
	const index = document.getElementById("plumb-answers");
	if (index?.textContent) return new PageSource(JSON.parse(index.textContent) as PageIndex);
	return new LiveSource(editor ? (key, signal) => editor.ask(key, signal) : askServer, editor);
}

async function askServer(key: string, signal?: AbortSignal): Promise<Reply> {
	try {
		const response = await fetch(`api/1/${key}`, { signal: signal ?? null, credentials: "omit" });
		return { status: response.status, body: await response.arrayBuffer() };
	} catch (error) {
		if (error instanceof DOMException && error.name === "AbortError") throw error;
		return { status: 0, body: new ArrayBuffer(0) };
	}
}

/** A running plumb, asked by `ask`. */
export class LiveSource implements Source {
	readonly isOffline = false;
	private readonly kept = new Map<string, Promise<unknown>>();

	constructor(private readonly ask: (key: string, signal?: AbortSignal) => Promise<Reply>, readonly editor: Editor | null) {}

	json<T>(answer: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
		const key = canonical(answer, query);
		const kept = this.kept.get(key);
		if (kept) return kept as Promise<T>;
		const made = this.take(key, signal).then((body) => JSON.parse(new TextDecoder().decode(body)) as T);
		// A cancelled or failed answer is asked for again.
		made.catch(() => this.kept.delete(key));
		this.kept.set(key, made);
		if (this.kept.size > 64) this.kept.delete(this.kept.keys().next().value as string);
		return made;
	}

	async tables(answer: string, query: Query = {}, signal?: AbortSignal): Promise<Table[]> {
		return readTables(new Uint8Array(await this.take(canonical(answer, { ...query, format: "columns" }), signal)));
	}

	note(): null {
		return null;
	}

	async csv(answer: string, query: Query = {}): Promise<string> {
		return new TextDecoder().decode(await this.take(canonical(answer, { ...query, format: "csv" })));
	}

	private async take(key: string, signal?: AbortSignal): Promise<ArrayBuffer> {
		const { status, body } = await this.ask(key, signal);
		if (status === 200) return body;
		if (status === 0) throw new NoAnswer("plumb does not answer: it has ended. Start plumb view again.", null, 0);
		const text = new TextDecoder().decode(body);
		let said: { why?: string; remedy?: string | null } = {};
		try {
			said = JSON.parse(text) as typeof said;
		} catch {
			// It is one line of text.
		}
		throw new NoAnswer(said.why ?? (text.trim() || `plumb answered ${status}`), said.remedy ?? null, status);
	}
}

interface PageEntry {
	id: string;
	type?: string;
	note?: string | null;
	why?: string;
	remedy?: string | null;
}
interface PageIndex {
	answers: Record<string, PageEntry>;
}

/** What a page in one file holds of answers that are too many to hold all. */
const HELD: Record<string, string> = {
	frame: "This page holds the details of the widest boxes and of those with findings only.",
	why: "This page holds the greatest kernels with samples only.",
	"why/code": "This page holds the greatest kernels with samples only.",
	explain: "This page explains the outliers of the outermost loop only.",
};

class PageSource implements Source {
	readonly isOffline = true;
	readonly editor = null;
	constructor(private readonly index: PageIndex) {}

	/** The entry of a query. A page has an answer for each view, but not for each width, range or number of rows. */
	private find(answer: string, query: Query): PageEntry | null {
		const rest = { ...query };
		for (const left of [[], ["format"], ["px", "x0", "x1", "t0", "t1"], ["first", "count"], ["top"], ["search", "kind"]]) {
			for (const key of left) delete rest[key];
			const found = this.index.answers[canonical(answer, rest)];
			if (found) return found;
		}
		return null;
	}

	private bytes(answer: string, query: Query): Uint8Array {
		const entry = this.find(answer, query);
		if (!entry) throw new NoAnswer(HELD[answer] ?? "This page does not hold this answer.", "plumb view FILE", 404);
		if (entry.why) throw new NoAnswer(entry.why, entry.remedy ?? null, 404);
		const text = document.getElementById(entry.id)?.textContent?.trim() ?? "";
		const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
		return decompress(packed);
	}

	async json<T>(answer: string, query: Query = {}): Promise<T> {
		return JSON.parse(new TextDecoder().decode(this.bytes(answer, query))) as T;
	}

	async tables(answer: string, query: Query = {}): Promise<Table[]> {
		const base = answer === "flame" ? baseOf(query) : null;
		if (!base) return readTables(this.bytes(answer, { ...query, format: "columns" }));
		const [boxes, total] = readTables(this.bytes("flame", base)), files = { file: query["file"] };
		if (!boxes || !total) throw new Error("the answer has no flame graph");
		const frames = query["hide"] && this.find("flame/frames", files) ? readTables(this.bytes("flame/frames", files))[0] : null;
		return deriveFlame(boxes, total, frames ?? null, query);
	}

	note(answer: string, query: Query = {}): string | null {
		const base = answer === "flame" ? baseOf(query) : null, note = base ? this.find("flame", base)?.note : null;
		if (base) return note ? `${note}, and count as the widest of them` : null;
		return this.find(answer, { ...query, format: "columns" })?.note ?? this.find(answer, query)?.note ?? null;
	}

	async csv(): Promise<string> {
		throw new NoAnswer("A page in one file has the rows that it shows only.", "plumb report --csv FILE", 404);
	}
}
