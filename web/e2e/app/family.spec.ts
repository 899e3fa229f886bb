// Related models in the app: diffusion, embeddings, draft models.
import { type Page } from "@playwright/test";
import { PHONE, barriers, change, expect, overflow, say, test } from "./fixture.ts";

const SERVED = [
  { name: "gemma:chat", size: 3_000_000 },
  { name: "diffusion:tiny", size: 3_000_000 },
  { name: "embedding:tiny", size: 3_000_000 },
];

test.use({ fake: { served: SERVED } });

async function choose(page: Page, name: string): Promise<void> {
  await page.evaluate(() => (location.hash = "#/models"));
  await page.getByRole("button", { name: `Choose ${name}` }).click();
}

async function load(page: Page, name: string): Promise<void> {
  await choose(page, name);
  await page.getByRole("button", { name: "Load", exact: true }).click();
}

async function ask(page: Page, text: string): Promise<void> {
  const field = page.getByRole("textbox", { name: "Message", exact: true });
  await field.fill(text);
  await field.press("Enter");
}

test("a block settles in place, and its text replaces it", async ({ app }) => {
  await load(app, "diffusion:tiny");
  await change(app, { answer: "These words settle **slowly**.", word: 1500 });
  await ask(app, "Settle");
  const canvas = app.locator(".canvas");
  await expect(canvas).toContainText("These words settle **slowly**.");
  await expect(canvas.locator("span.settled").first()).toHaveText(/These/u);
  await expect(app.getByText(/Denoising: step \d of up to 48/u)).toBeVisible();
  expect(await barriers(app)).toEqual([]);
  await change(app, { word: 2 });
  await expect(app.locator(".markdown strong")).toHaveText("slowly");
  await expect(canvas).toHaveCount(0);
  await expect(app.getByText(/tokens\/s .* 4 steps/u)).toBeVisible();
  expect(await app.evaluate(() => window.fake?.asked?.options.canvas)).toBe(true);
});

test("settings of settling reach the model; who wants less motion sees steps alone", async ({ app }) => {
  await app.emulateMedia({ reducedMotion: "reduce" });
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByLabel("Steps", { exact: true }).fill("12");
  await app.getByLabel("Entropy bound").fill("0.5");
  await app.getByLabel("Blocks").fill("2");
  await app.getByLabel("Blocks").blur();
  await load(app, "diffusion:tiny");
  await say(app, "Settle");
  const asked = await app.evaluate(() => window.fake?.asked?.options);
  expect(asked).toMatchObject({ steps: 12, entropyBound: 0.5, blocks: 2, canvas: false });
});

for (const scheme of ["light", "dark"] as const) {
  test.describe(`in the ${scheme}, on a phone`, () => {
    test.use({ scheme, viewport: PHONE });

    test("texts are searched by meaning", async ({ app }) => {
      await app.evaluate(() => (location.hash = "#/search"));
      await expect(app.getByRole("button", { name: "Get EmbeddingGemma 300M" })).toBeVisible();
      await app.getByLabel("Texts to add").fill("The whale swims.\n\nBread is baked in an oven.\n\nA fish swims too.");
      await app.getByRole("button", { name: "Add", exact: true }).click();
      await expect(app.getByText("1 document", { exact: true })).toBeVisible();
      await load(app, "embedding:tiny");
      await expect(app.getByRole("heading", { name: "Search texts" })).toBeVisible();
      await app.getByLabel("What are you looking for?").fill("baked bread");
      await app.getByRole("button", { name: "Search", exact: true }).click();
      const found = app.getByRole("region", { name: "Results" }).getByRole("listitem");
      await expect(found).toHaveCount(3);
      await expect(found.first()).toContainText("Bread is baked in an oven.");
      await expect(found.first()).toContainText("Pasted");
      expect(await barriers(app)).toEqual([]);
      expect(await overflow(app)).toBe(0);
      await found.first().getByRole("button", { name: "Pasted" }).click();
      await expect(app.getByRole("dialog").locator("mark")).toHaveText("Bread is baked in an oven.");
      await app.getByRole("dialog").getByRole("button", { name: "Close" }).click();
      await app.getByRole("button", { name: "Remove Pasted" }).click();
      await expect(found).toHaveCount(0);
    });
  });
}

test("text files are added, others are refused", async ({ app }) => {
  await load(app, "embedding:tiny");
  const files = [
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("One thing.\n\nAnother thing.") },
    { name: "picture.bin", mimeType: "application/octet-stream", buffer: Buffer.from([0, 1, 2]) },
  ];
  await app.getByLabel("Open documents").setInputFiles(files);
  await expect(app.getByText("1 document", { exact: true })).toBeVisible();
  await expect(app.getByText("picture.bin is not a text file.")).toBeVisible();
});

test("a model that makes vectors does not chat, and says so", async ({ app }) => {
  await load(app, "embedding:tiny");
  // Loading it ends on the search page.
  await app.getByRole("heading", { name: "Search texts" }).waitFor();
  await app.getByRole("button", { name: "New chat" }).click();
  await expect(app.getByRole("heading", { name: "embedding:tiny is an embedding model" })).toBeVisible();
  await app.getByRole("main").getByRole("link", { name: "Search texts" }).click();
  await expect(app.getByLabel("Texts to add")).toBeVisible();
});

test("drafts are chosen with the model, and what was accepted is shown", async ({ app }) => {
  await choose(app, "gemma:chat");
  await app.getByLabel("Drafting").selectOption("ngram");
  expect(await barriers(app)).toEqual([]);
  await app.getByRole("button", { name: "Load", exact: true }).click();
  await say(app, "Hello");
  expect(await app.evaluate(() => window.fake?.loadedWith?.draft)).toBe("ngram");
  await expect(app.getByText(/tokens\/s · 82% of drafts accepted/u)).toBeVisible();
  await app.getByRole("link", { name: "Models" }).click();
  await expect(app.getByText("n-gram drafting")).toBeVisible();
});

test("a drafter's own file says where it belongs, and is picked there", async ({ app }) => {
  await app.evaluate(() => (location.hash = "#/models"));
  const file = { name: "drafter.gguf", mimeType: "application/octet-stream", buffer: Buffer.from("GGUF") };
  await app.getByLabel("Open GGUF file").setInputFiles(file);
  await expect(app.getByText("A draft model: it speeds up another model.", { exact: false })).toBeVisible();
  await expect(app.getByRole("button", { name: "Load", exact: true })).toHaveCount(0);
  await app.getByRole("button", { name: "Close" }).click();
  await app.getByRole("button", { name: "Choose gemma:chat" }).click();
  await app.getByLabel("Choose draft model").setInputFiles(file);
  await expect(app.getByLabel("Drafting")).toHaveValue("file");
  await app.getByRole("button", { name: "Load", exact: true }).click();
  await expect(app.getByRole("textbox", { name: "Message" })).toBeVisible();
  expect(await app.evaluate(() => window.fake?.loadedWith?.draft)).toBe("drafter.gguf");
});
