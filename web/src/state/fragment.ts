// SPDX-License-Identifier: Apache-2.0
// The state of the page is its address: #VERSION/PAGE?KEY=VALUE&… A link opens the same view again. An older version is upgraded
// step by step: UPGRADES[n] makes version n + 1 of version n.

export interface State {
	page: string;
	values: Record<string, string>;
}

export const VERSION = 1;

type Upgrade = (state: State) => State;
/** Version 0 is a fragment without a version: only the name of a page. */
const UPGRADES: Record<number, Upgrade> = {
	0: (state) => state,
};

/** Keys that all pages share; the others belong to one page and go when the page changes. */
export const SHARED = ["file", "metric", "window", "layers"];

export function parse(fragment: string, upgrades: Record<number, Upgrade> = UPGRADES, version = VERSION): State {
	const found = /^#?(?:(\d{1,6})\/)?([\w-]*)(?:\?(.*))?$/s.exec(fragment);
	if (!found) return { page: "", values: {} };
	let state: State = { page: found[2] ?? "", values: Object.fromEntries(new URLSearchParams(found[3] ?? "")) };
	// A link of a newer plumb: keys that are not known do nothing.
	for (let at = Number(found[1] ?? 0); at < version; at++) state = upgrades[at]?.(state) ?? state;
	return state;
}

export function format(state: State): string {
	const values = new URLSearchParams();
	for (const key of Object.keys(state.values).sort()) {
		const value = state.values[key];
		if (value !== undefined && value !== "") values.set(key, value);
	}
	const text = values.toString();
	return `#${VERSION}/${state.page}${text ? `?${text}` : ""}`;
}

/** The state with some values changed; null or "" removes one. */
export function change(state: State, values: Record<string, string | number | null | undefined>): State {
	const next = { ...state.values };
	for (const [key, value] of Object.entries(values)) {
		if (value === null || value === undefined || value === "") delete next[key];
		else next[key] = String(value);
	}
	return { page: state.page, values: next };
}

/** Another page: it keeps what all pages share. */
export function turn(state: State, page: string, values: Record<string, string> = {}): State {
	const kept = Object.fromEntries(SHARED.flatMap((key) => (state.values[key] === undefined ? [] : [[key, state.values[key]]])));
	return { page, values: { ...kept, ...values } };
}
