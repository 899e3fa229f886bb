// Chromium as users have it: a profile on disk (so that storage outlives pages and quotas are real), WebGPU, no network but ours.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, type Page, chromium, test as base } from "@playwright/test";

const BROWSERS = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];
// Software adapters are offered behind the first flag alone; the others keep the browser off the network.
const FLAGS = [
  "--enable-unsafe-webgpu",
  "--no-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export type ContextOptions = NonNullable<Parameters<typeof chromium.launchPersistentContext>[1]>;

/** A browser with a new profile of its own; `close` ends it and deletes the profile. */
export async function openBrowser(options: ContextOptions = {}): Promise<BrowserContext> {
  const executablePath = BROWSERS.find(existsSync);
  if (!executablePath) throw new Error("no Chromium: `cargo xtask setup` installs it");
  const profile = await mkdtemp(join(tmpdir(), "rullama-browser-"));
  const { args = [], ...rest } = options;
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    args: [...FLAGS, ...args],
    ...rest,
  });
  context.on("close", () => void rm(profile, { recursive: true, force: true, maxRetries: 5 }));
  return context;
}

/** Rejects on errors nobody caught and on crashes: a wasm trap inside an async export never settles its promise. */
export function broken(page: Page): Promise<never> {
  return new Promise((_, reject) => {
    page.on("pageerror", reject);
    page.on("crash", () => reject(new Error("the page crashed")));
  });
}

/** Playwright's `test` in a browser of our own, one profile per test; `context` and `page` are as usual. Page errors fail the test. */
export const test = base.extend<{ contextSettings: ContextOptions; failOnPageError: boolean }>({
  contextSettings: [{}, { option: true }],
  failOnPageError: [true, { option: true }],
  context: async ({ contextSettings, failOnPageError }, use) => {
    const context = await openBrowser(contextSettings);
    const errors: Error[] = [];
    context.on("weberror", (error) => errors.push(error.error()));
    await use(context);
    await context.close();
    const [first] = errors;
    if (failOnPageError && first) throw first;
  },
  page: async ({ context }, use) => {
    await use(context.pages()[0] ?? (await context.newPage()));
  },
});

export { expect } from "@playwright/test";
