// The laboratory for tests: a server, a browser, and `run`, which runs a function in the worker (or the page) beside the storage.
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { Page } from "@playwright/test";
import { type Body, patternBody } from "../support/body.ts";
import { test as base, expect, useContext } from "../support/browser.ts";
import { type Firefox, openFirefox } from "../support/firefox.ts";
import { TestServer } from "../support/server.ts";
import type { Lab } from "./lab.ts";

declare global {
  var lab: Lab;
  var runInWorker: (code: string, argument: unknown) => Promise<unknown>;
}

export type Thread = "worker" | "page";
export type Run = <A, R>(code: (argument: A) => R | Promise<R>, argument: A) => Promise<R>;

export const PART = 1 << 16;
/** Sixteen parts and a bit. */
export const SIZE = 16 * PART + 777;

const web = fileURLToPath(new URL("../..", import.meta.url));

/** A way to run functions in a page's laboratory; opens it. */
export async function enter(page: Page, server: TestServer, thread: Thread = "worker"): Promise<Run> {
  await page.goto(`${server.origin}/e2e/storage/`);
  await page.waitForFunction(() => "runInWorker" in globalThis);
  if (thread === "page") return (code, argument) => page.evaluate(code as never, argument) as never;
  const call = (request: { code: string; argument: unknown }) => globalThis.runInWorker(request.code, request.argument);
  return (code, argument) => page.evaluate(call, { code: code.toString(), argument: argument as unknown }) as never;
}

export interface WorkerFixtures {
  /** Run in Debian's Firefox. It has no contexts, and the page is Puppeteer's: tests that need more have the tag `@chromium`. */
  inFirefox: boolean;
  firefox: Firefox | undefined;
}

export const test = base.extend<{ server: TestServer; thread: Thread; run: Run }, WorkerFixtures>({
  inFirefox: [false, { option: true, scope: "worker" }],
  shareBrowser: [async ({ inFirefox }, use) => use(!inFirefox), { scope: "worker" }],
  firefox: [
    async ({ inFirefox }, use) => {
      const firefox = inFirefox ? await openFirefox("about:blank") : undefined;
      await use(firefox);
      await firefox?.close();
    },
    { scope: "worker", timeout: 120_000 },
  ],
  context: async ({ firefox, contextSettings, sharedBrowser, failOnPageError }, use) =>
    firefox ? use(undefined as never) : useContext({ contextSettings, sharedBrowser, failOnPageError }, use),
  page: async ({ firefox, context }, use) =>
    use(firefox ? (firefox.page as unknown as Page) : (context.pages()[0] ?? (await context.newPage()))),
  thread: ["worker", { option: true }],
  // oxlint-disable-next-line no-empty-pattern -- Playwright reads the names in it
  server: async ({}, use) => {
    const server = await TestServer.start({ folders: { "/": web } });
    await use(server);
    await server.close();
  },
  run: async ({ page, server, thread }, use) => use(await enter(page, server, thread)),
});

export async function digest(body: Body, start = 0, end = body.size): Promise<string> {
  return createHash("sha256")
    .update(await body.read(start, end))
    .digest("hex");
}

export { expect, patternBody };
