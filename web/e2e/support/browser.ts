// Chromium as users have it: a profile on disk (so that storage outlives pages and quotas are real), WebGPU, no network but ours.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, type Page, type WebError, chromium, test as base } from "@playwright/test";

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
  const profile = await newProfile();
  const context = await openProfile(profile, options);
  context.on("close", () => void deleteProfile(profile));
  return context;
}

/** A browser with this profile, which outlives it. */
export async function openProfile(profile: string, options: ContextOptions = {}): Promise<BrowserContext> {
  const executablePath = BROWSERS.find(existsSync);
  if (!executablePath) throw new Error("no Chromium: `cargo xtask setup` installs it");
  const { args = [], ...rest } = options;
  return chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    args: [...FLAGS, ...args],
    ...rest,
  });
}

/** A folder for a profile; `deleteProfile` deletes it. */
export function newProfile(): Promise<string> {
  return mkdtemp(join(tmpdir(), "rullama-browser-"));
}

/** Deletes a profile. Retries, because processes of its browser may still write for a moment. */
export function deleteProfile(profile: string): Promise<void> {
  return rm(profile, { recursive: true, force: true, maxRetries: 5 });
}

/** Rejects on errors nobody caught and on crashes: a wasm trap inside an async export never settles its promise. */
export function broken(page: Page): Promise<never> {
  return new Promise((_, reject) => {
    page.on("pageerror", reject);
    page.on("crash", () => reject(new Error("the page crashed")));
  });
}

/** Runs `use` with a context and fails on errors that no page caught meanwhile. */
export async function watched(
  context: BrowserContext,
  failing: boolean,
  use: (context: BrowserContext) => Promise<void>,
) {
  const errors: Error[] = [];
  const note = (error: WebError) => errors.push(error.error());
  context.on("weberror", note);
  await use(context);
  context.off("weberror", note);
  const [first] = errors;
  if (failing && first) throw first;
}

interface Settings {
  failOnPageError: boolean;
}
interface WorkerSettings {
  contextSettings: ContextOptions;
  /** One browser for all tests of a file; the tests tell each other's data apart by using servers (so origins) of their own. */
  shareBrowser: boolean;
  sharedBrowser: BrowserContext | undefined;
}

/** The context of a test: the shared browser, cleaned afterwards, or one of its own. */
export async function useContext(
  { contextSettings, sharedBrowser, failOnPageError }: Settings & Omit<WorkerSettings, "shareBrowser">,
  use: (context: BrowserContext) => Promise<void>,
): Promise<void> {
  const context = sharedBrowser ?? (await openBrowser(contextSettings));
  await watched(context, failOnPageError, use);
  if (!sharedBrowser) return context.close();
  await context.setOffline(false);
  // A browser without pages ends.
  const blank = await context.newPage();
  for (const page of context.pages()) if (page !== blank) await page.close();
}

/** Playwright's `test` in a browser of our own; `context` and `page` are as usual. Page errors fail the test. */
export const test = base.extend<Settings, WorkerSettings>({
  contextSettings: [{}, { option: true, scope: "worker" }],
  shareBrowser: [false, { option: true, scope: "worker" }],
  sharedBrowser: [
    async ({ contextSettings, shareBrowser }, use) => {
      const context = shareBrowser ? await openBrowser(contextSettings) : undefined;
      await use(context);
      await context?.close();
    },
    { scope: "worker", timeout: 120_000 },
  ],
  failOnPageError: [true, { option: true }],
  context: useContext,
  page: async ({ context }, use) => {
    await use(context.pages()[0] ?? (await context.newPage()));
  },
});

export { expect } from "@playwright/test";
