// SPDX-License-Identifier: Apache-2.0
// Which plumb to start, and how its address is read.
import { join } from "node:path";

/** The programs to try, the first that is there wins. "plumb" is that of PATH. */
export function candidates(setting: string, folders: string[], environment: NodeJS.ProcessEnv): string[] {
	if (setting) return [setting];
	const found: string[] = [];
	for (const folder of folders) for (const name of [".venv", "venv"]) found.push(join(folder, name, "bin", "plumb"));
	for (const key of ["VIRTUAL_ENV", "CONDA_PREFIX"]) if (environment[key]) found.push(join(environment[key] as string, "bin", "plumb"));
	return [...found, "plumb"];
}

/** The address in what plumb printed; null: not yet. */
export function readAddress(text: string): { port: number; path: string } | null {
	const found = /^http:\/\/127\.0\.0\.1:(\d{1,5})(\/[\w-]+\/)\r?\n/m.exec(text);
	return found ? { port: Number(found[1]), path: found[2] as string } : null;
}
