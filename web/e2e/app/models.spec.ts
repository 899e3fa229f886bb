// Choosing and loading models, what is stored, the device page.
import { en } from "../../app/src/text/en/index.ts";
import { barriers, change, DEMO, expect, start, test, letPersist, enter } from "./fixture.ts";

const SERVED = [
  ...DEMO,
  { name: "gemma4:e2b", size: 3_600_000_000 },
  { name: "broken:1", size: 5, error: "its blob is missing" },
];
test.use({ fake: { served: SERVED } });

test("without a server there is one thing to do: choose a model", async ({ app }) => {
  await change(app, { served: [] });
  await app.reload();
  await change(app, { served: [] });
  await app.evaluate(() => (location.hash = "#/models"));
  await app.getByRole("heading", { name: "Models", level: 1 }).waitFor();
  await app.getByLabel("Open GGUF file").setInputFiles({ name: "my.gguf", mimeType: "", buffer: Buffer.from("GGUF") });
  await expect(app.getByRole("region", { name: "my.gguf" })).toContainText("Fits this GPU");
  await app.getByRole("button", { name: "Load", exact: true }).click();
  await expect(app.getByText("my.gguf runs on this device.")).toBeVisible();
});

test("a served model is looked at before it is loaded", async ({ app }) => {
  await change(app, { verdict: "tight", warnings: ["The browser lets a buffer have 128 MB only."] });
  await app.getByRole("link", { name: "Models" }).click();
  await expect(app.getByText("The server cannot offer this model", { exact: false })).toBeVisible();
  await app.getByText("Technical details").click();
  await expect(app.getByText("its blob is missing")).toBeVisible();
  await app.getByRole("button", { name: "Choose gemma4:e2b" }).click();
  await expect(app.getByRole("region", { name: "gemma4:e2b" })).toContainText("May just fit this GPU");
  await expect(app.getByText("The browser lets a buffer have 128 MB only.")).toBeVisible();
  await expect(app.getByRole("row", { name: /GPU memory/u })).toContainText(
    "3.7 GB: 3.6 GB weights, 64.0 MB KV cache (4,096 tokens)",
  );
  await app.getByRole("button", { name: "Load", exact: true }).click();
  await expect(app.getByRole("textbox", { name: "Message" })).toBeVisible();
  expect(await app.evaluate(() => window.fake?.loadedWith)).toEqual({ context: 4096, cache: "f16", keep: true });
});

test("loading shows bytes, speed and time left, and can be cancelled", async ({ app }) => {
  // Long enough for an estimate: the first seconds tell little.
  await change(app, { loadStep: 800 });
  await app.getByRole("link", { name: "Models" }).click();
  await app.getByRole("button", { name: "Choose gemma4:e2b" }).click();
  await app.getByRole("button", { name: "Load", exact: true }).click();
  await expect(app.getByText(/\d\.\d GB of 3\.6 GB · 90\.0 MB\/s · \d+s left/u)).toBeVisible();
  await expect(app.getByRole("progressbar", { name: "Loading gemma4:e2b" })).toBeVisible();
  await app.getByRole("button", { name: "Cancel" }).click();
  await expect(app.getByRole("progressbar", { name: "Loading gemma4:e2b" })).toHaveCount(0);
  await expect(app.getByRole("button", { name: "Try it now" })).toBeEnabled();
});

test("an address is checked before anything is asked of it", async ({ app }) => {
  await app.getByRole("link", { name: "Models" }).click();
  const field = app.getByLabel("URL of a GGUF file, or Hugging Face repository");
  await field.fill("model.gguf");
  await field.press("Enter");
  await expect(app.getByText(/This is neither a URL nor/u)).toBeVisible();
  await field.fill("ftp://example.org/model.gguf");
  await field.press("Enter");
  await expect(app.getByText("Only https and http URLs can be loaded.")).toBeVisible();
  await field.fill("https://example.org/model.gguf");
  await field.press("Enter");
  await expect(app.getByRole("region", { name: "model.gguf" })).toContainText("Fits this GPU");
});

