// Conversations are kept: over reloads, crashes and tabs; renamed, deleted, found, exported, imported.
import { readFile } from "node:fs/promises";
import { change, DEMO, expect, say, start, test } from "./fixture.ts";

test.use({ fake: { served: DEMO } });

test("a reload keeps everything, and loads the model again", async ({ app }) => {
  await start(app);
  await say(app, "Remember this");
  await app.getByRole("button", { name: "Regenerate" }).click();
  await expect(app.getByText("2 of 2")).toBeVisible();
  await expect(app.getByRole("button", { name: "Send" })).toBeVisible();
  await app.reload();
  await expect(app.getByRole("article").last()).toContainText("You said: Remember this");
  await expect(app.getByText("2 of 2")).toBeVisible();
  await say(app, "And this");
  expect(await app.evaluate(() => window.fake?.asked?.messages.length)).toBe(3);
});

test("a tab that is closed in the middle of an answer loses at most a second", async ({ app, context, server }) => {
  await start(app);
  await change(app, { answer: Array.from({ length: 3000 }, (_, index) => `w${index}`).join(" "), word: 50 });
  const field = app.getByRole("textbox", { name: "Message" });
  await field.fill("Count");
  await field.press("Enter");
  const answer = app.getByRole("article").last();
  const lastWord = (text: string) => Number(/w(\d+)\s*$/u.exec(text)?.[1] ?? -1);
  await expect(answer).toContainText("w30");
  const seen = lastWord(await answer.innerText());
  const { hash } = new URL(app.url());
  await app.close();
  const next = await context.newPage();
  await next.goto(`${server.origin}/${hash}`);
  const kept = lastWord(await next.getByRole("article").last().locator(".markdown").innerText());
  // A second is 20 words at 50 ms each.
  expect(kept).toBeGreaterThan(seen - 20);
  await expect(next.getByText("Incomplete")).toBeVisible();
});

test("an address that is chosen while the app starts is followed", async ({ app }) => {
  await start(app);
  await say(app, "Hello");
  await app.addInitScript(() => {
    const open = IDBFactory.prototype.open;
    IDBFactory.prototype.open = function (name, version) {
      location.hash = "#/settings";
      // Not as a further argument: undefined would be a version.
      return version === undefined ? open.call(this, name) : open.call(this, name, version);
    };
  });
  await app.reload();
  await expect(app.getByRole("heading", { name: "Settings", level: 1 })).toBeVisible();
  await expect(app).toHaveURL(/#\/settings$/u);
});

test("two tabs see each other and lose nothing", async ({ app, context, server }) => {
  await start(app);
  await say(app, "From the first tab");
  const { hash } = new URL(app.url());
  const other = await context.newPage();
  await other.goto(`${server.origin}/${hash}`);
  await expect(other.getByRole("article")).toHaveCount(2);
  await other.getByRole("button", { name: "Load demo:latest" }).click();
  await say(other, "From the second tab");
  await expect(app.getByRole("article")).toHaveCount(4);
  await say(app, "And back");
  await expect(other.getByRole("article")).toHaveCount(6);
  await expect(other.getByRole("article").last()).toContainText("You said: And back");
});

test("rename, delete and undo", async ({ app }) => {
  await start(app);
  await say(app, "Old name");
  await app.getByRole("button", { name: "Options for “Old name”" }).click();
  await app.getByRole("textbox", { name: "Name" }).fill("New name");
  await app.getByRole("button", { name: "Rename" }).click();
  await expect(app.getByRole("link", { name: "New name" })).toBeVisible();
  await app.getByRole("button", { name: "Options for “New name”" }).click();
  await app.getByRole("button", { name: "Delete" }).click();
  await expect(app.getByRole("link", { name: "New name" })).toHaveCount(0);
  await expect(app.getByRole("article")).toHaveCount(0);
  await app.getByRole("button", { name: "Undo" }).click();
  await expect(app.getByRole("link", { name: "New name" })).toBeVisible();
  await expect(app.getByRole("article")).toHaveCount(2);
  await app.reload();
  await expect(app.getByRole("article")).toHaveCount(2);
});

test("Ctrl+K finds words and starts anew", async ({ app }) => {
  await start(app);
  await say(app, "About whales");
  await app.getByRole("button", { name: "New chat" }).click();
  await say(app, "About ants");
  await app.keyboard.press("Control+k");
  const field = app.getByRole("combobox", { name: "Search chats" });
  await expect(field).toBeFocused();
  await field.fill("said: about WHALES");
  await expect(app.getByRole("option")).toHaveCount(2);
  await field.press("Enter");
  await expect(app.getByRole("article").first()).toContainText("About whales");
  await app.keyboard.press("Control+k");
  await field.press("Enter");
  await expect(app.getByText("What can I help with?")).toBeVisible();
});

// Debian's Firefox tells automation nothing of downloads.
test("export and import; a bad file says what is wrong @chromium", async ({ app }) => {
  await start(app);
  await say(app, "Take me along");
  await app.getByRole("link", { name: "Settings" }).click();
  const waiting = app.waitForEvent("download");
  await app.getByRole("button", { name: "Export all as JSON" }).click();
  const file = await waiting;
  expect(file.suggestedFilename()).toMatch(/^rullama-chats-[\d-]+\.json$/u);
  const text = await readFile(await file.path(), "utf8");
  const open = (content: string) =>
    app
      .getByLabel("Import file")
      .setInputFiles({ name: "talk.json", mimeType: "application/json", buffer: Buffer.from(content) });
  await open(text);
  await expect(app.getByText("Imported 1 chat.")).toBeVisible();
  await expect(app.getByRole("link", { name: "Take me along" })).toHaveCount(2);
  await open(text.replace('"role":"user"', '"role":"king"'));
  await expect(
    app.getByText(/Could not import talk.json. Chat 1, message \d: `role` should be one of user, assistant, tool/u),
  ).toBeVisible();
  await open("GGUF");
  await expect(app.getByText(/This is not valid JSON/u)).toBeVisible();
  await expect(app.getByRole("link", { name: "Take me along" })).toHaveCount(2);
});
