// SPDX-License-Identifier: Apache-2.0
// Between one page and its plumb: answers questions, and hands on what the editor has to do. Nothing here knows the editor.
import { readMessage, type ToPage } from "./messages";
import type { Reply } from "./plumb";

export interface Asked {
	ask(answer: string, started?: (cancel: () => void) => void): Promise<Reply>;
}

export interface Acts {
	post(message: ToPage): void;
	open(file: string, line: number | null): void;
	save(name: string, text: string): void;
	state(fragment: string): void;
}

export class Link {
	private readonly running = new Map<number, () => void>();

	constructor(private readonly plumb: Asked, private readonly acts: Acts) {}

	async take(said: unknown): Promise<void> {
		const message = readMessage(said);
		if (!message) return;
		if (message.type === "open") this.acts.open(message.file, message.line);
		else if (message.type === "save") this.acts.save(message.name, message.text);
		else if (message.type === "state") this.acts.state(message.fragment);
		else if (message.type === "stop") this.stop(message.id);
		else {
			const { id } = message;
			let isStopped = false;
			const { status, body } = await this.plumb.ask(message.answer, (cancel) => this.running.set(id, () => { isStopped = true; cancel(); }));
			this.running.delete(id);
			if (!isStopped) this.acts.post({ type: "answer", id, status, body });
		}
	}

	private stop(id: number): void {
		this.running.get(id)?.();
		this.running.delete(id);
	}
}
