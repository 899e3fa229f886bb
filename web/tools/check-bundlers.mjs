// Tries the package as people get it, packed and installed: under Node, Deno and Bun, built by webpack and Next.js, and in a page without a
// build. The runtimes read a model's header, tokenize and render with it, and talk to a server; the pages do so in the engine's worker, in Chromium.
// Under Deno with its WebGPU and under Node with Dawn (npm's `webgpu`), a model answers.
//
//   node tools/check-bundlers.mjs [node deno bun dawn webpack next plain]
//
// It installs what it needs into a temporary folder, which takes minutes and a registry, so it is no part of CI: `npm run check:bundlers`.
// RULLAMA_BUNDLERS names a folder that stays, for several runs.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { serve } from "./serve.mjs";

const VERSIONS = { webpack: ["webpack@5.112.2"], next: ["next@16.4.6", "react@19.3.1", "react-dom@19.3.1"], deno: ["deno@2.9.6"], dawn: ["webgpu@0.6.2"], bun: ["bun@1.4.4"] };
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const LIMIT_MS = 120_000;
/** A bundler that does not end has met something it cannot build. */
const BUILD_MS = 900_000;

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const golden = join(web, "../goldens/gguf/micro-e2b-Q8_0.gguf");
const chosen = process.argv.slice(2);
const wants = (name) => chosen.length === 0 || chosen.includes(name);
const say = (text) => console.log(text);

/** What pages run: a header is read in the worker, which needs the worker's script and the wasm, and no GPU. */
const PAGE = `
export async function inspect(openEngine) {
  const engine = openEngine();
  const bytes = await (await fetch("/m.gguf")).arrayBuffer();
  const { info } = await engine.inspect(new File([bytes], "m.gguf"));
  engine.close();
  document.title = "inspected " + info.architecture;
}
`;

/** What runtimes without a page run. */
const RUNTIME = `
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
const before = new Set(Reflect.ownKeys(globalThis));
const { connect, openEngine, openHeader } = await import("rullama");
const { modelFetch } = await import("rullama/fetch");
const { createRullama } = await import("rullama/ai-sdk");
const { languageModelOf } = await import("rullama/prompt-api");
const { CATALOGUE } = await import("rullama/catalogue");
const added = Reflect.ownKeys(globalThis).filter((key) => !before.has(key));
if (added.length > 0) throw new Error("importing had side effects: " + added.map(String).join(", "));
const engine = openEngine({ worker: false });
const file = new File([await readFile(process.argv[2])], "m.gguf");
// Tokenizer and chat template need no GPU: from a path, a file and an address.
for (const source of [process.argv[2], file, pathToFileURL(process.argv[2])]) {
  const header = await openHeader(source);
  const prompt = header.render([{ role: "user", content: "Hello" }], { think: true });
  const wanted = "<bos><|turn>system\\n<|think|>\\n<turn|>\\n<|turn>user\\nHello<turn|>\\n<|turn>model\\n";
  if (prompt.text !== wanted || header.detokenize(prompt.ids) !== wanted) throw new Error("the prompt is " + prompt.text);
  if (header.detokenize(header.tokenize("Käse")) !== "Käse") throw new Error("the tokenizer lost text");
  if (header.value("general.architecture") !== "gemma4") throw new Error("the header says " + header.value("general.architecture"));
  header.free();
}
const { info } = await engine.inspect(file);
if (info.architecture !== "gemma4") throw new Error("the header says " + info.architecture);
/** Where the runtime has WebGPU (Deno), text becomes tokens and text again. */
async function roundTrip(model) {
  const text = await model.detokenize(await model.tokenize("Hello"));
  await model.free();
  if (text !== "Hello") throw new Error("tokens say " + text);
}
const fits = await engine.load(file).then(roundTrip, (error) => error.code);
if (fits !== undefined && fits !== "no_webgpu" && fits !== "does_not_fit") throw new Error("loading ended with " + fits);
engine.close();
// A server that this process plays itself: a model that says one thing.
async function* reply() {
  yield { type: "text", text: "Hello" };
  yield { type: "done", finish: "stop", usage: { promptTokens: 1, answerTokens: 1 } };
}
const played = { info: { name: "m", kind: "decoder", context: 100 }, chat: reply, complete: reply, tokenize: async () => [1] };
const model = await connect("http://127.0.0.1:9/v1", { fetch: modelFetch(played) });
let text = "";
for await (const event of model.chat([{ role: "user", content: "Hi" }])) if (event.type === "text") text += event.text;
const session = await languageModelOf({ availability: async () => "available", load: async () => played }).create();
const { content } = await createRullama(played)().doGenerate({ prompt: [{ role: "user", content: [{ type: "text", text: "Hi" }] }] });
const said = [text, await session.prompt("Hi"), content.map(({ text }) => text).join("")].join(" ");
if (said !== "Hello Hello Hello" || CATALOGUE.length === 0) throw new Error("it said " + said);
console.log("ok, " + (fits ?? "with a GPU"));
process.exit(0);
`;

