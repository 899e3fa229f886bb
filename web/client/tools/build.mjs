// Makes dist/: the compiled sources, the wasm beside them, and the licences that npm wants in the package.
import { execFileSync } from "node:child_process";
import { cp, mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createRequire } from "node:module";
import process from "node:process";
import { fileURLToPath } from "node:url";

const client = dirname(dirname(fileURLToPath(import.meta.url)));
const wasm = join(client, "src/wasm");
const built = await readdir(wasm).catch(() => []);
if (!["rullama_bg.wasm", "guidance_bg.wasm", "template_bg.wasm"].every((name) => built.includes(name)))
  throw new Error("there is no wasm yet: run `cargo xtask wasm` first");

await rm(join(client, "dist"), { recursive: true, force: true });
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
execFileSync(process.execPath, [tsc, "-p", client], { stdio: "inherit" });
await mkdir(join(client, "dist/wasm"), { recursive: true });
for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) await cp(join(client, "../..", name), join(client, name));
for (const name of built) await cp(join(wasm, name), join(client, "dist/wasm", name));
