// SPDX-License-Identifier: Apache-2.0
// What all parts of the page share: the state, how it changes, and where answers come from.
import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { Query } from "../protocol/query";
import { NoAnswer, type Source } from "../protocol/source";
import type { About } from "../protocol/types";
import type { State } from "./fragment";
import type { Look } from "./theme";

export interface App {
	source: Source;
	about: About;
	state: State;
	look: Look;
	/** Changes values of the state. `isStep`: the way back of the browser returns to the view before. */
	set(values: Record<string, string | number | null | undefined>, isStep?: boolean): void;
	/** Opens another page. */
	go(page: string, values?: Record<string, string>): void;
	/** Where a link to another page leads. */
	link(page: string, values?: Record<string, string>): string;
	/** A line that screen readers speak. */
	say(text: string): void;
}

export const AppContext = createContext<App | null>(null);

export function useApp(): App {
	const app = useContext(AppContext);
	if (!app) throw new Error("no app");
	return app;
}

/** What the choice at the top of the page adds to a query. */
export function common(app: App, keys: ("metric" | "window")[] = []): Query {
	const query: Query = { file: app.state.values["file"] };
	for (const key of keys) query[key] = app.state.values[key];
	return query;
}

export type Loaded<T> = { state: "loading"; last: T | null } | { state: "error"; error: Error } | { state: "ready"; value: T };

/** An answer, asked for again if its key changes; meanwhile `last` is the one before. */
export function useAnswer<T>(key: string, ask: (signal: AbortSignal) => Promise<T>): Loaded<T> {
	const [loaded, set] = useState<Loaded<T>>({ state: "loading", last: null });
	useEffect(() => {
		const stop = new AbortController();
		set((before) => ({ state: "loading", last: before.state === "ready" ? before.value : before.state === "loading" ? before.last : null }));
		ask(stop.signal).then(
			(value) => !stop.signal.aborted && set({ state: "ready", value }),
			(error: unknown) => !stop.signal.aborted && set({ state: "error", error: error instanceof Error ? error : new Error(String(error)) }),
		);
		return () => stop.abort();
	}, [key]);
	return loaded;
}

export function valueOf<T>(loaded: Loaded<T>): T | null {
	return loaded.state === "ready" ? loaded.value : loaded.state === "loading" ? loaded.last : null;
}

export function isNoAnswer(error: Error): error is NoAnswer {
	return error instanceof NoAnswer;
}
