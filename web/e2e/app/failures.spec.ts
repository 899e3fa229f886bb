// Every failure says what happened and offers one thing to do.
import type { ErrorCode } from "../../client/src/types.ts";
import { en } from "../../app/src/text/en/index.ts";
import { change, DEMO, expect, say, start, stopClock, test } from "./fixture.ts";

test.use({ fake: { served: DEMO } });

test.describe("no WebGPU", () => {
  test.use({ fake: { served: DEMO, webgpu: false } });
  test("says on the first screen that the CPU is used, and explains on the device page", async ({ app }) => {
    const note = app.getByRole("note").filter({ hasText: "A GPU would be faster." });
    await expect(note).toBeVisible();
    await note.getByRole("link").click();
    await expect(app.getByRole("heading", { name: "WebGPU is not available" })).toBeVisible();
    await app.getByText(en["failure.detail"], { exact: true }).click();
    await expect(app.getByText("navigator.gpu is missing.")).toBeVisible();
    const copy = app.getByRole("button", { name: en["selftest.copy"] });
    await copy.waitFor();
    await stopClock(app);
    await copy.click();
    await expect(app.getByRole("button", { name: en["common.copied"] })).toBeVisible();
    await expect.poll(() => app.evaluate(() => navigator.clipboard.readText())).toContain('"userAgent"');
  });

  test("answers on the CPU, and says so of the model", async ({ app }) => {
    await app.getByRole("button", { name: "Try it now" }).click();
    await expect(app.getByRole("textbox", { name: "Message" })).toBeVisible();
    await expect(app.getByRole("note").filter({ hasText: "A GPU would be faster." })).toBeVisible();
    await say(app, "Hello");
    await app.getByRole("link", { name: "Models" }).click();
    await expect(app.getByText("of memory, on the CPU")).toBeVisible();
    // What the CPU is fast enough for is recommended.
    const small = app.getByRole("listitem").filter({ hasText: "Gemma 3 270M" }).first();
    await expect(small).toContainText(en["known.recommended"]);
    await expect(small).toContainText(en["fit.cpuFits"]);
    const large = app.getByRole("listitem").filter({ hasText: "Gemma 4 12B" });
    await expect(large).toContainText(en["fit.cpuTooLarge"]);
  });

  test("says on the training page that training needs a GPU", async ({ app }) => {
    await app.getByRole("button", { name: "Try it now" }).click();
    await expect(app.getByRole("textbox", { name: "Message" })).toBeVisible();
    await app.getByRole("link", { name: en["page.training"] }).click();
    await expect(app.getByText(en["failure.no_webgpu.training"])).toBeVisible();
    await expect(app.getByText(en["training.data"], { exact: true })).toBeHidden();
    await app.getByRole("button", { name: en["failure.no_webgpu.action"] }).click();
    await expect(app.getByRole("heading", { name: "WebGPU is not available" })).toBeVisible();
  });

  test("shows what is slow on the CPU before it is loaded", async ({ app }) => {
    const warning = "It runs on the CPU, slower than people read: a GPU would be faster.";
    await change(app, { verdict: "tight", warnings: [warning] });
    await app.getByRole("button", { name: "Try it now" }).click();
    await expect(app.getByText(en["fit.slowOnCpu"])).toBeVisible();
    await expect(app.getByText(en["fit.cpuTight"]).first()).toBeVisible();
  });
});

const title = (code: ErrorCode) => en[`failure.${code}.title`];
const label = (code: ErrorCode) => en[`failure.${code}.action`];

const LOADING: ErrorCode[] = [
  "out_of_memory",
  "does_not_fit",
  "not_found",
  "network",
  "no_ranges",
  "file_changed",
  "checksum",
  "unverified",
  "quota",
  "storage",
  "bad_file",
  "unsupported_model",
  "bad_options",
  "internal",
  "device_lost",
];

