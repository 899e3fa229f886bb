// Type-checks and builds the examples for pages with the package of this repository, as CI does.
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const examples = join(web, "../examples/web");
// Examples find the package and its peers where this workspace has them.
await symlink(join(web, "node_modules"), join(examples, "node_modules"), "dir").catch((error) => {
  if (error.code !== "EEXIST") throw error;
});
execFileSync(process.execPath, [join(web, "node_modules/typescript/bin/tsc"), "-p", examples], { stdio: "inherit" });

const out = await mkdtemp(join(tmpdir(), "rullama-examples-"));
try {
  for (const name of ["react", "extension", "ai-sdk", "rag"]) {
    const outDir = join(out, name);
    await build({ root: join(examples, name), configFile: false, logLevel: "error", base: "./", worker: { format: "es" }, build: { outDir, target: "es2022" } });
    const page = await readFile(join(outDir, "index.html"), "utf8");
    if (!/<script type="module"[^>]* src="\.\/assets\//u.test(page)) throw new Error(`${name} was built without its script`);
    console.log(`examples/web/${name} is built`);
  }
} finally {
  await rm(out, { recursive: true, force: true });
}
// The plain page has no build: what it imports must be in the package.
const page = await readFile(join(examples, "plain/index.html"), "utf8");
const { load } = await import(join(web, "client/dist/index.js"));
if (!page.includes('import { load } from "./rullama/index.js"') || typeof load !== "function") throw new Error("examples/web/plain imports what is not there");
