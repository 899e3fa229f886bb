// The whole way, with nothing made up: `rullama serve`, its app, the engine on a software GPU, and then no server at all.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { GOLDENS } from "../client/goldens.ts";
import { openBrowser } from "../support/browser.ts";
import { expect } from "./fixture.ts";
import { test } from "@playwright/test";
import { startServe } from "./serve.ts";

/** SwiftShader compiles the kernels of a first answer for a minute on a busy machine. */
const PATIENCE_MS = 400_000;

test("load over ranges, answer, see a dropped picture, reload offline, answer again", async () => {
  test.setTimeout(3 * PATIENCE_MS);
  const patient = expect.configure({ timeout: PATIENCE_MS });
  const serve = await startServe();
  const context = await openBrowser({ viewport: { width: 1100, height: 720 } });
  try {
    const errors: string[] = [];
    context.on("weberror", (error) => errors.push(String(error.error())));
    const page = context.pages()[0] ?? (await context.newPage());
    await page.goto(`${serve.origin}/#/settings`);
    await page.getByLabel("Temperature").fill("0");
    await page.getByLabel("Temperature").blur();
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("button", { name: "Try it now" }).click();
    const field = page.getByRole("textbox", { name: "Message" });
    await patient(field).toBeVisible();

    const endings = page.getByText(/tokens\/s · first token after/u);
    const ask = async (text: string) => {
      const before = await endings.count();
      await field.fill(text);
      await field.press("Enter");
      await patient(endings).toHaveCount(before + 1);
      return page.getByRole("article").last().locator(".markdown").innerText();
    };
    expect(await ask("What is 23 + 45?")).toContain("68");

    const bytes = [...readFileSync(join(GOLDENS, "demo/picture-1.png"))];
    await page.evaluate((numbers) => {
      const files = new DataTransfer();
      files.items.add(new File([new Uint8Array(numbers)], "picture.png", { type: "image/png" }));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
    }, bytes);
    await expect(page.getByRole("img", { name: "picture.png" })).toBeVisible();
    expect(await ask("What is in the picture?")).toMatch(/two green triangles/iu);
    // The README's picture is made by this test.
    const picture = process.env["SCREENSHOT"];
    if (picture !== undefined) await page.screenshot({ path: picture });

    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    await serve.stop();
    await page.reload();
    await expect(page.getByRole("article")).toHaveCount(4);
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("button", { name: "Load demo" }).click();
    await patient(field).toBeVisible();
    expect(await ask("What is 23 + 45?")).toContain("68");
    expect(errors).toEqual([]);
  } finally {
    await context.close();
    await serve.stop();
  }
});
