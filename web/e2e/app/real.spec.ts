// What people do first: a model from `rullama serve`, a question, and the same again without a server; then what it sees, hears and
// learns.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Page } from "@playwright/test";
import { MEDIA, right } from "../client/cases.ts";
import { GOLDENS } from "../client/goldens.ts";
import { controlled } from "./fixture.ts";
import { type Real, expect, patient, test } from "./real.ts";

const PICTURE = MEDIA.find(({ file }) => file.endsWith(".png"))!;
const CLIP = MEDIA.find(({ file }) => file.endsWith(".wav"))!;
const bytesOf = (file: string) => readFileSync(join(GOLDENS, file));
const picture = { name: "picture.png", type: "image/png", bytes: bytesOf(`demo/${PICTURE.file}`) };

/** Loads the demo model from what is stored, without a server. */
async function loadOffline({ page, serve, ready, newConversation }: Real): Promise<void> {
  await controlled(page);
  await serve.stop();
  await page.reload();
  await expect(page.getByRole("article")).toHaveCount(2);
  await newConversation();
  // The model that was used last loads by itself.
  await ready();
}

test("load over ranges, answer, reload without a server, load from storage", async ({ real }) => {
  await real.page.getByRole("button", { name: "Try it now" }).click();
  await real.ready();
  expect(await real.ask("What is 23 + 45?")).toContain("68");
  await loadOffline(real);
});

/** Records what a microphone that plays a clip hears. */
async function record(page: Page, bytes: Buffer): Promise<void> {
  await page.evaluate(
    (numbers) => {
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
    },
    [...bytes],
  );
  await page.getByRole("button", { name: "Record audio" }).click();
  await page.waitForFunction(() => "played" in globalThis);
  await page.getByRole("button", { name: "Stop recording" }).click();
  await expect(page.getByLabel("recording", { exact: true })).toBeVisible();
}

test(
  "the demo model sees a dropped image, hears a recording, and answers without a server",
  { tag: "@slow" },
  async ({ real }) => {
    const { page, ask } = real;
    await page.getByRole("button", { name: "Try it now" }).click();
    await real.ready();
    await real.drop([picture]);
    await expect(page.getByRole("img", { name: picture.name })).toBeVisible();
    const seen = { text: await ask(PICTURE.question), thinking: "", calls: [] };
    expect(right(PICTURE.check, seen), seen.text).toBe(true);
    // The README's screenshot is made by this test.
    const screenshot = process.env["SCREENSHOT"];
    if (screenshot !== undefined) await page.screenshot({ path: screenshot });

    await real.newConversation();
    await record(page, bytesOf(`demo/${CLIP.file}`));
    const heard = { text: await ask(CLIP.question), thinking: "", calls: [] };
    expect(right(CLIP.check, heard), heard.text).toBe(true);

    await loadOffline(real);
    expect(await ask("What is 23 + 45?")).toContain("68");
  },
);

test("a dropped model with its projector dropped beside it sees an image", { tag: "@slow" }, async ({ real }) => {
  const { page } = real;
  const file = (name: string) => ({ name, bytes: bytesOf(`gguf/${name}`) });
  await real.drop([file("micro-e2b-Q8_0.gguf")]);
  await expect(page.getByRole("button", { name: "Load", exact: true })).toBeVisible();
  await expect(page.getByText("vision & audio, when used")).toHaveCount(0);
  await real.drop([file("micro-e2b-mmproj-F16.gguf")]);
  await expect(page.getByText("micro-e2b-mmproj-F16.gguf")).toBeVisible();
  await expect(page.getByText("vision & audio, when used")).toBeVisible();
  await page.getByLabel("Drafting").selectOption("off");
  await page.getByRole("button", { name: "Load", exact: true }).click();
  await real.ready();
  await page.evaluate(() => (location.hash = "#/settings"));
  await page.getByLabel("Max tokens").fill("2");
  await page.getByLabel("Max tokens").blur();
  await real.newConversation();
  await real.drop([picture]);
  await expect(page.getByRole("img", { name: picture.name })).toBeVisible();
  await real.ask("What is it?");
});

test("an adapter is trained on the training page and answers beside the base", { tag: "@slow" }, async ({ real }) => {
  const { page } = real;
  await page.getByRole("button", { name: "Try it now" }).click();
  await real.ready();
  await page.evaluate(() => (location.hash = "#/training"));
  const line = { prompt: "Capital?", completion: "Poseidonis." };
  await page.getByLabel("Or paste lines here").fill(JSON.stringify(line));
  await page.getByLabel("Adapter name").fill("Atlantis");
  for (const [label, value] of [
    ["Rank", "4"],
    ["Steps", "3"],
  ] as const) {
    await page.getByLabel(label, { exact: true }).fill(value);
    await page.getByLabel(label, { exact: true }).blur();
  }
  await expect(page.getByText("of GPU memory:")).toBeVisible();
  await page.getByRole("button", { name: "Start training" }).click();
  await patient(page.getByText(/Step [1-3] of 3 · loss \d/u)).toBeVisible();
  await patient(page.getByRole("heading", { name: "Atlantis is ready" })).toBeVisible();
  await page.getByRole("button", { name: "Use Atlantis in chat" }).click();
  await real.ask("Capital?");
  await page.getByRole("button", { name: "Compare with another model" }).click();
  await page.getByRole("dialog").getByLabel("Compare with").selectOption({ label: "demo without an adapter" });
  await page.getByRole("dialog").getByRole("button", { name: "Compare" }).click();
  const pair = page.getByRole("group", { name: "Answers side by side" });
  const keep = pair.getByRole("button", { name: "Keep this answer: demo", exact: true });
  await patient(keep).toBeVisible();
  await expect(pair.getByRole("region", { name: "demo + Atlantis" })).toContainText(/\w/u);
  await keep.click();
  await expect(page.getByLabel("Adapter", { exact: true })).toHaveValue("");
  await real.ask("And what is 23 + 45?");
});