/** What runtimes with WebGPU run: a model answers. Without an adapter it says why it cannot. */
const ANSWER = `
import { readFile } from "node:fs/promises";
import process from "node:process";
import { openEngine } from "rullama";
const adapter = await navigator.gpu?.requestAdapter();
if (!adapter) {
  console.log("skipped: " + (navigator.gpu ? "its WebGPU finds no adapter; install a Vulkan driver" : "it has no navigator.gpu"));
  process.exit(0);
}
const engine = openEngine({ worker: false });
const model = await engine.load(new File([await readFile(process.argv[2])], "m.gguf"), { context: 256 });
let usage;
for await (const event of model.complete("Hello", { maxTokens: 4, temperature: 0 })) if (event.type === "done") usage = event.usage;
if (usage?.answerTokens !== 4) throw new Error("it wrote " + usage?.answerTokens + " tokens");
if (!globalThis.Deno && "WorkerGlobalScope" in globalThis) throw new Error("Node still passes for a worker");
await model.free();
console.log("a model answered on " + model.info.device);
process.exit(0);
`;

/** What Node runs before, to have Dawn's WebGPU. */
const DAWN = `
import { create, globals } from "webgpu";
Object.assign(globalThis, globals);
Object.defineProperty(globalThis, "navigator", { value: { gpu: create([]) }, configurable: true });
`;

/** Software GPUs for machines that have no other: Mesa's, which wgpu (Deno) takes, and Chromium's, which Dawn takes. */
const LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";
const SWIFTSHADER = "/usr/lib/chromium/libvk_swiftshader.so";

/** The environment with a Vulkan driver's file. */
function withDriver(driver) {
  const env = { ...process.env };
  const isChosen = env["VK_ICD_FILENAMES"] !== undefined || existsSync("/dev/dri") || !existsSync(driver);
  return isChosen ? env : { ...env, VK_ICD_FILENAMES: driver, VK_DRIVER_FILES: driver, XDG_RUNTIME_DIR: env["XDG_RUNTIME_DIR"] ?? folder };
}

async function dawn() {
  const driver = join(folder, "swiftshader.json");
  if (existsSync(SWIFTSHADER)) await writeFile(driver, JSON.stringify({ file_format_version: "1.0.0", ICD: { library_path: SWIFTSHADER, api_version: "1.1.0" } }));
  await writeFile(join(folder, "dawn.mjs"), DAWN + ANSWER);
  say(`Node with Dawn: ${run(process.execPath, ["dawn.mjs", golden], { env: withDriver(driver) })}`.trim());
}

async function deno() {
  const args = ["run", "--allow-all", "--node-modules-dir=manual"];
  say(`Deno: ${run(bin("deno"), [...args, "runtime.mjs", golden])}`.trim());
  await writeFile(join(folder, "answer.mjs"), ANSWER);
  say(`Deno with WebGPU: ${run(bin("deno"), [...args, "--unstable-webgpu", "answer.mjs", golden], { env: withDriver(LAVAPIPE) })}`.trim());
}

const kept = process.env["RULLAMA_BUNDLERS"];
const folder = kept ?? (await mkdtemp(join(tmpdir(), "rullama-bundlers-")));
const run = (command, args, options = {}) =>
  execFileSync(command, args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"], timeout: BUILD_MS, ...options }).toString();
const bin = (name) => join(folder, "node_modules/.bin", name);

async function install() {
  const [{ filename }] = JSON.parse(run("npm", ["pack", "--json", "--pack-destination", folder, join(web, "client")], { stdio: ["ignore", "pipe", "ignore"] }));
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "tried", private: true, type: "module" }));
  const packages = Object.keys(VERSIONS).filter(wants).flatMap((name) => VERSIONS[name]);
  run("npm", ["install", "--no-audit", "--no-fund", `./${filename}`, ...packages], { stdio: ["ignore", "pipe", "pipe"] });
  await writeFile(join(folder, "runtime.mjs"), RUNTIME);
  await writeFile(join(folder, "inspect.js"), PAGE);
}

