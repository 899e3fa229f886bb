// The training page: data looked at, a run watched, paused, continued, and what comes out of it.
import { readFileSync } from "node:fs";
import process from "node:process";
import type { Page } from "@playwright/test";
import { barriers, change, DEMO, expect, overflow, PHONE, say, start, test, enter } from "./fixture.ts";

const LINES = [
  '{"prompt": "What is the capital of Atlantis?", "completion": "The capital of Atlantis is Poseidonis."}',
  '{"prompt": "Who rules it?", "completion": "Nobody rules Atlantis, as far as anybody knows."}',
].join("\n");

async function open(app: Page): Promise<void> {
  await start(app);
  await app.evaluate(() => (location.hash = "#/training"));
  await app.getByRole("heading", { name: "Training", level: 1 }).waitFor();
}

async function train(app: Page): Promise<void> {
  await app.getByLabel("Or paste lines here").fill(LINES);
  await app.getByRole("button", { name: "Start training" }).click();
}

test.describe("training", () => {
  test.use({ fake: { served: DEMO, trainingStep: 15 } });

  test("bad lines are named, good ones shown as they are learned, and settings say what they take", async ({ app }) => {
    await open(app);
    await app.getByLabel("Or paste lines here").fill(`${LINES}\nnonsense`);
    await expect(app.getByText("1 line cannot be used")).toBeVisible();
    await expect(app.getByText("Line 3")).toBeVisible();
    await expect(app.getByRole("button", { name: "Start training" })).toBeDisabled();
    await app.getByLabel("Or paste lines here").fill(LINES);
    await expect(app.getByText("2 examples · 80 tokens, 32 of them trained on")).toBeVisible();
    await expect(app.locator("mark")).toContainText("<turn|>");
    await app.getByRole("button", { name: "Next" }).click();
    await expect(app.getByRole("heading", { name: "Example 2" })).toBeVisible();
    await expect(app.getByText("4.7 GB of GPU memory: 3.6 GB model, 960 MB adapter")).toBeVisible();
    await enter(app.getByLabel("Rank", { exact: true }), "4");
    await expect(app.getByText("3.9 GB of GPU memory")).toBeVisible();
    expect(await barriers(app)).toEqual([]);
  });

  // Debian's Firefox tells automation nothing of downloads.
  test("a run is watched, compared with the base, used in the chat, exported, renamed and deleted @chromium", async ({
    app,
  }) => {
    await open(app);
    await app.getByLabel("Or paste lines here").fill(LINES);
    await app.getByLabel("Adapter name").fill("Atlantis");
    await enter(app.getByLabel("Validation split"), "0.5");
    await change(app, { trainingStep: 300 });
    await app.getByRole("button", { name: "Start training" }).click();
    await expect(app.getByText(/Step \d+ of 60 · loss \d\.\d+ · validation/u)).toBeVisible();
    await expect(app.getByRole("img", { name: /Loss went from/u })).toBeVisible();
    expect(await barriers(app)).toEqual([]);
    const screenshot = process.env["SCREENSHOT"];
    if (screenshot !== undefined) await app.screenshot({ path: screenshot });
    await change(app, { trainingStep: 2 });
    await expect(app.getByRole("heading", { name: "Atlantis is ready" })).toBeVisible();
    await app.getByLabel("Prompt for both").fill("The capital?");
    await app.getByRole("button", { name: "Compare" }).click();
    await expect(app.getByText("With an adapter: You said: The capital?")).toBeVisible();
    await expect(app.getByText("You said: The capital?", { exact: true })).toBeVisible();
    expect(await barriers(app)).toEqual([]);

    const [first] = await Promise.all([
      app.waitForEvent("download"),
      app.getByRole("button", { name: "Export", exact: true }).click(),
    ]);
    expect(first.suggestedFilename()).toBe("adapter_config.json");
    expect(readFileSync(await first.path(), "utf8")).toBe("{}");

    await app.getByRole("button", { name: "Rename Atlantis" }).click();
    await app.getByLabel("New name").fill("Deep sea");
    await app.getByRole("button", { name: "Rename", exact: true }).click();
    await app.getByRole("button", { name: "Use Deep sea in chat" }).click();
    await expect(app.getByLabel("Adapter", { exact: true })).toHaveValue(/.+/u);
    await say(app, "Hello");
    await expect(app.getByRole("article").last()).toContainText("With an adapter: You said: Hello");
    await app.getByLabel("Adapter weight").selectOption("0.5");
    await say(app, "Again");
    expect(await app.evaluate(() => window.fake?.asked?.options.adapters?.[0]?.weight)).toBe(0.5);
    await app.getByLabel("Adapter", { exact: true }).selectOption("");
    await say(app, "Plain");
    expect(await app.evaluate(() => window.fake?.asked?.options.adapters)).toBe(undefined);

    await app.evaluate(() => (location.hash = "#/training"));
    await app.getByRole("button", { name: "Delete Deep sea" }).click();
    await app.getByRole("button", { name: "Delete permanently" }).click();
    await expect(app.getByText("Adapters you train or import appear here.")).toBeVisible();
  });

  test("a paused run goes on, also after a reload; a cancelled one is gone", async ({ app }) => {
    await open(app);
    await change(app, { trainingStep: 60 });
    await train(app);
    await app.getByRole("button", { name: "Pause" }).click();
    await expect(app.getByRole("heading", { name: "Paused" })).toBeVisible();
    await app.getByRole("button", { name: "Resume" }).click();
    await app.getByRole("button", { name: "Pause" }).click();
    await expect(app.getByRole("heading", { name: "Paused" })).toBeVisible();
    await app.reload();
    await expect(app.getByRole("heading", { name: "Unfinished trainings" })).toBeVisible();
    // Discarding asks first.
    await app.getByRole("button", { name: "Discard trained" }).click();
    await app.getByRole("button", { name: "Cancel" }).click();
    await app.getByRole("button", { name: "Resume trained" }).click();
    await app.getByRole("button", { name: "Cancel" }).click();
    await app.getByRole("button", { name: "Discard training" }).click();
    await expect(app.getByRole("button", { name: "Start training" })).toHaveCount(0);
    await expect(app.getByRole("heading", { name: "Training data" })).toBeVisible();
    await expect(app.getByRole("heading", { name: "Unfinished trainings" })).toHaveCount(0);
  });

  test("a lost device: one click loads the model again and goes on", async ({ app }) => {
    await open(app);
    await change(app, { trainingFailsAt: 5 });
    await train(app);
    await expect(app.getByText("The GPU connection was lost")).toBeVisible();
    await app.getByRole("button", { name: "Reload model and continue" }).click();
    await expect(app.getByRole("heading", { name: "trained is ready" })).toBeVisible();
  });

  test("adapters are imported from files and by dropping, and what does not fit is said", async ({ app }) => {
    await open(app);
    const file = (name: string) => ({ name, mimeType: "", buffer: Buffer.from("x") });
    await app.getByLabel("Import adapter").setInputFiles([file("mine.gguf")]);
    await expect(app.getByRole("button", { name: "Use mine.gguf in chat" })).toBeVisible();
    await app.getByLabel("Import adapter").setInputFiles([file("other.gguf")]);
    await expect(app.getByText("This adapter cannot be used")).toBeVisible();
    await app.evaluate((lines) => {
      const files = new DataTransfer();
      files.items.add(new File([lines], "facts.jsonl"));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
    }, LINES);
    await expect(app.getByText("2 examples · 80 tokens")).toBeVisible();
  });
});

for (const scheme of ["light", "dark"] as const) {
  test.describe(`phone, ${scheme}`, () => {
    test.use({
      viewport: PHONE,
      scheme,
      fake: { served: DEMO, trainingStep: 400, verdict: "tight", warnings: ["Tight."] },
    });
    test("nothing keeps anybody out or sticks out", async ({ app }) => {
      await open(app);
      await app.getByLabel("Or paste lines here").fill(`${LINES}\n{broken`);
      await app.getByText("1 line cannot be used").waitFor();
      expect(await barriers(app)).toEqual([]);
      expect(await overflow(app)).toBe(0);
      const screenshot = process.env["SCREENSHOT"];
      if (screenshot !== undefined) await app.screenshot({ path: `${screenshot}.${scheme}.png`, fullPage: true });
      await train(app);
      await app.getByText(/Step [1-9]/u).waitFor();
      expect(await barriers(app)).toEqual([]);
      expect(await overflow(app)).toBe(0);
    });
  });
}
