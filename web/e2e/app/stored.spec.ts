// What the browser stores for the app: asked to keep it, unfinished downloads, names, and attachments in a store of their own.
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { GOLDENS } from "../client/goldens.ts";
import { DEMO, expect, letPersist, say, start, test } from "./fixture.ts";

const PICTURE = join(GOLDENS, "demo/picture-1.png");

test.use({ fake: { served: DEMO } });

// Only Chromium lets tests decide what the browser keeps.
test("a model that is kept makes the app ask the browser to keep it, once @chromium", async ({ app }) => {
  await letPersist(app, "denied");
  await app.evaluate(() => {
    const { persist } = navigator.storage;
    const answers: boolean[] = [];
    Object.assign(globalThis, { answers });
    navigator.storage.persist = async () => {
      const granted = await persist.call(navigator.storage);
      answers.push(granted);
      return granted;
    };
  });
  await start(app);
  const answers = () => app.evaluate(() => (globalThis as unknown as { answers: boolean[] }).answers);
  await expect.poll(answers).toEqual([false]);
  await app.getByRole("link", { name: "Storage" }).click();
  await expect(app.getByText("The browser may delete this when the disk is full.")).toBeVisible();
  expect(await answers()).toEqual([false]);
});

test("unfinished downloads and files of addresses are told apart", async ({ app }) => {
  await app.evaluate(() => {
    const one = { id: "a", bytes: 4e9, added: 1, used: Date.now() };
    const source = "https://example.com/gemma4:e2b";
    const forged = { ...one, name: "demo:latest", names: [], source, have: 4e9, complete: true };
    const cut = { ...one, id: "b", name: "cut:1", names: ["cut:1"], source: "cut:1", have: 1e9, complete: false };
    localStorage.setItem("fake-stored-models", JSON.stringify([forged, cut]));
  });
  await app.getByRole("link", { name: "Storage" }).click();
  const unfinished = app.getByRole("region", { name: "Unfinished downloads" });
  await expect(unfinished).toContainText("cut:1");
  await expect(unfinished).toContainText("1.0 GB of 4.0 GB downloaded");
  await expect(app.getByRole("region", { name: "Models", exact: true })).not.toContainText("cut:1");
  await app.getByRole("link", { name: "Models" }).click();
  // The one that is served is not here, whatever a file calls itself.
  await expect(app.getByRole("region", { name: "On this server" })).not.toContainText("downloaded");
  await expect(app.getByRole("region", { name: "In this browser" })).toContainText("https://example.com/gemma4:e2b");
});

test("a message with a large image stays in its conversation, whatever is opened at once", async ({ app }) => {
  await start(app);
  await say(app, "The other one");
  const other = new URL(app.url()).hash;
  await app.getByRole("button", { name: "New chat" }).click();
  await say(app, "This one");
  const large = { name: "large.png", mimeType: "image/png", buffer: Buffer.alloc(8_000_000, readFileSync(PICTURE)) };
  await app.getByLabel("Images, audio and video").setInputFiles(large);
  await expect(app.getByRole("button", { name: "Remove large.png" })).toBeVisible();
  const field = app.getByRole("textbox", { name: "Message", exact: true });
  await field.fill("Look at this");
  const { hash: own } = new URL(app.url());
  await field.evaluate((element, hash) => {
    element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
    location.hash = hash;
  }, other);
  await expect(app.getByRole("button", { name: "Send" })).toBeVisible();
  await expect.poll(() => app.evaluate(() => window.fake?.asked?.messages.length)).toBe(3);
  await expect(app.getByRole("article")).toHaveCount(2);
  await expect(app.getByRole("article").last()).toContainText("You said: The other one");
  await app.evaluate((hash) => (location.hash = hash), own);
  await expect(app.getByRole("article")).toHaveCount(4);
  await expect(app.getByRole("article").last()).toContainText("[image] Look at this");
  await app.reload();
  await expect(app.getByRole("article")).toHaveCount(4);
});