test("a file dropped anywhere is offered", async ({ app }) => {
  await app.evaluate(() => {
    const files = new DataTransfer();
    files.items.add(new File(["GGUF"], "dropped.gguf"));
    for (const kind of ["dragenter", "dragover", "drop"]) {
      document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
    }
  });
  await expect(app.getByRole("region", { name: "dropped.gguf" })).toContainText("Fits this GPU");
});

test("a picked file is copied where that is wanted, and loads again without it", async ({ app }) => {
  await app.getByRole("link", { name: "Models" }).click();
  const file = (name: string) => ({ name, mimeType: "", buffer: Buffer.from("GGUF") });
  const names = ["my-00001-of-00002.gguf", "my-00002-of-00002.gguf", "mmproj.gguf"];
  await app.getByLabel("Open GGUF file").setInputFiles(names.map(file));
  await app.getByLabel("Keep a copy in this browser (12 bytes)").check();
  expect(await barriers(app)).toEqual([]);
  await change(app, { loadStep: 300 });
  await app.getByRole("button", { name: "Load", exact: true }).click();
  await app.getByRole("textbox", { name: "Message" }).waitFor();
  await app.getByRole("link", { name: "Storage" }).click();
  await expect(app.getByRole("progressbar", { name: `Copying ${names[0]}` })).toBeVisible();
  await expect(app.getByText(`${names[0]} is now stored in this browser.`)).toBeVisible();
  await expect(app.getByText("copied from this device")).toHaveCount(3);
  // The menu offers models, and neither their parts nor encoders.
  await app.getByRole("button", { name: `Model: ${names[0]}` }).click();
  await expect(app.getByRole("menuitemradio", { name: /my-/u })).toHaveCount(1);
  await expect(app.getByRole("menuitemradio", { name: /mmproj/u })).toHaveCount(0);
  await app.reload();
  await app.getByRole("link", { name: "Models" }).click();
  await expect(app.getByRole("region", { name: "Loaded model" })).toContainText(names[0]!);
  expect(await app.evaluate(() => window.fake?.loadedWith?.projector)).toBe("mmproj.gguf");
});

test("a copy that finds no room says so, and the model stays", async ({ app }) => {
  await change(app, { quota: 1 });
  await app.getByRole("link", { name: "Models" }).click();
  await app.getByLabel("Open GGUF file").setInputFiles({ name: "my.gguf", mimeType: "", buffer: Buffer.from("GGUF") });
  await app.getByLabel("Keep a copy in this browser").check();
  await app.getByRole("button", { name: "Load", exact: true }).click();
  await expect(app.getByText("my.gguf could not be copied: Not enough browser storage for this model.")).toBeVisible();
  await expect(app.getByText("my.gguf runs on this device.")).toBeVisible();
});

test("a projector goes with its model, whichever came first", async ({ app }) => {
  await app.getByRole("link", { name: "Models" }).click();
  const file = (name: string) => ({ name, mimeType: "", buffer: Buffer.from("GGUF") });
  const open = (...names: string[]) => app.getByLabel("Open GGUF file").setInputFiles(names.map(file));
  await open("mmproj.gguf");
  await expect(app.getByRole("group", { name: en["failure.projector.title"] })).toBeVisible();
  await app.getByRole("button", { name: en["failure.projector.action"] }).click();
  await open("my.gguf");
  await open("mmproj.gguf");
  await expect(app.getByRole("row", { name: /Vision & audio/u })).toContainText("mmproj.gguf");
  await open("mmproj-other.gguf", "other.gguf");
  await expect(app.getByRole("region", { name: "other.gguf" })).toContainText("mmproj-other.gguf");
  await app.getByRole("button", { name: "Load", exact: true }).click();
  await expect(app.getByText("other.gguf runs on this device.")).toBeVisible();
  expect(await app.evaluate(() => window.fake?.loadedWith?.projector)).toBe("mmproj-other.gguf");
});

