// SPDX-License-Identifier: Apache-2.0
// Light or dark: what the system or the editor prefers, until you choose. The choice is kept in the browser if that is allowed.

export type Look = "light" | "dark";
const KEY = "plumb-look";

export function chosenLook(): Look | null {
	try {
		const kept = localStorage.getItem(KEY);
		return kept === "light" || kept === "dark" ? kept : null;
	} catch {
		return null;
	}
}

/** The look of VS Code, which marks the body of the page with it. */
function editorLook(): Look | null {
	const kind = document.body?.dataset["vscodeThemeKind"];
	return kind ? (/dark|high-contrast$/.test(kind) ? "dark" : "light") : null;
}

export function currentLook(): Look {
	return chosenLook() ?? editorLook() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

export function applyLook(): Look {
	const look = currentLook();
	document.documentElement.dataset["look"] = look;
	return look;
}

export function chooseLook(look: Look): void {
	try {
		localStorage.setItem(KEY, look);
	} catch {
		// The choice lasts as long as the page.
	}
	document.documentElement.dataset["look"] = look;
}
