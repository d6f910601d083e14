// SPDX-License-Identifier: Apache-2.0
// build.mjs [FOLDER]: bundles src/extension.ts into FOLDER/extension.js (default: dist). With --units, it bundles test/*.test.ts into
// FOLDER, for node --test, with a stand-in for the editor's module.
import { build } from "esbuild";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const units = process.argv.includes("--units");
const folder = process.argv.slice(2).find((word) => !word.startsWith("--")) ?? join(here, units ? "dist/units" : "dist");

const common = { bundle: true, target: "es2022", platform: "node", format: "cjs", charset: "utf8", logLevel: "warning" };
if (units) {
	const tests = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
	await build({ ...common, entryPoints: tests.map((name) => join(here, "test", name)), outdir: folder, outExtension: { ".js": ".cjs" },
		alias: { vscode: join(here, "../tests/vscode-mock/vscode.ts") } });
} else {
	await build({ ...common, entryPoints: [join(here, "src/extension.ts")], outfile: join(folder, "extension.js"), external: ["vscode"],
		minify: true, legalComments: "none" });
}
