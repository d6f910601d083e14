// SPDX-License-Identifier: Apache-2.0
// Small parts that all pages use: a command to copy, why there is nothing, buttons.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Query } from "../protocol/query";
import { shownRows } from "./table";
import { isNoAnswer, useApp, type Loaded } from "../state/app";

export async function copyText(text: string): Promise<boolean> {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		// A page from a file may have no clipboard: the old way.
		const area = document.createElement("textarea");
		area.value = text;
		document.body.append(area);
		area.select();
		const done = document.execCommand("copy");
		area.remove();
		return done;
	}
}

export function CopyButton({ text, children, label }: { text: () => string; children: ComponentChildren; label?: string }) {
	const app = useApp();
	const [isDone, setDone] = useState(false);
	const timer = useRef(0);
	const copy = async () => {
		const done = await copyText(text());
		app.say(done ? "Copied" : "The browser does not allow copying");
		setDone(done);
		clearTimeout(timer.current);
		timer.current = window.setTimeout(() => setDone(false), 1500);
	};
	return <button type="button" onClick={copy} aria-label={label}>{isDone ? "Copied" : children}</button>;
}

/** A command line that can be copied. */
export function Command({ text }: { text: string }) {
	return (
		<span class="command">
			<code>{text}</code>
			<CopyButton text={() => text} label={`Copy the command ${text}`}>Copy</CopyButton>
		</span>
	);
}

export function Trouble({ error }: { error: Error }) {
	const remedy = isNoAnswer(error) ? error.remedy : null;
	return (
		<div class="notice" role="alert">
			<p>{error.message}</p>
			{remedy && <Command text={remedy} />}
		</div>
	);
}

/** What to show while there is no answer, or instead of one. */
export function Waiting<T>({ loaded, children }: { loaded: Loaded<T>; children: (value: T) => ComponentChildren }) {
	if (loaded.state === "error") return <Trouble error={loaded.error} />;
	const value = loaded.state === "ready" ? loaded.value : loaded.last;
	if (value === null) return <p class="notice" aria-busy="true">Loading…</p>;
	return <div class={loaded.state === "loading" ? "part stale" : "part"} aria-busy={loaded.state === "loading"}>{children(value)}</div>;
}

export function saveText(name: string, text: string): void {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** A field of CSV. A text that a spreadsheet would take for a formula gets an apostrophe. */
export function csvField(value: string | number | boolean | null | undefined): string {
	if (value === null || value === undefined) return "";
	let text = String(value);
	if (typeof value === "string" && /^[=+\-@\t]/.test(text)) text = `'${text}`;
	return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Saves an answer as the verb's CSV. A page that holds its answers saves rows: those that are given, or those of its table. */
export function CsvButton({ name, answer, query, table, rows }: {
	name: string; answer?: string; query?: Query; table?: string; rows?: () => (string | number | boolean | null)[][];
}) {
	const app = useApp();
	const save = async () => {
		try {
			const text = answer && !app.source.isOffline ? await app.source.csv(answer, query)
				: (rows?.() ?? shownRows(table)).map((row) => row.map(csvField).join(",")).join("\r\n") + "\r\n";
			if (app.source.editor) app.source.editor.save(`${name}.csv`, text);
			else saveText(`${name}.csv`, text);
			app.say("The CSV file is saved");
		} catch (error) {
			app.say(error instanceof Error ? error.message : String(error));
		}
	};
	return <button type="button" onClick={save} title="Save this as comma-separated values">CSV</button>;
}

export function LinkButton() {
	return <CopyButton text={() => location.href} label="Copy a link to this view">Link</CopyButton>;
}

export function Choice({ label, value, options, onChange }: {
	label: string; value: string; options: [string, string][]; onChange: (value: string) => void;
}) {
	return (
		<label class="choice">
			<span>{label}</span>
			<select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
				{options.map(([id, words]) => <option key={id} value={id}>{words}</option>)}
			</select>
		</label>
	);
}

export function Switches<T extends string>({ label, value, options, onChange }: {
	label: string; value: T; options: [T, string][]; onChange: (value: T) => void;
}) {
	return (
		<div class="switches" role="group" aria-label={label}>
			{options.map(([id, words]) => (
				<button key={id} type="button" aria-pressed={id === value} onClick={() => onChange(id)}>{words}</button>
			))}
		</div>
	);
}