// Only Chromium lets tests decide what the browser keeps.
test("what is stored is listed, kept on request, and deleted after a second click @chromium", async ({ app }) => {
  await letPersist(app, "denied");
  await start(app);
  await app.getByRole("link", { name: "Storage" }).click();
  await expect(app.getByText(/3\.0 MB of 10\.0 GB used/u)).toBeVisible();
  await app.getByRole("button", { name: "Protect from automatic deletion" }).click();
  await expect(app.getByText("The browser declined.")).toBeVisible();
  await letPersist(app, "granted");
  await app.getByRole("button", { name: "Protect from automatic deletion" }).click();
  await expect(app.getByText("Protected: the browser will not delete this automatically.")).toBeVisible();
  await app.getByRole("button", { name: "Delete demo:latest" }).click();
  await app.getByRole("button", { name: "Delete 3.0 MB" }).click();
  await expect(app.getByText("No models stored yet.")).toBeVisible();
});

test("the device page tells of the GPU, tests it and measures", async ({ app }) => {
  await start(app);
  await app.getByRole("link", { name: "Device" }).click();
  await expect(app.getByRole("row", { name: /Name/u })).toContainText("Fake GPU");
  await app.getByText("Limits").click();
  await expect(app.getByRole("row", { name: /maxBufferSize/u })).toContainText("4.3 GB");
  await app.getByRole("button", { name: "Run self-test" }).click();
  await expect(app.getByText("4 cases passed.")).toBeVisible();
  await app.getByRole("button", { name: "Measure speed" }).click();
  await expect(app.getByRole("row", { name: /Generation/u })).toContainText("50.0 tokens/s");
});

test("a changed context is offered as a reload", async ({ app }) => {
  await start(app);
  await app.getByRole("link", { name: "Settings" }).click();
  await enter(app.getByLabel("Context size"), "8192");
  await app.getByRole("button", { name: "Reload model now" }).click();
  await expect(app.getByRole("button", { name: "Reload model now" })).toHaveCount(0);
  expect(await app.evaluate(() => window.fake?.loadedWith?.context)).toBe(8192);
});

test("the theme follows the system until it is switched", async ({ app }) => {
  const ground = () => app.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await expect.poll(ground).toBe("rgb(250, 249, 247)");
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByRole("radio", { name: "Dark" }).check();
  await expect.poll(ground).toBe("rgb(23, 22, 20)");
  await app.reload();
  expect(await ground()).toBe("rgb(23, 22, 20)");
});

test.describe("a device that is too small", () => {
  test.use({ fake: { served: DEMO, verdict: "too-large", warnings: ["It takes more than there is."] } });
  test("loads nothing with one click, and says why", async ({ app }) => {
    await app.getByRole("button", { name: "Try it now" }).click();
    await expect(app.getByText("Too large for this GPU")).toBeVisible();
    await expect(app.getByText("It takes more than there is.")).toBeVisible();
    expect(await app.evaluate(() => window.fake?.loads)).toBeUndefined();
    await app.getByRole("button", { name: "Load anyway" }).click();
    await expect(app.getByRole("textbox", { name: "Message" })).toBeVisible();
  });
});

test.describe("an iPhone", () => {
  test.use({ fake: { served: DEMO, verdict: "tight" } });
  test("is told about installing, and asked before a model that may not fit is loaded", async ({ app }) => {
    await app.addInitScript(() => {
      Object.defineProperty(navigator, "userAgent", {
        value: "Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X)",
      });
    });
    await app.reload();
    const hint = app.getByRole("note", { name: "Install the app" });
    await expect(hint).toContainText("Add to Home Screen");
    expect(await barriers(app)).toEqual([]);
    await hint.getByRole("button", { name: "Dismiss" }).click();
    await expect(hint).toHaveCount(0);
    await app.reload();
    await app.getByRole("button", { name: "Try it now" }).click();
    await expect(app.getByRole("region", { name: "demo:latest" })).toContainText("May just fit this GPU");
    await expect(hint).toHaveCount(0);
    expect(await app.evaluate(() => window.fake?.loads)).toBeUndefined();
  });
});
