// Prints how large the files of a folder are, as they are and as servers send them.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { brotliCompressSync, gzipSync } from "node:zlib";

const folder = process.argv[2];
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`.padStart(12);
console.log(`${"".padEnd(28)}${"raw".padStart(12)}${"gzip".padStart(12)}${"brotli".padStart(12)}`);
for (const name of (await readdir(folder)).sort()) {
  if (!/\.(wasm|js)$/.test(name)) continue;
  const bytes = await readFile(join(folder, name));
  console.log(name.padEnd(28) + kB(bytes.length) + kB(gzipSync(bytes, { level: 9 }).length) + kB(brotliCompressSync(bytes).length));
}
