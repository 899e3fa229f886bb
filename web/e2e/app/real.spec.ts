// The whole way, with nothing made up: `rullama serve`, its app, the engine on a software GPU, and then no server at all.
import { openBrowser } from "../support/browser.ts";
import { expect } from "./fixture.ts";
import { test } from "@playwright/test";
import { startServe } from "./serve.ts";

/** SwiftShader compiles the kernels of a first answer for a minute on a busy machine. */
const PATIENCE_MS = 240_000;

test("load over ranges, answer, reload offline from this browser's storage, answer again", async () => {
  test.setTimeout(3 * PATIENCE_MS);
  const patient = expect.configure({ timeout: PATIENCE_MS });
  const serve = await startServe("tiny-e2b-Q4_K_M.gguf");
  const context = await openBrowser();
  try {
    const errors: string[] = [];
    context.on("weberror", (error) => errors.push(String(error.error())));
    const page = context.pages()[0] ?? (await context.newPage());
    await page.goto(`${serve.origin}/#/settings`);
    await page.getByLabel("Temperature").fill("0");
    await page.getByLabel("Longest answer").fill("6");
    await page.getByLabel("Longest answer").blur();
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("button", { name: "Try it now" }).click();
    const field = page.getByRole("textbox", { name: "Message" });
    await patient(field).toBeVisible();

    const ask = async (text: string) => {
      await field.fill(text);
      await field.press("Enter");
      await patient(page.getByText(/tokens\/s · first token after/u).last()).toBeVisible();
      return page.getByRole("article").last().locator(".markdown").innerText();
    };
    const online = await ask("Why is the sky blue?");
    expect(online.length).toBeGreaterThan(0);

    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    await serve.stop();
    await page.reload();
    await expect(page.getByRole("article")).toHaveCount(2);
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("button", { name: "Load demo" }).click();
    await patient(field).toBeVisible();
    expect(await ask("Why is the sky blue?")).toBe(online);
    expect(errors).toEqual([]);
  } finally {
    await context.close();
    await serve.stop();
  }
});
