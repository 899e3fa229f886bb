// Prints how large the files of a folder are, as they are and as servers send them, beside what they were when `sizes.json` was written.
//
//   node size.mjs FOLDER [--write]
//
// Fails when a wasm as servers send it (gzip) is over its limit.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";

/** The engine, which every page fetches, and what is fetched when it is needed: grammars of constrained replies, and the engine of chat templates. */
const LIMITS = { "rullama_bg.wasm": 1_195_000, "guidance_bg.wasm": 600_000, "template_bg.wasm": 330_000 };
const KINDS = ["raw", "gzip", "brotli"];
const known = join(dirname(fileURLToPath(import.meta.url)), "sizes.json");

const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
const change = (now, before) => (before === undefined ? "" : ` (${now < before ? "" : "+"}${(((now - before) * 100) / before).toFixed(1)} %)`);

const [folder, flag] = process.argv.slice(2);
const before = JSON.parse(await readFile(known, "utf8").catch(() => "{}"));
const sizes = {};
for (const name of (await readdir(folder)).sort()) {
  if (!/\.(wasm|js)$/.test(name)) continue;
  const bytes = await readFile(join(folder, name));
  sizes[name] = { raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length, brotli: brotliCompressSync(bytes).length };
}
console.log("".padEnd(20) + KINDS.map((kind) => kind.padStart(22)).join(""));
for (const [name, size] of Object.entries(sizes)) {
  const column = (kind) => (kB(size[kind]) + change(size[kind], before[name]?.[kind])).padStart(22);
  console.log(name.padEnd(20) + KINDS.map(column).join(""));
}
if (flag === "--write") await writeFile(known, `${JSON.stringify(sizes, undefined, 2)}\n`);
for (const [name, limit] of Object.entries(LIMITS)) {
  if (!sizes[name]) throw new Error(`${folder} has no ${name}`);
  if (sizes[name].gzip > limit) throw new Error(`${name} takes ${kB(sizes[name].gzip)} gzipped, more than ${kB(limit)}`);
}