// Debian's Firefox tells automation nothing of downloads.
test("attachments of earlier versions move into a store of their own, and nothing is lost @chromium", async ({
  app,
  server,
}) => {
  const data = `data:image/png;base64,${readFileSync(PICTURE).toString("base64")}`;
  // As the first version laid it out, where no page of the app is open.
  server.html("/empty", "<!doctype html><title>empty</title>");
  await app.goto(`${server.origin}/empty`);
  await app.evaluate(async (image) => {
    const done = (request: IDBRequest) =>
      new Promise((resolve, reject) => {
        request.onsuccess = resolve;
        request.onerror = () => reject(request.error);
      });
    await done(indexedDB.deleteDatabase("rullama"));
    const opening = indexedDB.open("rullama", 1);
    opening.onupgradeneeded = () => {
      opening.result.createObjectStore("conversations", { keyPath: "id" });
      opening.result.createObjectStore("turns", { keyPath: "id" }).createIndex("conversation", "conversation");
    };
    await done(opening);
    const transaction = opening.result.transaction(["conversations", "turns"], "readwrite");
    const times = { created: 1, updated: 1 };
    transaction.objectStore("conversations").put({ id: "c", title: "Old", leaf: "a", ...times });
    const attachments = [{ kind: "image", name: "old.png", data: image }];
    const turns = transaction.objectStore("turns");
    turns.put({ id: "q", conversation: "c", parent: null, role: "user", content: "Look", created: 1, attachments });
    turns.put({
      id: "a",
      conversation: "c",
      parent: "q",
      role: "assistant",
      content: "I see",
      created: 2,
      finish: "stop",
    });
    await new Promise((resolve) => (transaction.oncomplete = resolve));
    opening.result.close();
  }, data);
  await app.goto(`${server.origin}/#/chat/c`);
  const image = app.getByRole("img", { name: "old.png" });
  await expect.poll(() => image.evaluate((one: HTMLImageElement) => one.naturalWidth)).toBeGreaterThan(0);
  await expect(app.getByRole("article").last()).toContainText("I see");
  const rows = await app.evaluate(async () => {
    const opening = indexedDB.open("rullama");
    const db = await new Promise<IDBDatabase>((resolve) => (opening.onsuccess = () => resolve(opening.result)));
    const turns = db.transaction("turns").objectStore("turns").getAll();
    await new Promise((resolve) => (turns.onsuccess = resolve));
    db.close();
    return JSON.stringify(turns.result);
  });
  // A search reads these, and no bytes of images with them.
  expect(rows.length).toBeLessThan(1000);
  expect(rows).toContain("old.png");
  await app.getByRole("link", { name: "Settings" }).click();
  const waiting = app.waitForEvent("download");
  await app.getByRole("button", { name: "Export all as JSON" }).click();
  const text = await readFile(await (await waiting).path(), "utf8");
  const file = JSON.parse(text) as { conversations: { turns: { attachments?: { data: string }[] }[] }[] };
  const [attached] = file.conversations.flatMap(({ turns }) => turns.flatMap(({ attachments = [] }) => attachments));
  expect(attached?.data).toBe(data);
  await app
    .getByLabel("Import file")
    .setInputFiles({ name: "talk.json", mimeType: "application/json", buffer: Buffer.from(text) });
  await expect(app.getByText("Imported 1 chat.")).toBeVisible();
  await app.getByRole("link", { name: "Old" }).first().click();
  await expect.poll(() => image.evaluate((one: HTMLImageElement) => one.naturalWidth)).toBeGreaterThan(0);
});

test("Enter that an input method sends does not send the message", async ({ app }) => {
  await start(app);
  const field = app.getByRole("textbox", { name: "Message", exact: true });
  await field.fill("\u306b\u307b\u3093");
  const press = (init: { isComposing?: boolean; keyCode?: number }) =>
    field.evaluate((element, fields) => {
      element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...fields }));
    }, init);
  // Chrome and Firefox say so; Safari has ended the composition by then.
  await press({ isComposing: true });
  await press({ keyCode: 229 });
  await expect(field).toHaveValue("\u306b\u307b\u3093");
  await press({ keyCode: 13 });
  await expect(app.getByRole("article").last()).toContainText("You said: \u306b\u307b\u3093");
});
