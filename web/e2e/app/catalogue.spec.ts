// Where models come from: the catalogue, Hugging Face, the menu in the header; and the first steps of a newcomer.
import { CATALOGUE } from "../../client/src/catalogue.ts";
import { barriers, change, DEMO, expect, overflow, PHONE, say, start, test } from "./fixture.ts";

test.use({ fake: { served: [...DEMO, { name: "gemma4:e2b", size: 3_600_000_000 }] } });

test("the catalogue says what models need and can do, and checks before it loads", async ({ app }) => {
  await app.getByRole("link", { name: "Models" }).click();
  const known = app.getByRole("region", { name: "Recommended models" });
  await expect(known.getByRole("listitem")).toHaveCount(CATALOGUE.length);
  await expect(known.getByRole("listitem").first()).toContainText("Start here");
  await expect(known.getByRole("listitem").first()).toContainText("3.1 GB download · about 1.9 GB of GPU memory");
  await expect(known.getByRole("listitem").first()).toContainText("Fits this GPU");
  await expect(known.getByRole("listitem").filter({ hasText: "Gemma 4 12B" })).toContainText(
    /May just fit this GPU|Too large for this GPU/u,
  );
  expect(await barriers(app)).toEqual([]);
  await known.getByRole("button", { name: "Choose Gemma 4 E2B" }).click();
  await expect(known.getByRole("row", { name: /Vision & audio/u })).toContainText("mmproj-F16.gguf");
  await known.getByRole("button", { name: "Load", exact: true }).click();
  await expect(app.getByText("gemma-4-E2B-it-Q4_K_M.gguf runs on this device.")).toBeVisible();
  const loaded = () => app.evaluate(() => window.fake?.loadedWith?.projector);
  const projector = "https://huggingface.co/unsloth/gemma-4-E2B-it-GGUF/resolve/main/mmproj-F16.gguf";
  expect(await loaded()).toBe(projector);
  // A reload brings its encoders along.
  await app.reload();
  await expect(app.getByText("gemma-4-E2B-it-Q4_K_M.gguf runs on this device.")).toBeVisible();
  expect(await loaded()).toBe(projector);
});

test("a repository of Hugging Face offers its files, and says when it cannot", async ({ app, context }) => {
  const file = (path: string, size: number) => ({ type: "file", path, size });
  const files = [file("x-Q8_0.gguf", 4e9), file("x-Q4_K_M.gguf", 2e9), file("mmproj-F16.gguf", 1e9)];
  await context.route("https://huggingface.co/api/models/**", (route) =>
    route.request().url().includes("org/repo/")
      ? route.fulfill({ json: files, headers: { "access-control-allow-origin": "*" } })
      : route.fulfill({ status: 404, body: "", headers: { "access-control-allow-origin": "*" } }),
  );
  await app.getByRole("link", { name: "Models" }).click();
  const field = app.getByLabel("URL of a GGUF file, or Hugging Face repository");
  await field.fill("hf.co/org/missing");
  await field.press("Enter");
  await expect(app.getByText("Could not list the files of org/missing.")).toBeVisible();
  await field.fill("https://huggingface.co/org/repo");
  await field.press("Enter");
  const offered = app.getByRole("group", { name: "org/repo" });
  await expect(offered.getByRole("listitem")).toHaveCount(2);
  expect(await barriers(app)).toEqual([]);
  await offered.getByRole("button", { name: "Choose x-Q4_K_M.gguf" }).click();
  await app.getByRole("region", { name: "x-Q4_K_M.gguf" }).getByRole("button", { name: "Load", exact: true }).click();
  await expect(app.getByText("x-Q4_K_M.gguf runs on this device.")).toBeVisible();
  expect(await app.evaluate(() => window.fake?.loadedWith?.projector)).toContain(
    "org/repo/resolve/main/mmproj-F16.gguf",
  );
});

test("the menu in the header changes the model, by keyboard too", async ({ app }) => {
  await start(app);
  await say(app, "Hello");
  const button = app.getByRole("button", { name: "Model: demo:latest" });
  await button.click();
  const menu = app.getByRole("menu", { name: "Models" });
  await expect(menu.getByRole("menuitemradio", { name: /demo:latest/u })).toBeFocused();
  await expect(menu.getByRole("menuitemradio", { name: /demo:latest/u })).toBeChecked();
  expect(await barriers(app)).toEqual([]);
  await app.keyboard.press("Escape");
  await expect(button).toBeFocused();
  await app.keyboard.press("Enter");
  await app.keyboard.press("ArrowDown");
  await app.keyboard.press("Enter");
  await expect(app.getByRole("button", { name: "Model: gemma4:e2b" })).toBeVisible();
  await say(app, "And you?");
  await app.getByRole("button", { name: "Model: gemma4:e2b" }).click();
  await menu.getByRole("menuitem", { name: "Unload" }).click();
  await expect(app.getByRole("button", { name: "Model: Choose a model" })).toBeVisible();
});

test.describe("a newcomer on a phone", () => {
  test.use({ viewport: PHONE });
  test("learns what the demo is, what to ask, and what comes after it", async ({ app }) => {
    await expect(app.getByText("The demo is a tiny model")).toBeVisible();
    await start(app);
    await expect(app.getByRole("link", { name: "For real conversations, get Gemma 4 E2B" })).toBeVisible();
    expect(await overflow(app)).toBe(0);
    expect(await barriers(app)).toEqual([]);
    await app.getByRole("button", { name: "What is 23 + 45?" }).click();
    await expect(app.getByRole("article").last()).toContainText("You said: What is 23 + 45?");
    await change(app, { served: [] });
  });
});
