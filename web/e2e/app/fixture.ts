// The app around a made-up engine, served with the headers that `rullama serve` sends; a fresh browser profile per test.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Browser, type Locator, type Page, test as base } from "@playwright/test";
import { POLICY } from "../../app/policy.ts";
import type { Fake } from "../../app/test/fake-engine.ts";
import { builtApp } from "./build.ts";
import { openBrowser } from "../support/browser.ts";
import { launchFirefox } from "../support/firefox.ts";
import { TestServer } from "../support/server.ts";

/** Patient: the machine may be busy with other tests. */
export const expect = base.expect.configure({ timeout: 30_000 });

const AXE = fileURLToPath(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url));

/** The policy of `rullama serve` (crates/server, headers.rs). */
const SENT = `${POLICY}; frame-ancestors 'none'`;

export const PHONE = { width: 360, height: 740 };
export const SMALLEST = { width: 320, height: 568 };
export const DESKTOP = { width: 1280, height: 800 };

interface Fixtures {
  /** Fields of the made-up engine, set before the app starts. */
  fake: Fake;
  scheme: "light" | "dark";
  app: Page;
}

export interface WorkerFixtures {
  /** Debian's Firefox instead of Chromium. */
  inFirefox: boolean;
  /** Tests with a name here get a browser that has run no others. */
  ownBrowser: string;
  shared: Browser;
  server: TestServer;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  inFirefox: [false, { option: true, scope: "worker" }],
  ownBrowser: ["", { option: true, scope: "worker" }],
  fake: [{}, { option: true }],
  scheme: ["light", { option: true }],
  // But for tests that are about them: in each context one would fetch and store the whole app.
  serviceWorkers: "block",
  viewport: DESKTOP,
  locale: "en",
  shared: [
    async ({ inFirefox }, use) => {
      if (inFirefox) {
        const browser = await launchFirefox();
        await use(browser);
        return browser.close();
      }
      // A microphone that beeps, and nobody to ask for it.
      const args = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];
      const context = await openBrowser({ args });
      await use(context.browser() as Browser);
      await context.close();
    },
    { scope: "worker", timeout: 120_000 },
  ],
  server: [
    // oxlint-disable-next-line no-empty-pattern -- Playwright reads the parameter list.
    async ({}, use) => {
      const server = await TestServer.start({
        folders: { "/": builtApp() },
        headers: { "content-security-policy": SENT, "x-content-type-options": "nosniff" },
      });
      await use(server);
      await server.close();
    },
    // The first test may have to wait for a build.
    { scope: "worker", timeout: 180_000 },
  ],
  context: async ({ shared, inFirefox, viewport, scheme, serviceWorkers, locale }, use, testInfo) => {
    testInfo.setTimeout(240_000);
    const context = await shared.newContext({
      viewport,
      colorScheme: scheme,
      acceptDownloads: true,
      serviceWorkers,
      locale,
    });
    if (!inFirefox) await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    context.setDefaultTimeout(30_000);
    const errors: Error[] = [];
    context.on("weberror", (error) => {
      const thrown = error.error();
      // Firefox reports servers that cannot be reached in the same way; Playwright takes the words before the colon for a name.
      if (!`${thrown.name}: ${thrown.message}`.includes("Cross-Origin Request Blocked")) errors.push(thrown);
    });
    // Whatever the policy forbids is told on the console.
    context.on("console", (message) => {
      if (/content security policy/iu.test(message.text())) errors.push(new Error(message.text()));
    });
    await use(context);
    await context.close();
    const [first] = errors;
    if (first) throw first;
  },
  page: async ({ context }, use) => {
    await use(await context.newPage());
  },
  app: async ({ context, page, server, fake }, use) => {
    // As text: what messages may hold is more than Playwright's types can pass on.
    const given = JSON.stringify(fake);
    await context.addInitScript((text) => (window.fake = { ...(JSON.parse(text) as Fake), ...window.fake }), given);
    await page.goto(server.origin);
    await page.getByRole("main").waitFor();
    await use(page);
  },
});

/** Changes the made-up engine while the app runs; null takes a field away. */
export async function change(page: Page, fields: { [K in keyof Fake]: Fake[K] | null }): Promise<void> {
  await page.evaluate((text) => {
    const changed = { ...window.fake, ...(JSON.parse(text) as Record<string, unknown>) };
    window.fake = Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== null)) as Fake;
  }, JSON.stringify(fields));
}

/** What the browser answers when the app asks it to keep what is stored. */
export async function letPersist(page: Page, setting: "granted" | "denied"): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const { targetInfo } = await session.send("Target.getTargetInfo");
  const { browserContextId } = targetInfo;
  const { origin } = new URL(page.url());
  const permission = { name: "persistent-storage" };
  await session.send("Browser.setPermission", { permission, setting, origin, browserContextId });
}

