// Checks the npm package as it would be published: what is in it, that each entry can be imported outside of browsers without side effects,
// and how much each entry loads. `--write` takes the sizes of now as the budget, with some room.
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const client = join(web, "client");
const budgets = join(web, "tools/entry-budgets.json");
const { exports, name } = JSON.parse(await readFile(join(client, "package.json"), "utf8"));
const fail = (message) => {
  throw new Error(`${name}: ${message}`);
};

const quiet = { cwd: client, stdio: ["ignore", "pipe", "ignore"] };
const [{ files }] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json"], quiet).toString());
const packed = new Set(files.map(({ path }) => path));
const allowed = /^(?:package\.json|README\.md|LICENSE-(?:MIT|APACHE)|dist\/[\w./-]+\.(?:js|js\.map|d\.ts|wasm))$/u;
for (const path of packed) if (!allowed.test(path)) fail(`${path} does not belong into the package`);
for (const wanted of ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "dist/worker.js", "dist/wasm/rullama_bg.wasm", "dist/wasm/guidance_bg.wasm", "dist/wasm/template_bg.wasm"]) {
  if (!packed.has(wanted)) fail(`${wanted} is missing in the package`);
}

/** The modules that an entry loads at once, by their imports; those behind `import()` and workers come later. */
async function modulesOf(path, found = new Set()) {
  if (found.has(path)) return found;
  found.add(path);
  const text = await readFile(path, "utf8");
  for (const [, from] of text.matchAll(/^(?:import|export)\s(?:[^"';]*?\sfrom\s)?"(\.[^"]+)";/gmu)) await modulesOf(join(dirname(path), from), found);
  return found;
}

const known = JSON.parse(await readFile(budgets, "utf8").catch(() => "{}"));
const sizes = {};
for (const [entry, target] of Object.entries(exports)) {
  if (typeof target === "string") continue;
  if (!target.default || Object.keys(target).at(-1) !== "default") fail(`${entry} has no default condition, or not as the last one`);
  for (const path of Object.values(target)) if (!packed.has(path.replace("./", ""))) fail(`${entry} names ${path}, which is not in the package`);
  const modules = [...(await modulesOf(join(client, target.default)))];
  for (const module of modules) {
    const map = `${relative(client, module)}.map`;
    if (!module.includes("/wasm/") && !packed.has(map)) fail(`${map} is missing`);
  }
  const all = await Promise.all(modules.map((module) => readFile(module)));
  sizes[entry] = gzipSync(Buffer.concat(all), { level: 9 }).length;
  const budget = known[entry];
  console.log(`${entry.padEnd(14)} ${modules.length.toString().padStart(3)} modules ${(sizes[entry] / 1000).toFixed(1).padStart(6)} kB gzipped, of ${((budget ?? 0) / 1000).toFixed(1)} kB`);
  if (process.argv.includes("--write")) continue;
  if (budget === undefined || sizes[entry] > budget) fail(`${entry} takes ${sizes[entry]} bytes gzipped, its budget is ${budget}: make it smaller, or raise tools/entry-budgets.json`);
}
if (process.argv.includes("--write")) {
  const rounded = Object.entries(sizes).map(([entry, size]) => [entry, Math.ceil((size * 1.1) / 1000) * 1000]);
  await writeFile(budgets, `${JSON.stringify(Object.fromEntries(rounded), undefined, 2)}\n`);
}

// A worker that refers to itself is built again for each level, and Turbopack never ends.
for (const script of ["worker.js", "hash-worker.js", "storage/pump-worker.js", "storage/read-worker.js"]) {
  const path = join(client, "dist", script);
  for (const module of await modulesOf(path)) {
    for (const [, from] of (await readFile(module, "utf8")).matchAll(/new Worker\(new URL\("([^"]+)"/gu)) {
      if (join(dirname(module), from) === path) fail(`${relative(client, module)}, a part of ${script}, starts ${script}`);
    }
  }
}

// The worker's script is one: it listens. All others only define things.
const entries = Object.entries(exports).filter(([entry, target]) => typeof target !== "string" && entry !== "./worker");
const script = `
  const before = new Set(Reflect.ownKeys(globalThis));
  let timers = 0;
  for (const name of ["fetch", "setTimeout", "setInterval"]) {
    const own = globalThis[name];
    globalThis[name] = (...all) => (timers++, own(...all));
  }
  for (const path of ${JSON.stringify(entries.map(([, target]) => join(client, target.default)))}) await import(path);
  const added = Reflect.ownKeys(globalThis).filter((key) => !before.has(key));
  if (added.length > 0 || timers > 0) throw new Error("importing had side effects: " + added.map(String).join(", ") + " " + timers);
`;
execFileSync(process.execPath, ["--input-type=module", "-e", script], { stdio: "inherit" });
console.log(`${entries.length} entries import without side effects; ${packed.size} files in the package`);
