// SPDX-License-Identifier: Apache-2.0
// A running `plumb view`, and questions to it. It ends when it is closed.
import { spawn, type ChildProcess } from "node:child_process";
import { request, type ClientRequest } from "node:http";
import { readAddress } from "./address";

export interface Reply {
	status: number;
	body: ArrayBuffer;
}

const LONGEST = 512 << 20; // bytes of an answer
const START_MS = 120_000;
const SAID = 4000; // characters of what plumb said that are kept

export class Plumb {
	private readonly asked = new Set<ClientRequest>();
	private isClosed = false;
	/** Called if plumb ends by itself. */
	onEnd: (said: string) => void = () => {};

	private constructor(private readonly process: ChildProcess, private readonly port: number, private readonly path: string, said: () => string) {
		process.once("exit", () => this.isClosed || this.onEnd(said()));
	}

	/** Starts the first of PROGRAMS that is there. */
	static async open(programs: string[], file: string): Promise<Plumb> {
		for (const program of programs) {
			try {
				return await Plumb.start(program, file);
			} catch (error) {
				if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
			}
		}
		const wanted = programs.length === 1 && programs[0] !== "plumb" ? programs[0] : null;
		throw new Error(wanted ? `${wanted} is not there; correct the setting plumb.path`
			: "plumb is not installed here; install it (pip install plumb-profiler), or name it in the setting plumb.path");
	}

	private static start(program: string, file: string): Promise<Plumb> {
		return new Promise((done, failed) => {
			const child = spawn(program, ["view", "--no-browser", file], { stdio: ["ignore", "pipe", "pipe"] });
			let out = "", said = "";
			const timer = setTimeout(() => {
				child.kill("SIGTERM");
				failed(new Error(`plumb needs more than ${START_MS / 1000} s to read the profile`));
			}, START_MS);
			child.stderr.on("data", (data: Buffer) => { said = (said + data.toString()).slice(-SAID); });
			child.stdout.on("data", (data: Buffer) => {
				out = (out + data.toString()).slice(0, SAID);
				const address = readAddress(out);
				if (!address) return;
				clearTimeout(timer);
				child.stdout.removeAllListeners("data").resume();
				done(new Plumb(child, address.port, address.path, () => said));
			});
			child.once("error", (error) => { clearTimeout(timer); failed(error); });
			child.once("close", (code) => {
				clearTimeout(timer);
				failed(new Error(said.trim().split("\n").at(-1)?.replace(/^plumb: /, "") || `plumb ended with code ${code}`));
			});
		});
	}

	/** An answer, such as "report?by=line". The status is 0 if plumb has ended. STARTED gets what cancels the question. */
	ask(answer: string, started?: (cancel: () => void) => void): Promise<Reply> {
		return new Promise((done) => {
			const none = () => done({ status: 0, body: new ArrayBuffer(0) });
			if (this.isClosed) return none();
			const asked = request({ host: "127.0.0.1", port: this.port, path: `${this.path}api/1/${answer}`, agent: false }, (reply) => {
				const parts: Buffer[] = [];
				let bytes = 0;
				reply.on("data", (part: Buffer) => {
					parts.push(part);
					bytes += part.length;
					if (bytes > LONGEST) asked.destroy();
				});
				reply.on("error", none);
				reply.on("end", () => {
					const all = new Uint8Array(bytes);
					let at = 0;
					for (const part of parts) {
						all.set(part, at);
						at += part.length;
					}
					done({ status: reply.statusCode ?? 0, body: all.buffer as ArrayBuffer });
				});
			});
			this.asked.add(asked);
			asked.on("close", () => this.asked.delete(asked));
			asked.on("error", none);
			asked.end();
			started?.(() => asked.destroy());
		});
	}

	async json<T>(answer: string): Promise<T> {
		const { status, body } = await this.ask(answer);
		const text = new TextDecoder().decode(body);
		if (status === 200) return JSON.parse(text) as T;
		throw new Error(text.trim().split("\n")[0] || "plumb does not answer");
	}

	close(): void {
		this.isClosed = true;
		for (const asked of this.asked) asked.destroy();
		this.process.kill("SIGTERM");
	}
}
