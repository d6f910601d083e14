// SPDX-License-Identifier: Apache-2.0
// The help (?) and the palette of commands (Ctrl+Shift+P).
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Page } from "./registry";

export interface Act {
	title: string;
	keys?: string;
	run: () => void;
}

function Dialog({ label, onClose, children }: { label: string; onClose: () => void; children: ComponentChildren }) {
	const dialog = useRef<HTMLDialogElement>(null);
	useEffect(() => {
		const at = dialog.current;
		at?.showModal();
		return () => at?.close();
	}, []);
	return (
		<dialog ref={dialog} aria-label={label} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
			{children}
		</dialog>
	);
}

const SHELL_KEYS: [string, string][] = [
	["?", "this help"],
	["Ctrl+Shift+P", "all commands"],
	["/ or Ctrl+F", "search or filter"],
	["t", "light or dark"],
];

export function Help({ pages, page, onClose }: { pages: readonly Page[]; page: Page | undefined; onClose: () => void }) {
	const list = (keys: [string, string][]) => (
		<dl class="keys">{keys.map(([key, words]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{words}</dd></div>)}</dl>
	);
	return (
		<Dialog label="Help" onClose={onClose}>
			<h2>Keys</h2>
			{list([...SHELL_KEYS, ...pages.map((one): [string, string] => [`g ${one.key}`, `the page ${one.title}`])])}
			{page?.keys && <><h2>{page.title}</h2>{list(page.keys)}</>}
			<h2>How to read a flame graph</h2>
			<p>Each box is a function, an operator or a kernel. The box above it called it. The wider a box, the more of the time it took, with
				everything below it. Colours say what kind it is, and the names of the colours are switches.</p>
			<p><button type="button" onClick={onClose}>Close</button></p>
		</Dialog>
	);
}

export function Palette({ acts, onClose }: { acts: Act[]; onClose: () => void }) {
	const [text, setText] = useState("");
	const [at, setAt] = useState(0);
	const found = useMemo(() => {
		const words = text.toLowerCase().split(/\s+/).filter(Boolean);
		return acts.filter((act) => words.every((word) => act.title.toLowerCase().includes(word))).slice(0, 30);
	}, [text, acts]);
	const run = (act: Act | undefined) => {
		if (!act) return;
		onClose();
		act.run();
	};
	const key = (event: KeyboardEvent) => {
		const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
		if (step && found.length) {
			event.preventDefault();
			setAt((at + step + found.length) % found.length);
		} else if (event.key === "Enter") run(found[at]);
	};
	return (
		<Dialog label="Commands" onClose={onClose}>
			<input type="text" role="combobox" aria-expanded="true" aria-controls="acts" aria-activedescendant={found.length ? `act-${at}` : undefined}
				aria-label="Command" placeholder="Type a command" value={text} onKeyDown={key}
				onInput={(event) => { setText(event.currentTarget.value); setAt(0); }} />
			<ul id="acts" role="listbox" aria-label="Commands">
				{found.map((act, index) => (
					<li key={act.title} id={`act-${index}`} role="option" aria-selected={index === at} onClick={() => run(act)}>
						<span>{act.title}</span>{act.keys && <kbd>{act.keys}</kbd>}
					</li>
				))}
			</ul>
			{found.length === 0 && <p>No command has these words.</p>}
		</Dialog>
	);
}
