// SPDX-License-Identifier: Apache-2.0
// The lines of source that the code comes from, with the samples of their instructions.
import { amount, fileName, visible } from "../../draw/words";
import type { Table } from "../../protocol/columns";
import type { Query } from "../../protocol/query";
import { useApp } from "../../state/app";
import { Choice, Trouble } from "../../shell/parts";
import { heatOf } from "./data";
import { Gap, HeatCell, usePages, useScroll } from "./rows";

/** A source file of the kernel. */
export interface SourceFile {
	number: number;
	file: string;
	/** Lines; NaN: it cannot be read. */
	lines: number;
	withCode: number;
	waiting: number;
	hidden: number;
}

export function filesOf(table: Table | undefined): SourceFile[] {
	if (!table) return [];
	const number = (name: string, row: number) => table.column(name).number(row);
	return Array.from({ length: table.rows }, (_, row) => ({ number: number("source", row), file: table.column("file").text(row), lines: number("lines", row),
		withCode: number("lines_with_code", row), waiting: number("waiting", row), hidden: number("hidden", row) }));
}

interface SourceProps {
	kernel: number;
	query: Query;
	files: SourceFile[];
	file: SourceFile;
	/** The line that is chosen; 0: none. */
	line: number;
	/** The most samples of a line. */
	most: number;
	onPick: (line: number, first: number) => void;
	onFile: (file: number) => void;
}

export function Source({ kernel, query, files, file, line, most, onPick, onFile }: SourceProps) {
	const app = useApp(), editor = app.source.editor, isRead = file.lines > 0, count = isRead ? file.lines : file.withCode;
	const asked: Query = { ...query, source: file.number };
	const { box, first, last } = useScroll(count, isRead ? line - 1 : -1);
	const { at: rowAt, error } = usePages({
		key: `${query["file"] ?? 0} ${kernel} ${file.number}`, count, name: "line", base: 1, isWhole: !isRead,
		ask: async (from, rows) => (await app.source.tables("why/source", app.source.isOffline ? asked : { ...asked, first: Math.max(1, from), count: rows }))[0],
	}, first, last);
	const indexes = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
	return (
		<div class="pane">
			<div class="tools">
				<Choice label="Source" value={String(file.number)} onChange={(next) => onFile(Number(next))}
					options={files.map((one) => [String(one.number), `${fileName(visible(one.file))} (${amount(one.waiting, null)})`])} />
				{editor && <button type="button" onClick={() => editor.open(file.file, line || null)}>Open</button>}
				{!isRead && <span class="quiet">{visible(file.file)} {app.source.isOffline ? "is not in this page" : "cannot be read on this machine"}: lines have numbers only</span>}
			</div>
			<div class="rows source" ref={box} tabIndex={0} role="region" aria-label={`Source ${fileName(visible(file.file))}`}>
				{error && <Trouble error={error} />}
				<table aria-rowcount={count + 1}>
					<thead><tr aria-rowindex={1}><th scope="col" class="heat">waiting</th><th scope="col" class="number">line</th><th scope="col">source</th></tr></thead>
					<tbody>
						<Gap rows={first} columns={3} />
						{indexes.map((index) => {
							const found = rowAt(index), number = found ? found.table.column("line").number(found.row) : index + 1, code = found?.table.column("instructions").number(found.row) ?? 0;
							const pick = code > 0 || (found && heatOf(found.table, found.row)) ? () => onPick(number, found?.table.column("first").number(found.row) ?? NaN) : undefined;
							return (
								<tr key={index} aria-rowindex={index + 2} class={number === line ? "picked" : ""} aria-current={number === line ? "true" : undefined} onClick={pick}>
									<HeatCell heat={found && heatOf(found.table, found.row)} most={most} />
									<th scope="row" class="number">{pick ? <button type="button" class="plain" aria-label={`Line ${number}`} onClick={(event) => { event.stopPropagation(); pick(); }}>{number}</button> : isRead ? number : found ? number : "…"}</th>
									<td class="words">{found ? visible(found.table.column("text").text(found.row).replaceAll("\t", "    ")) : ""}</td>
								</tr>
							);
						})}
						<Gap rows={count - last} columns={3} />
					</tbody>
				</table>
			</div>
		</div>
	);
}