/** A server's model that newcomers are offered. */
export const DEMO = [{ name: "demo:latest", size: 3_000_000 }];

/** Loads the demonstration model from the first screen. */
export async function start(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Try it now" }).click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
}

/** Fills a field as a person would: in Firefox, automation appends to numbers, and what it fills in does not count as a change. */
export async function enter(field: Locator, text: string): Promise<void> {
  await field.evaluate((one: HTMLInputElement) => void (one.value = ""));
  await field.fill(text);
  await field.dispatchEvent("change");
}

/** Begins a new chat, and waits until it is shown: what is typed before belongs to the one that is left. */
export async function newChat(page: Page): Promise<void> {
  await page.getByRole("button", { name: "New chat" }).click();
  await expect(page.getByRole("heading", { name: "New chat", level: 1 })).toBeAttached();
  await expect(page.getByRole("article")).toHaveCount(0);
}

/** Says something as soon as a model can answer, and waits for the answer to end. */
export async function say(page: Page, text: string): Promise<void> {
  // Behind one that is still closing, what is filled in goes to the one in front.
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  const field = page.getByRole("textbox", { name: "Message", exact: true });
  await field.fill(text);
  // Enter does nothing while a model is still being loaded.
  await expect(page.getByRole("button", { name: "Send" })).toBeEnabled();
  // A chat that was just left may have been shown until now.
  const answers = await page.getByRole("article").count();
  await field.press("Enter");
  await page
    .getByRole("article")
    .nth(answers + 1)
    .waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
}

/** Stops the page's clock: what lasts a moment is there until `page.clock.runFor` lets it end. Timers up to a minute ahead are due at once. */
export async function stopClock(page: Page): Promise<void> {
  const now = Date.now();
  await page.clock.install({ time: now });
  await page.clock.pauseAt(now + 60_000);
}

/** Makes what waits for the page's database to write wait longer, as a busy disk does. */
export async function slowDatabase(page: Page, ms: number): Promise<void> {
  await page.evaluate((delay) => {
    Object.defineProperty(IDBTransaction.prototype, "oncomplete", {
      configurable: true,
      set(this: IDBTransaction, told: () => void) {
        this.addEventListener("complete", () => setTimeout(told, delay));
      },
    });
  }, ms);
}

/** Waits until a service worker has everything and controls the page. It claims pages before it is done with becoming active. */
export async function controlled(page: Page): Promise<void> {
  // It stores the whole app, which takes a busy machine a while.
  await page.waitForFunction(() => navigator.serviceWorker.controller?.state === "activated", null, {
    timeout: 120_000,
  });
}

/** Waits until an answer that the made-up engine holds was told to stop, and lets go of the engine. */
export async function releaseStopped(page: Page): Promise<void> {
  await expect(page.getByRole("button", { name: "Stopping…" })).toBeVisible();
  await change(page, { held: null });
}

/** Waits until what was changed is in the database: transactions are carried out in their order. */
export async function saved(page: Page): Promise<void> {
  await page.evaluate(
    () =>
      new Promise<void>((resolve, reject) => {
        const request = indexedDB.open("rullama");
        request.onerror = () => reject(request.error);
        request.onsuccess = () => {
          const db = request.result;
          const transaction = db.transaction(["conversations"], "readwrite");
          transaction.oncomplete = () => (db.close(), resolve());
          transaction.onabort = () => (db.close(), reject(transaction.error));
          transaction.objectStore("conversations").count();
        };
      }),
  );
}

interface AxeResult {
  violations: { id: string; impact: string | null; nodes: { html: string; failureSummary?: string }[] }[];
}

/** Violations of accessibility rules, of any impact. */
export async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(readFileSync(AXE, "utf8"));
  const result = await page.evaluate(() => {
    const { axe } = window as unknown as { axe: { run(): Promise<AxeResult> } };
    return axe.run();
  });
  return result.violations.map(
    (one) => `${one.id}: ${one.nodes.map((node) => `${node.html} ${node.failureSummary ?? ""}`).join("\n")}`,
  );
}

/** Nothing sticks out sideways. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => {
    const inside = [...document.querySelectorAll("main *")].filter((one) => {
      const { left, right } = one.getBoundingClientRect();
      return !one.closest("pre, .wide, .unseen, dialog") && (right > innerWidth + 1 || left < -1);
    });
    return Math.max(inside.length, document.documentElement.scrollWidth - innerWidth);
  });
}
