// SPDX-License-Identifier: Apache-2.0
// Opens the line of a frame. The path comes from a profile, which may come from anybody and from another machine.
import { basename, isAbsolute, relative } from "node:path";
import * as vscode from "vscode";
import { matchPath } from "./lines";
import { visible } from "./words";

const MOST = 200; // files of the same name

/** PATH is below one of FOLDERS. */
export function isInside(path: string, folders: string[]): boolean {
	return folders.some((folder) => {
		const way = relative(folder, path);
		return way !== "" && !isAbsolute(way) && way.split(/[\\/]/)[0] !== "..";
	});
}

export async function openPlace(file: string, line: number | null): Promise<void> {
	const path = await findFile(file);
	if (!path) {
		void vscode.window.showWarningMessage(`${visible(file)} is not on this machine, and no file of the workspace fits`);
		return;
	}
	const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
	if (!isInside(path, folders)) {
		const words = `${visible(path)} is outside the workspace. The profile names it. Open it?`;
		if (await vscode.window.showWarningMessage(words, { modal: true }, "Open") !== "Open") return;
	}
	try {
		const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path));
		const at = new vscode.Range((line ?? 1) - 1, 0, (line ?? 1) - 1, 0);
		await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, selection: at, preview: true });
	} catch (error) {
		void vscode.window.showErrorMessage(`plumb: cannot open ${visible(path)}: ${error instanceof Error ? error.message : String(error)}`);
	}
}

/** The file itself, else the one of the workspace whose path ends like it. */
async function findFile(file: string): Promise<string | null> {
	if (isAbsolute(file)) {
		try {
			const found = await vscode.workspace.fs.stat(vscode.Uri.file(file));
			if (found.type & vscode.FileType.File) return file;
		} catch {
			// It was recorded elsewhere.
		}
	}
	const name = basename(file.replaceAll("\\", "/")).replace(/[*?{}[\]]/g, "?");
	if (!name) return null;
	const uris = await vscode.workspace.findFiles(`**/${name}`, undefined, MOST);
	return matchPath(file, uris.map((uri) => uri.fsPath));
}