test("failures of loading", async ({ app }) => {
  for (const code of LOADING) {
    await change(app, { loadFailure: code });
    await app.evaluate(() => (location.hash = "#/models"));
    await app.getByRole("button", { name: "Try it now" }).click();
    const card = app.getByRole("group", { name: title(code) });
    await expect(card.getByRole("button")).toHaveText(label(code));
    await expect(card).toContainText(`made up: ${code}`);
  }
  await change(app, { loadFailure: null });
  await app
    .getByRole("group")
    .getByRole("button", { name: label("device_lost") })
    .click();
  await expect(app.getByRole("region", { name: "Loaded model" })).toContainText("demo:latest");
});

test("the device lost in the middle of an answer: what was said is kept, one click goes on", async ({ app }) => {
  await start(app);
  await say(app, "First question");
  await change(app, { answer: "one two three four five", failAfter: { words: 3, code: "device_lost" } });
  await app.getByRole("textbox", { name: "Message" }).fill("Second question");
  await app.getByRole("textbox", { name: "Message" }).press("Enter");
  await expect(app.getByRole("article").last()).toContainText("one two three");
  await expect(app.getByRole("group", { name: title("device_lost") })).toHaveCount(1);
  await app.getByRole("button", { name: "Reload model and continue" }).click();
  await expect(app.getByRole("article").last()).toContainText("one two three four five");
  expect(await app.evaluate(() => window.fake?.loads)).toBe(2);
  // The same answer, and only the rest of it was generated.
  await expect(app.getByRole("article")).toHaveCount(4);
  await expect(app.getByText("1 of 2")).toHaveCount(0);
  expect(await app.evaluate(() => window.fake?.asked?.messages.at(-1))).toMatchObject({ prefix: true });
});

test("an answer that failed before the page was reloaded can still be had with one click", async ({ app }) => {
  await start(app);
  await change(app, { failAfter: { words: 0, code: "device_lost" } });
  await say(app, "Hello");
  await app.evaluate(() => {
    const settings = JSON.parse(localStorage.getItem("rullama-settings") ?? "{}") as object;
    localStorage.setItem("rullama-settings", JSON.stringify({ ...settings, autoload: false }));
  });
  await app.reload();
  await expect(app.getByRole("button", { name: "Load demo:latest" })).toHaveCount(0);
  await app.getByRole("button", { name: "Reload model and continue" }).click();
  await expect(app.getByRole("article").last()).toContainText("You said: Hello");
});

test("other failures of an answer", async ({ app }) => {
  await start(app);
  for (const code of ["out_of_memory", "internal", "bad_options"] as const) {
    await change(app, { failAfter: { words: 1, code } });
    await say(app, `Fail with ${code}`);
    const card = app.getByRole("group", { name: title(code) });
    await expect(card.getByRole("button")).toHaveText(label(code));
    // The engine's own words.
    await expect(card).toContainText(`made up: ${code}`);
  }
});

test("a wrong checksum found later takes the model away", async ({ app }) => {
  await change(app, { verifyFailure: "checksum" });
  await app.getByRole("button", { name: "Try it now" }).click();
  await expect(app.getByRole("group", { name: title("checksum") })).toBeVisible();
  await change(app, { verifyFailure: null });
  await app.getByRole("button", { name: "Download again" }).click();
  await expect(app.getByRole("textbox", { name: "Message" })).toBeVisible();
});

test("a file that is no model", async ({ app }) => {
  await app.getByRole("link", { name: "Choose another model" }).click();
  await app
    .getByLabel("Open GGUF file")
    .setInputFiles({ name: "notes.txt", mimeType: "", buffer: Buffer.from("hello") });
  await expect(app.getByRole("group", { name: title("bad_file") })).toBeVisible();
  await app.getByRole("button", { name: "Choose another file" }).click();
  await expect(app.getByRole("group", { name: title("bad_file") })).toHaveCount(0);
});

test("a server that cannot be reached leaves what is stored", async ({ app }) => {
  await start(app);
  await change(app, { servedFailure: "network" });
  await app.getByRole("link", { name: "Models" }).click();
  await expect(app.getByText("The server's models could not be listed")).toBeVisible();
  await expect(app.getByText("downloaded, works offline")).toBeVisible();
});
