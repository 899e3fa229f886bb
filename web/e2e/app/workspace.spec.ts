// Folders, saved prompts and answers side by side.
import { barriers, change, DEMO, expect, newChat, overflow, PHONE, saved, say, start, test } from "./fixture.ts";

test.use({ fake: { served: DEMO } });

test("chats are put into folders, which are renamed and deleted without them", async ({ app }) => {
  await start(app);
  for (const text of ["First", "Second"]) {
    await say(app, text);
    await newChat(app);
  }
  const chats = app.getByRole("navigation", { name: "Chats" });
  await app.getByRole("button", { name: "New folder" }).click();
  const dialog = app.getByRole("dialog");
  await dialog.getByLabel("Folder name").fill("Work");
  expect(await barriers(app)).toEqual([]);
  await dialog.getByRole("button", { name: "Create" }).click();
  const folder = chats.getByRole("button", { name: /^Work/u });
  await folder.click();
  await expect(chats.getByText("No chats in this folder.")).toBeVisible();
  await app.getByRole("button", { name: "Options for “First”" }).click();
  await dialog.getByLabel("Folder").selectOption("Work");
  await expect(chats.getByRole("list", { name: "Work" }).getByRole("link")).toHaveText(["First"]);
  await expect(chats.getByRole("link")).toHaveCount(2);
  expect(await barriers(app)).toEqual([]);
  await saved(app);
  await app.reload();
  await expect(folder).toContainText("1");
  // A second folder cannot have the name of another one.
  await app.getByRole("button", { name: "New folder" }).click();
  await dialog.getByLabel("Folder name").fill(" Work ");
  await dialog.getByRole("button", { name: "Create" }).click();
  await expect(dialog.getByText("A folder with this name already exists.")).toBeVisible();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await app.getByRole("button", { name: "Options for folder “Work”" }).click();
  await dialog.getByLabel("Folder name").fill("Home");
  await dialog.getByRole("button", { name: "Rename" }).click();
  await chats.getByRole("button", { name: /^Home/u }).click();
  await expect(chats.getByRole("list", { name: "Home" }).getByRole("link")).toHaveText(["First"]);
  await app.getByRole("button", { name: "Options for folder “Home”" }).click();
  await dialog.getByRole("button", { name: "Delete folder" }).click();
  await expect(app.getByText("Deleted the folder “Home”. Its chats were kept.")).toBeVisible();
  await expect(chats.getByRole("link")).toHaveText(["Second", "First"]);
  await app.getByRole("button", { name: "Undo" }).click();
  await expect(chats.getByRole("button", { name: /^Home/u })).toContainText("1");
});

test("a message is saved as a prompt and used again with a slash", async ({ app }) => {
  await start(app);
  const field = app.getByRole("textbox", { name: "Message", exact: true });
  await say(app, "Summarise this text in three sentences.");
  await app.getByRole("article").first().getByRole("button", { name: "Save as prompt" }).click();
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByRole("button", { name: "Add prompt" }).click();
  const dialog = app.getByRole("dialog", { name: "Saved prompts" });
  await dialog.getByLabel("Prompt name").fill("Translate");
  await dialog.getByLabel("Prompt text").fill("Translate into French:\n");
  expect(await barriers(app)).toEqual([]);
  await dialog.getByRole("button", { name: "Save" }).click();
  await newChat(app);
  await field.fill("/");
  const list = app.getByRole("listbox", { name: "Saved prompts" });
  await expect(list.getByRole("option")).toHaveCount(2);
  expect(await barriers(app)).toEqual([]);
  await field.fill("/trans");
  await expect(list.getByRole("option")).toHaveCount(1);
  await field.press("Enter");
  await expect(field).toHaveValue("Translate into French:");
  await expect(list).toHaveCount(0);
  // Escape closes the list, and what was typed is sent as it is.
  await field.fill("/");
  await field.press("Escape");
  await expect(list).toHaveCount(0);
  await field.press("Enter");
  await expect(app.getByRole("article").first()).toContainText("/");
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByRole("button", { name: "Delete prompt “Translate”" }).click();
  await expect(app.getByRole("button", { name: "Edit prompt “Translate”" })).toHaveCount(0);
  await app.getByRole("button", { name: "Undo" }).click();
  await expect(app.getByRole("button", { name: "Edit prompt “Translate”" })).toBeVisible();
});

test("the loaded model is compared with an adapter of it", async ({ app }) => {
  await app.evaluate(() => {
    const one = { id: "a1", name: "Pirate", model: "demo:latest", bytes: 1e6, added: 1, rank: 8, parameters: 1e6 };
    localStorage.setItem("fake-adapters", JSON.stringify([one]));
  });
  await start(app);
  await say(app, "Tell me");
  await app.getByRole("button", { name: "Compare with another model" }).click();
  await app.getByRole("dialog").getByRole("button", { name: "Compare" }).click();
  const pair = app.getByRole("group", { name: "Answers side by side" });
  await expect(pair.getByRole("region", { name: "demo:latest + Pirate" })).toContainText("With an adapter: You said");
  await pair.getByRole("button", { name: "Keep this answer: demo:latest + Pirate" }).click();
  await expect(app.getByLabel("Adapter", { exact: true })).toHaveValue("a1");
  expect(await app.evaluate(() => window.fake?.loads)).toBe(1);
});

