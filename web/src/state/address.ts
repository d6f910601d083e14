// SPDX-License-Identifier: Apache-2.0
// Where the state is kept. This is the address of the page, except in a frame of a notebook or of an editor, which has none of its own.
// There the steps are kept in the history without an address, and links are followed by the page itself.

export interface Address {
	/** Others can open it. */
	readonly isShared: boolean;
	now(): string;
	put(fragment: string, isStep: boolean): void;
	/** Calls `follow` when the way back, a link or an editor changes the state. Returns how to end that. */
	watch(follow: () => void): () => void;
}

/** What an editor keeps for a page until it is shown again. */
export interface Keeper {
	kept(): string;
	keep(fragment: string): void;
	onShow(show: (fragment: string) => void): void;
}

export function openAddress(keeper: Keeper | null): Address {
	return keeper || location.protocol === "about:" ? new HeldAddress(keeper) : new OwnAddress();
}

class OwnAddress implements Address {
	readonly isShared = true;

	now(): string {
		return location.hash;
	}

	put(fragment: string, isStep: boolean): void {
		history[isStep ? "pushState" : "replaceState"](null, "", fragment);
	}

	watch(follow: () => void): () => void {
		addEventListener("popstate", follow);
		addEventListener("hashchange", follow);
		return () => {
			removeEventListener("popstate", follow);
			removeEventListener("hashchange", follow);
		};
	}
}

class HeldAddress implements Address {
	readonly isShared = false;
	private fragment: string;
	private follow = () => {};

	constructor(private readonly keeper: Keeper | null) {
		this.fragment = keeper?.kept() ?? "";
		keeper?.onShow((fragment) => this.step(fragment));
	}

	now(): string {
		return this.fragment;
	}

	put(fragment: string, isStep: boolean): void {
		this.fragment = fragment;
		history[isStep ? "pushState" : "replaceState"]({ fragment }, "");
		this.keeper?.keep(fragment);
	}

	watch(follow: () => void): () => void {
		this.follow = follow;
		const back = (event: PopStateEvent) => {
			this.fragment = (event.state as { fragment?: string } | null)?.fragment ?? "";
			this.keeper?.keep(this.fragment);
			follow();
		};
		const click = (event: MouseEvent) => {
			const link = event.target instanceof Element ? event.target.closest("a")?.getAttribute("href") : null;
			if (!link || !/^#\d+\//.test(link)) return;
			event.preventDefault();
			event.stopPropagation();
			this.step(link);
		};
		addEventListener("popstate", back);
		addEventListener("click", click, true);
		return () => {
			removeEventListener("popstate", back);
			removeEventListener("click", click, true);
		};
	}

	private step(fragment: string): void {
		this.put(fragment, true);
		this.follow();
	}
}