/** Opens a built page; fails unless it has read the header. */
async function opens(name, root) {
  await cp(golden, join(root, "m.gguf"));
  const { server, address } = await serve(root);
  const executablePath = BROWSERS.find(existsSync);
  if (!executablePath) throw new Error("no Chromium: `cargo xtask setup` installs it");
  const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    await page.goto(`${address}/`);
    await page.waitForFunction(() => document.title.startsWith("inspected"), undefined, { timeout: LIMIT_MS }).catch(() => {
      throw new Error(`${name}: the page read nothing; ${errors.join("; ") || "it raised no error"}`);
    });
    const title = await page.title();
    if (title !== "inspected gemma4") throw new Error(`${name}: ${title}`);
    say(`${name}: built, and the worker read a header`);
  } finally {
    await browser.close();
    server.close();
  }
}

const HTML = (script) => `<!doctype html><meta charset="utf-8"><title>loading</title><script type="module" src="${script}"></script>`;

async function webpackPage() {
  const root = join(folder, "webpack");
  await rm(root, { recursive: true, force: true });
  await mkdir(root);
  await writeFile(join(root, "main.js"), `import { openEngine } from "rullama";\nimport { inspect } from "../inspect.js";\nawait inspect(openEngine);\n`);
  const config = { mode: "production", entry: "./main.js", output: { path: join(root, "dist"), filename: "main.js", publicPath: "/" }, context: root };
  const script = `import webpack from "webpack";
    webpack(${JSON.stringify(config)}, (error, stats) => {
      const { errors = [], warnings = [] } = stats?.toJson() ?? {};
      if (error || errors.length > 0) throw error ?? new Error(errors.map(({ message }) => message).join("\\n"));
      for (const { message } of warnings) console.warn(message);
    });`;
  run(process.execPath, ["--input-type=module", "-e", script]);
  await writeFile(join(root, "dist/index.html"), HTML("/main.js"));
  await opens("webpack 5", join(root, "dist"));
}

async function nextPage(bundler) {
  const root = join(folder, `next-${bundler}`);
  await rm(root, { recursive: true, force: true });
  await mkdir(join(root, "app"), { recursive: true });
  await cp(join(folder, "inspect.js"), join(root, "app/inspect.js"));
  await writeFile(join(root, "next.config.mjs"), `export default { output: "export", turbopack: { root: ${JSON.stringify(folder)} } };\n`);
  await writeFile(join(root, "app/layout.js"), "export default ({ children }) => <html lang=\"en\"><body>{children}</body></html>;\n");
  await writeFile(
    join(root, "app/page.js"),
    `"use client";
import { useEffect } from "react";
import { openEngine } from "rullama";
import { inspect } from "./inspect.js";
export default function Page() {
  useEffect(() => void inspect(openEngine), []);
  return <p>A page of Next.js</p>;
}
`,
  );
  run(bin("next"), ["build", `--${bundler}`], { cwd: root, env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" } });
  await opens(`Next.js with ${bundler}`, join(root, "out"));
}

async function plainPage() {
  const root = join(folder, "plain");
  await cp(join(folder, "node_modules/rullama/dist"), join(root, "rullama"), { recursive: true });
  await cp(join(folder, "inspect.js"), join(root, "inspect.js"));
  await writeFile(join(root, "main.js"), `import { openEngine } from "./rullama/index.js";\nimport { inspect } from "./inspect.js";\nawait inspect(openEngine);\n`);
  await writeFile(join(root, "index.html"), HTML("/main.js"));
  await opens("a page without a build", root);
}

try {
  await install();
  if ((await readdir(join(folder, "node_modules/rullama"))).includes("src")) throw new Error("the package holds its sources");
  if (wants("node")) say(`Node: ${run(process.execPath, ["runtime.mjs", golden])}`.trim());
  if (wants("deno")) await deno();
  if (wants("bun")) say(`Bun: ${run(bin("bun"), ["run", "runtime.mjs", golden])}`.trim());
  if (wants("dawn")) await dawn();
  if (wants("plain")) await plainPage();
  if (wants("webpack")) await webpackPage();
  if (wants("next")) for (const bundler of ["turbopack", "webpack"]) await nextPage(bundler);
} finally {
  if (kept === undefined) await rm(folder, { recursive: true, force: true });
}