const TWO = [...DEMO, { name: "other:latest", size: 1_000_000_000 }];
const ANSWERS = { "demo:latest": "Short.", "other:latest": "A **longer** answer." };

test.describe("two models", () => {
  test.use({ fake: { served: TWO, answers: ANSWERS } });
  test("answer side by side, and one of them is kept with its model", async ({ app }) => {
    await start(app);
    await say(app, "Tell me");
    await app.getByRole("button", { name: "Compare with another model" }).click();
    const dialog = app.getByRole("dialog", { name: "Compare answers" });
    await expect(dialog.getByText("Both models are kept in GPU memory", { exact: false })).toBeVisible();
    expect(await barriers(app)).toEqual([]);
    await dialog.getByRole("button", { name: "Compare" }).click();
    const pair = app.getByRole("group", { name: "Answers side by side" });
    await expect(pair.getByRole("region", { name: "demo:latest" })).toContainText("Short.");
    await expect(pair.getByRole("region", { name: "other:latest" })).toContainText("A longer answer.");
    expect(await app.evaluate(() => window.fake?.loads)).toBe(2);
    // The page may still be scrolling.
    await expect(async () => {
      const [left, right] = await Promise.all(
        ["demo:latest", "other:latest"].map((name) => pair.getByRole("region", { name }).boundingBox()),
      );
      expect(left!.y).toBe(right!.y);
    }).toPass();
    expect(await barriers(app)).toEqual([]);
    await expect(app.getByRole("textbox", { name: "Message", exact: true })).toHaveCount(0);
    await pair.getByRole("button", { name: "Keep this answer: other:latest" }).click();
    await expect(pair).toHaveCount(0);
    await expect(app.getByRole("button", { name: "Model: other:latest" })).toBeVisible();
    await expect(app.getByText("2 of 2")).toBeVisible();
    await say(app, "More");
    const asked = await app.evaluate(() => window.fake?.asked?.messages.map(({ content }) => content));
    expect(asked).toEqual(["Tell me", "A **longer** answer.", "More"]);
    // Kept without another load.
    expect(await app.evaluate(() => window.fake?.loads)).toBe(2);
  });

  test.describe("without room for both", () => {
    const large = [...DEMO, { name: "other:latest", size: 6e9 }];
    test.use({ viewport: PHONE, fake: { served: large, answers: ANSWERS } });
    test("they take turns, and that is said", async ({ app }) => {
      await start(app);
      await say(app, "Tell me");
      await app.getByRole("button", { name: "Compare with another model" }).click();
      const dialog = app.getByRole("dialog", { name: "Compare answers" });
      await expect(
        dialog.getByText("demo:latest is unloaded before other:latest is loaded", { exact: false }),
      ).toBeVisible();
      await dialog.getByRole("button", { name: "Compare" }).click();
      const pair = app.getByRole("group", { name: "Answers side by side" });
      await expect(pair.getByRole("region", { name: "other:latest" })).toContainText("A longer answer.");
      await expect(pair).toContainText("other:latest took the place of demo:latest");
      expect(await barriers(app)).toEqual([]);
      expect(await overflow(app)).toBe(0);
      await pair.getByRole("button", { name: "Keep this answer: demo:latest" }).click();
      await expect(app.getByRole("button", { name: "Model: demo:latest" })).toBeVisible();
      await expect(app.getByText("1 of 2")).toBeVisible();
      await expect(app.getByRole("article").last()).toContainText("Short.");
    });
  });

  test("a comparison ends where another one begins, and with its chat", async ({ app }) => {
    await start(app);
    const compare = async (text: string) => {
      await newChat(app);
      await say(app, text);
      await app.getByRole("button", { name: "Compare with another model" }).click();
      await app.getByRole("dialog").getByRole("button", { name: "Compare" }).click();
      await expect(app.getByRole("region", { name: "other:latest" })).toContainText("A longer answer.");
    };
    await compare("One");
    await compare("Two");
    await app.getByRole("link", { name: "One" }).click();
    await expect(app.getByRole("group", { name: "Answers side by side" })).toHaveCount(0);
    await expect(app.getByText("2 of 2")).toBeVisible();
    await app.getByRole("button", { name: "Options for “Two”" }).click();
    await app.getByRole("button", { name: "Delete" }).click();
    await compare("Three");
    await expect(app.getByRole("button", { name: "Model: demo:latest" })).toBeVisible();
  });

  test("a second model that cannot be loaded leaves the first answer", async ({ app }) => {
    await start(app);
    await say(app, "Tell me");
    await change(app, { loadFailure: "network" });
    await app.getByRole("button", { name: "Compare with another model" }).click();
    await app.getByRole("dialog").getByRole("button", { name: "Compare" }).click();
    await expect(app.getByText("The second model could not be loaded.", { exact: false })).toBeVisible();
    await expect(app.getByRole("textbox", { name: "Message", exact: true })).toBeVisible();
    await expect(app.getByRole("article").last()).toContainText("Short.");
  });
});
