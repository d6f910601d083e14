// SPDX-License-Identifier: Apache-2.0
// The pages. Each registers itself: the shell knows none by name.
import type { ComponentType } from "preact";
import type { About } from "../protocol/types";

export interface Page {
	/** The name in the address. */
	id: string;
	title: string;
	/** The letter that opens it, after g. */
	key: string;
	/** Names of about.has that it cannot do without, each with the command that brings it. "a|b": one of them is enough. */
	needs: Record<string, string>;
	/** Without what it needs, it has no tab. */
	isOptional?: boolean;
	/** Which of the choices at the top it follows. */
	follows: ("metric" | "window")[];
	/** The part of the run that its answers are of if none is chosen; otherwise the main loop. */
	usualWindow?: string;
	/** Lines for the help: keys, and what they do. */
	keys?: [string, string][];
	make: ComponentType;
}

const registered: Page[] = [];

export function register(page: Page): void {
	if (registered.some((other) => other.id === page.id || other.key === page.key)) {
		throw new Error(`a page with the id ${page.id} or the key ${page.key} is registered already`);
	}
	registered.push(page);
}

export function pages(): readonly Page[] {
	return registered;
}

export function pageOf(id: string): Page | undefined {
	return registered.find((page) => page.id === id);
}

/** What a profile lacks for a page: the first need that it does not have. */
export function lacks(page: Page, about: Pick<About, "has">): { need: string; remedy: string } | null {
	for (const [need, remedy] of Object.entries(page.needs)) if (!need.split("|").some((one) => about.has[one])) return { need, remedy };
	return null;
}
