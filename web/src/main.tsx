// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import "./app.css";
import "./pages/all";
import { openEditor } from "./protocol/editor";
import { openSource } from "./protocol/source";
import type { About } from "./protocol/types";
import { Shell } from "./shell/shell";
import { openAddress } from "./state/address";
import { applyLook } from "./state/theme";

applyLook();

async function start(): Promise<void> {
	let root = document.getElementById("plumb");
	if (!root) {
		root = document.createElement("div");
		root.id = "plumb";
		document.body.append(root);
	}
	try {
		const editor = openEditor();
		const source = openSource(editor);
		const about = await source.json<About>("about");
		about.has["two_files"] = about.files.length > 1;
		render(<Shell source={source} about={about} address={openAddress(editor)} />, root);
	} catch (error) {
		root.textContent = error instanceof Error ? error.message : String(error);
		root.setAttribute("role", "alert");
	}
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => void start());
else void start();
