// Order in many chats: pinned ones, many deleted at once, those of other programs.
import {
  barriers,
  change,
  DEMO,
  enter,
  expect,
  newChat,
  overflow,
  PHONE,
  SMALLEST,
  saved,
  say,
  start,
  test,
} from "./fixture.ts";

test.use({ fake: { served: DEMO } });

test("a pinned chat stays at the top, also after a reload", async ({ app }) => {
  await start(app);
  for (const text of ["First", "Second"]) {
    await say(app, text);
    await newChat(app);
  }
  const links = app.getByRole("navigation", { name: "Chats" }).getByRole("link");
  await expect(links).toHaveText(["Second", "First"]);
  await app.getByRole("button", { name: "Options for “First”" }).click();
  await app.getByRole("button", { name: "Pin" }).click();
  await expect(links).toHaveText(["First", "Second"]);
  await saved(app);
  await app.reload();
  await expect(links).toHaveText(["First", "Second"]);
  await expect(app.getByRole("heading", { name: "Pinned" })).toBeVisible();
  await app.getByRole("button", { name: "Options for “First”" }).click();
  await app.getByRole("button", { name: "Unpin" }).click();
  await expect(app.getByRole("heading", { name: "Pinned" })).toHaveCount(0);
});

test.describe("on a phone", () => {
  test.use({ viewport: PHONE });
  test("many chats are deleted at once, and brought back", async ({ app }) => {
    await start(app);
    for (const text of ["First", "Second", "Third"]) {
      await say(app, text);
      await newChat(app);
    }
    await app.evaluate(() => (location.hash = "#/settings"));
    await app.getByRole("button", { name: "Manage chats" }).click();
    const dialog = app.getByRole("dialog", { name: "Manage chats" });
    await dialog.getByRole("checkbox", { name: /Second/u }).check();
    await dialog.getByRole("checkbox", { name: /Third/u }).check();
    expect(await barriers(app)).toEqual([]);
    await dialog.getByRole("button", { name: "Delete 2 chats" }).click();
    await expect(app.getByText("Deleted 2 chats.")).toBeVisible();
    await app.getByRole("button", { name: "Undo" }).click();
    await app.getByRole("button", { name: "Manage chats" }).click();
    await expect(dialog.getByRole("listitem")).toHaveCount(3);
    await dialog.getByRole("checkbox", { name: "Select all" }).check();
    await expect(dialog.getByRole("button", { name: "Delete 3 chats" })).toBeEnabled();
    expect(await overflow(app)).toBe(0);
  });

  test("the composer's buttons have one row", async ({ app }) => {
    await start(app);
    await app.setViewportSize(SMALLEST);
    const ends = await Promise.all(
      ["Attach images, audio, video or documents", "Send"].map((name) =>
        app.getByRole("button", { name }).boundingBox(),
      ),
    );
    expect(ends[0]!.y).toBe(ends[1]!.y);
    await app.setViewportSize(PHONE);
    const boxes = await Promise.all(
      ["Attach images, audio, video or documents", "Thinking", "System prompt", "Send"].map((name) =>
        app.getByRole("button", { name, exact: true }).boundingBox(),
      ),
    );
    const centers = boxes.map((box) => Math.round(box!.y + box!.height / 2));
    expect(new Set(centers).size).toBe(1);
    // Also while one answer is written and the next message waits to be sent.
    await change(app, { held: 1 });
    const field = app.getByRole("textbox", { name: "Message", exact: true });
    await field.fill("One");
    await app.getByRole("button", { name: "Send" }).click();
    await field.fill("Two");
    const both = await Promise.all(
      ["Take a photo", "Stop (Esc)", "Send next"].map((name) => app.getByRole("button", { name }).boundingBox()),
    );
    expect(new Set(both.map((box) => Math.round(box!.y + box!.height / 2))).size).toBe(1);
    expect(await overflow(app)).toBe(0);
  });
});

test("chats of other programs are imported, and others are refused", async ({ app }) => {
  await app.getByRole("link", { name: "Settings" }).click();
  const open = (value: unknown) =>
    app.getByLabel("Import file").setInputFiles({
      name: "conversations.json",
      mimeType: "application/json",
      buffer: Buffer.from(JSON.stringify(value)),
    });
  const message = (role: string, text: string) => ({ author: { role }, content: { parts: [text] }, create_time: 1 });
  const mapping = {
    a: { parent: null, message: message("user", "Why is the sky blue?") },
    b: { parent: "a", message: message("assistant", "Rayleigh **scattering**.") },
  };
  await open([{ title: "Blue sky", create_time: 1_700_000_000, mapping, current_node: "b" }]);
  await expect(app.getByText("Imported 1 chat.")).toBeVisible();
  await app.getByRole("link", { name: "Blue sky" }).click();
  await expect(app.getByRole("article").last()).toContainText("Rayleigh scattering.");
  await app.getByRole("link", { name: "Settings" }).click();
  await open([{ title: "Something else" }]);
  await expect(app.getByText(/This file holds no chats that rullama can read/u)).toBeVisible();
});

test("a preset brings its prompt and settings into another chat", async ({ app }) => {
  await app.getByRole("link", { name: "Settings" }).click();
  await enter(app.getByLabel("Temperature"), "0.3");
  await newChat(app);
  await start(app);
  const dialog = app.getByRole("dialog", { name: "System prompt" });
  const prompt = dialog.getByRole("textbox", { name: "System prompt for this chat" });
  await app.getByRole("button", { name: "System prompt" }).click();
  await prompt.fill("Answer in French.");
  await dialog.getByLabel("Preset name").fill("French");
  await dialog.getByRole("button", { name: "Save as preset" }).click();
  expect(await barriers(app)).toEqual([]);
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByRole("button", { name: "Reset to model defaults" }).click();
  await newChat(app);
  await app.reload();
  await app.getByRole("textbox", { name: "Message", exact: true }).waitFor();
  await app.getByRole("button", { name: "System prompt" }).click();
  await dialog.getByRole("button", { name: "French", exact: true }).click();
  await expect(prompt).toHaveValue("Answer in French.");
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await say(app, "Hello");
  expect(await app.evaluate(() => window.fake?.asked)).toMatchObject({
    options: { temperature: 0.3 },
    messages: [{ role: "system", content: "Answer in French." }, {}],
  });
  await app.getByRole("button", { name: "System prompt" }).click();
  await dialog.getByRole("button", { name: "Delete preset French" }).click();
  await expect(dialog.getByRole("button", { name: "French", exact: true })).toHaveCount(0);
});

test("the model names a chat where that is wanted, and a person's name stays", async ({ app }) => {
  await start(app);
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByLabel("Let the model name new chats after the first answer").check();
  await newChat(app);
  await change(app, { answer: '**Title: "Whales and the Sea."**\nMore words' });
  await say(app, "Tell me about whales");
  await expect(app.getByRole("link", { name: "Whales and the Sea", exact: true })).toBeVisible();
  await app.getByRole("button", { name: "Options for “Whales and the Sea”" }).click();
  await app.getByRole("textbox", { name: "Name" }).fill("Mine");
  await app.getByRole("button", { name: "Rename" }).click();
  await say(app, "And ants?");
  await expect(app.getByRole("link", { name: "Mine", exact: true })).toBeVisible();
});
