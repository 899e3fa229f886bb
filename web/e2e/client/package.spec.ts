// The package as people get it: packed, installed into a new project, built by Vite, imported by a plain page and from a CDN.
import { execFileSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "@playwright/test";
import { build, createServer, preview } from "vite";
import { TestServer } from "../support/server.ts";
import { CLIENT, expect, test } from "./fixtures.ts";
import { GOLDENS } from "./goldens.ts";

const WEB = fileURLToPath(new URL("../../", import.meta.url));
const HEAD = `<!doctype html><meta charset="utf-8"><title>loading</title><link rel="icon" href="data:,">`;

/** What anybody would write; `LOAD` is where `load` comes from. */
const SCRIPT = `
import { load } from "FROM";
const model = await load("/tiny.gguf", { keep: KEEP });
let text = "";
for await (const event of model.chat([{ role: "user", content: "Hello" }], { temperature: 0, maxTokens: 2 })) {
  if (event.type === "text" || event.type === "thinking") text += event.text;
  if (event.type === "done") document.title = "finished: " + event.finish + " " + event.usage.answerTokens;
}
`;

function script(from: string, keep = false): string {
  return SCRIPT.replace("FROM", from).replace("KEEP", String(keep));
}

async function answers(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.waitForFunction(() => document.title.startsWith("finished"), undefined, { timeout: 170_000 });
  expect(await page.title()).toBe("finished: length 2");
}

test.describe("a fresh Vite project", () => {
  let folder: string;

  test.beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "rullama-vite-"));
    const quiet = { cwd: folder, stdio: ["ignore", "pipe", "ignore"] as ["ignore", "pipe", "ignore"] };
    const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", folder, join(WEB, "client")], quiet);
    const [{ filename, files }] = JSON.parse(packed.toString()) as [{ filename: string; files: { path: string }[] }];
    const names = files.map(({ path }) => path);
    for (const wanted of [
      "package.json",
      "README.md",
      "LICENSE-MIT",
      "LICENSE-APACHE",
      "dist/index.js",
      "dist/index.d.ts",
    ]) {
      expect(names).toContain(wanted);
    }
    expect(names.filter((name) => /(^|\/)(src|test|node_modules)\/|\.test\./.test(name))).toEqual([]);
    await writeFile(join(folder, "package.json"), JSON.stringify({ name: "fresh", private: true, type: "module" }));
    execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", `./${filename}`], quiet);
    await writeFile(join(folder, "index.html"), `${HEAD}<script type="module" src="/main.js"></script>`);
    await writeFile(join(folder, "main.js"), script("rullama"));
    await mkdir(join(folder, "public"));
    await cp(join(GOLDENS, "gguf/micro-e2b-Q8_0.gguf"), join(folder, "public/tiny.gguf"));
  });

  test.afterAll(() => rm(folder, { recursive: true, force: true }));

  test("runs in development", { tag: "@slow" }, async ({ page }) => {
    const server = await createServer({
      root: folder,
      configFile: false,
      logLevel: "error",
      server: { port: 0, host: "127.0.0.1" },
    });
    await server.listen();
    try {
      await answers(page, server.resolvedUrls!.local[0]!);
    } finally {
      await server.close();
    }
  });

  test("runs when it is built", async ({ page }) => {
    await build({ root: folder, configFile: false, logLevel: "error" });
    const server = await preview({
      root: folder,
      configFile: false,
      logLevel: "error",
      preview: { port: 0, host: "127.0.0.1" },
    });
    try {
      await answers(page, server.resolvedUrls!.local[0]!);
    } finally {
      await server.close();
    }
  });
});

test("a plain page without a bundler", { tag: "@slow" }, async ({ page }) => {
  const server = await TestServer.start({ folders: { "/lib/": CLIENT }, isolated: false });
  server.file("/tiny.gguf", await model());
  server.html("/", `${HEAD}<script type="module">${script("./lib/index.js")}</script>`);
  await answers(page, server.origin);
  await server.close();
});

test("a page that imports the package from another origin, and keeps the model", { tag: "@slow" }, async ({ page }) => {
  const cdn = await TestServer.start({ folders: { "/rullama@0.6.0/dist/": CLIENT }, isolated: false, cors: true });
  const server = await TestServer.start({ isolated: false });
  server.file("/tiny.gguf", await model());
  server.html(
    "/",
    `${HEAD}<script type="module">${script(`${cdn.origin}/rullama@0.6.0/dist/index.js`, true)}</script>`,
  );
  await answers(page, server.origin);
  await Promise.all([server.close(), cdn.close()]);
});

async function model() {
  const bytes = await readFile(join(GOLDENS, "gguf/micro-e2b-Q8_0.gguf"));
  return { size: bytes.length, read: (start: number, end: number) => bytes.subarray(start, end) };
}
