// The whole way, with nothing made up: `rullama serve`, its app, the engine on a software GPU.
import { type BrowserContext, type Page, test as base } from "@playwright/test";
import { openBrowser } from "../support/browser.ts";
import { type Served, startServe } from "../support/serve.ts";
import { expect } from "./fixture.ts";

/** SwiftShader compiles the kernels of a first answer for minutes on a busy machine. */
export const PATIENCE_MS = 900_000;
export const patient = expect.configure({ timeout: PATIENCE_MS });

export interface Real {
  page: Page;
  serve: Served;
  /** Says something and waits for the answer, which must not be a failure. */
  ask(text: string): Promise<string>;
  /** Waits until something is loaded that can be asked. */
  ready(): Promise<void>;
  newConversation(): Promise<void>;
  /** Drops files of these bytes on the page. */
  drop(files: { name: string; type?: string; bytes: Buffer }[]): Promise<void>;
}

export const test = base.extend<{ real: Real }>({
  // oxlint-disable-next-line no-empty-pattern -- Playwright reads the parameter list.
  real: async ({}, use, testInfo) => {
    testInfo.setTimeout(4 * PATIENCE_MS);
    await withReal({}, use);
  },
});

/** Starts a server and a browser, and ends them; errors that nobody caught fail. */
export async function withReal(
  options: Parameters<typeof startServe>[0],
  use: (real: Real) => Promise<void>,
): Promise<void> {
  const serve = await startServe(options);
  const context = await openBrowser({ viewport: { width: 1100, height: 720 } });
  try {
    context.setDefaultTimeout(120_000);
    const errors: string[] = [];
    context.on("weberror", (error) => errors.push(String(error.error())));
    await use({ serve, ...(await opened(context, serve)) });
    expect(errors).toEqual([]);
  } finally {
    await context.close();
    await serve.stop();
  }
}

/** The app with answers that do not depend on chance. */
async function opened(context: BrowserContext, serve: Served): Promise<Omit<Real, "serve">> {
  const page = context.pages()[0] ?? (await context.newPage());
  await page.goto(`${serve.origin}/#/settings`);
  await page.getByLabel("Temperature").fill("0");
  await page.getByLabel("Temperature").blur();
  // A tenth of the time, on a software GPU.
  await page.getByLabel("Detail").selectOption("up to 70 tokens");
  const field = page.getByRole("textbox", { name: "Message", exact: true });
  const articles = page.getByRole("article");
  const newConversation = () => page.getByRole("button", { name: "New chat" }).click();
  await newConversation();
  return {
    page,
    newConversation,
    ready: () => patient(field).toBeVisible(),
    async ask(text) {
      const before = await articles.count();
      await field.fill(text);
      await patient(page.getByRole("button", { name: "Send" })).toBeEnabled();
      await field.press("Enter");
      await expect(articles).toHaveCount(before + 2);
      await patient(page.getByRole("button", { name: "Send" })).toBeVisible();
      // A failure says why in its place.
      expect(await articles.last().innerText()).toMatch(/tokens\/s · first token after/u);
      return articles.last().locator(".markdown").innerText();
    },
    async drop(files) {
      const plain = files.map(({ name, type = "", bytes }) => ({ name, type, bytes: bytes.toString("base64") }));
      await page.evaluate((given) => {
        const dropped = new DataTransfer();
        for (const { name, type, bytes } of given) {
          const numbers = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
          dropped.items.add(new File([numbers], name, { type }));
        }
        const event = { dataTransfer: dropped, bubbles: true, cancelable: true };
        document.body.dispatchEvent(new DragEvent("drop", event));
      }, plain);
    },
  };
}

export { expect };
