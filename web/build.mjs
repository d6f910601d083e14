// SPDX-License-Identifier: Apache-2.0
// build.mjs [FOLDER]: bundles src/main.tsx into FOLDER/app.js and FOLDER/app.css (default: dist). With --units, it bundles
// test/*.test.ts into FOLDER, for node --test. --with=FILE adds a file, such as a page, in front.
import { build } from "esbuild";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const units = process.argv.includes("--units");
const folder = process.argv.slice(2).find((word) => !word.startsWith("--")) ?? join(here, units ? "dist/units" : "dist");

const common = { bundle: true, target: "es2022", jsx: "automatic", jsxImportSource: "preact", charset: "utf8", logLevel: "warning" };
if (units) {
	const tests = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
	await build({ ...common, entryPoints: tests.map((name) => join(here, "test", name)), outdir: folder, format: "esm",
		platform: "node", outExtension: { ".js": ".mjs" } });
} else {
	const files = process.argv.filter((word) => word.startsWith("--with=")).map((word) => word.slice(7));
	const contents = [...files, join(here, "src/main.tsx")].map((file) => `import ${JSON.stringify(file)};`).join("\n");
	await build({ ...common, stdin: { contents, resolveDir: here, sourcefile: "app.ts" }, outfile: join(folder, "app.js"), format: "iife",
		minify: true, legalComments: "none", nodePaths: [join(here, "node_modules")] });
}
