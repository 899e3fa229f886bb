// The whole way, with nothing made up but the microphone: `rullama serve`, its app, the engine on a software GPU, the demo model,
// and then no server at all.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { type Page, test } from "@playwright/test";
import { MEDIA, right } from "../client/cases.ts";
import { GOLDENS } from "../client/goldens.ts";
import { openBrowser } from "../support/browser.ts";
import { expect } from "./fixture.ts";
import { startServe } from "./serve.ts";

/** SwiftShader compiles the kernels of a first answer for minutes on a busy machine. */
const PATIENCE_MS = 900_000;
const PICTURE = MEDIA.find(({ file }) => file.endsWith(".png"))!;
const CLIP = MEDIA.find(({ file }) => file.endsWith(".wav"))!;
const bytesOf = (file: string) => [...readFileSync(join(GOLDENS, "demo", file))];

async function drop(page: Page, name: string, bytes: number[]): Promise<void> {
  await page.evaluate(
    ({ name, bytes }) => {
      const files = new DataTransfer();
      files.items.add(new File([new Uint8Array(bytes)], name, { type: "image/png" }));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
    },
    { name, bytes },
  );
  await expect(page.getByRole("img", { name })).toBeVisible();
}

/** Records what a microphone that plays a clip hears. */
async function record(page: Page, bytes: number[]): Promise<void> {
  await page.evaluate((numbers) => {
    navigator.mediaDevices.getUserMedia = async () => {
      const context = new AudioContext();
      const clip = context.createBufferSource();
      clip.buffer = await context.decodeAudioData(new Uint8Array(numbers).buffer);
      const microphone = context.createMediaStreamDestination();
      clip.connect(microphone);
      clip.onended = () => Object.assign(globalThis, { played: true });
      clip.start(context.currentTime + 0.3);
      return microphone.stream;
    };
  }, bytes);
  await page.getByRole("button", { name: "Record sound" }).click();
  await page.waitForFunction(() => "played" in globalThis);
  await page.getByRole("button", { name: "End the recording" }).click();
  await expect(page.getByLabel("recording", { exact: true })).toBeVisible();
}

test("load over ranges, answer, see a dropped picture, hear a recording, reload offline, answer again", async () => {
  test.setTimeout(4 * PATIENCE_MS);
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
    // A tenth of the time, on a software GPU.
    await page.getByLabel("Detail").selectOption("at most 70 tokens");
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("button", { name: "Try it now" }).click();
    const field = page.getByRole("textbox", { name: "Message" });
    await patient(field).toBeVisible();

    const articles = page.getByRole("article");
    const ask = async (text: string) => {
      const before = await articles.count();
      await field.fill(text);
      await field.press("Enter");
      await expect(articles).toHaveCount(before + 2);
      await patient(page.getByRole("button", { name: "Send" })).toBeVisible();
      // A failure says why in its place.
      expect(await articles.last().innerText()).toMatch(/tokens\/s · first token after/u);
      return { text: await articles.last().locator(".markdown").innerText(), thinking: "", calls: [] };
    };
    expect((await ask("What is 23 + 45?")).text).toContain("68");

    await page.getByRole("button", { name: "New conversation" }).click();
    await drop(page, "picture.png", bytesOf(PICTURE.file));
    const seen = await ask(PICTURE.question);
    expect(right(PICTURE.check, seen), seen.text).toBe(true);
    // The README's picture is made by this test.
    const screenshot = process.env["SCREENSHOT"];
    if (screenshot !== undefined) await page.screenshot({ path: screenshot });

    await page.getByRole("button", { name: "New conversation" }).click();
    await record(page, bytesOf(CLIP.file));
    const heard = await ask(CLIP.question);
    expect(right(CLIP.check, heard), heard.text).toBe(true);

    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    await serve.stop();
    await page.reload();
    await expect(page.getByRole("article")).toHaveCount(2);
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("button", { name: "Load demo" }).click();
    await patient(field).toBeVisible();
    expect((await ask("What is 23 + 45?")).text).toContain("68");
    expect(errors).toEqual([]);
  } finally {
    await context.close();
    await serve.stop();
  }
});
