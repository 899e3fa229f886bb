// Talking: streaming, stopping, answering again, editing, thoughts, tools, code.
import { change, DEMO, enter, expect, releaseStopped, say, start, test } from "./fixture.ts";

test.use({ fake: { served: DEMO } });

test.beforeEach(async ({ app }) => start(app));

test("a newcomer gets an answer with figures and a context meter", async ({ app }) => {
  await say(app, "Hello there");
  await expect(app.getByRole("article").last()).toContainText("You said: Hello there");
  await expect(app.getByText(/tokens\/s · first token after (?:\d+ms|\d+(?:\.\d)?s) · \d+ tokens/u)).toBeVisible();
  await expect(app.getByRole("progressbar", { name: "Context in use" })).toHaveAttribute("max", "4096");
  await expect(app.getByRole("link", { name: "Hello there" })).toHaveAttribute("aria-current", "page");
  // What screen readers are told: that an answer comes, and then the answer, once.
  await expect(app.getByTestId("spoken").locator("p").last()).toHaveText("You said: Hello there");
});

test("Enter sends, Shift+Enter breaks the line", async ({ app }) => {
  const field = app.getByRole("textbox", { name: "Message" });
  await field.fill("one");
  await field.press("Shift+Enter");
  await field.pressSequentially("two");
  await field.press("Enter");
  await expect(app.getByRole("article").first()).toContainText("one\ntwo");
  await expect(field).toHaveValue("");
});

test("Escape stops an answer, which is kept; answering again keeps both", async ({ app }) => {
  await change(app, { answer: "word ".repeat(20), held: 3 });
  const field = app.getByRole("textbox", { name: "Message" });
  await field.fill("Go on for ever");
  await field.press("Enter");
  await expect(app.getByRole("article").last()).toContainText("word word");
  await app.keyboard.press("Escape");
  await releaseStopped(app);
  await expect(app.getByText("Stopped.", { exact: true }).first()).toBeVisible();
  const kept = await app.getByRole("article").last().locator(".markdown").innerText();
  await change(app, { answer: "Short." });
  await app.getByRole("button", { name: "Regenerate" }).click();
  await expect(app.getByRole("article").last()).toContainText("Short.");
  await expect(app.getByText("2 of 2")).toBeVisible();
  await app.getByRole("button", { name: "Previous version" }).click();
  await expect(app.getByText("1 of 2")).toBeVisible();
  expect(await app.getByRole("article").last().locator(".markdown").innerText()).toBe(kept);
});

test("the stop button stops as well", async ({ app }) => {
  await change(app, { answer: "word ".repeat(20), held: 3 });
  await app.getByRole("textbox", { name: "Message" }).fill("Go on");
  await app.getByRole("button", { name: "Send" }).click();
  await expect(app.getByRole("article").last()).toContainText("word");
  await app.getByRole("button", { name: "Stop" }).click();
  await releaseStopped(app);
  await expect(app.getByRole("button", { name: "Send" })).toBeVisible();
});

test("editing a message branches off from there", async ({ app }) => {
  await say(app, "first question");
  await say(app, "second question");
  await app.getByRole("article").first().getByRole("button", { name: "Edit message" }).click();
  const field = app.getByRole("textbox", { name: "Edit your message" });
  await expect(field).toBeFocused();
  await field.fill("another question");
  await field.press("Enter");
  await expect(app.getByRole("article").last()).toContainText("You said: another question");
  await expect(app.getByRole("article")).toHaveCount(2);
  await app.getByRole("article").first().getByRole("button", { name: "Previous version" }).click();
  await expect(app.getByRole("article")).toHaveCount(4);
  await expect(app.getByRole("article").last()).toContainText("You said: second question");
  expect(await app.evaluate(() => window.fake?.asked?.messages.map((one) => one.content))).toEqual([
    "another question",
  ]);
});

test("thoughts are folded and not sent back", async ({ app }) => {
  await change(app, { thinking: "It is about **whales**." });
  await app.getByRole("button", { name: "Thinking" }).click();
  await say(app, "What is it about?");
  await expect(app.getByText("It is about whales.")).toHaveCount(0);
  await app.getByText("Thoughts", { exact: true }).click();
  await expect(app.locator("details strong")).toHaveText("whales");
  await say(app, "Go on");
  expect(await app.evaluate(() => JSON.stringify(window.fake?.asked?.messages))).not.toContain("whales");
});

test("tool calls are shown, broken ones too", async ({ app }) => {
  await change(app, { toolCall: { name: "get_weather", arguments: { city: "Bern" } }, badCall: "call:oops{" });
  await say(app, "Weather?");
  await expect(app.getByText("get_weather")).toBeVisible();
  await expect(app.getByText('"city": "Bern"')).toBeVisible();
  await expect(app.getByText("call:oops{")).toBeVisible();
});

test("code is copied as it is", async ({ app }) => {
  await change(app, { answer: "Here:\n\n```js\nlet x = 1 < 2;\n```\n" });
  await say(app, "Code, please");
  await app.getByRole("button", { name: "Copy js code" }).click();
  await expect.poll(() => app.evaluate(() => navigator.clipboard.readText())).toBe("let x = 1 < 2;\n");
});

test("settings, seed and system prompts reach the model", async ({ app }) => {
  await app.getByRole("link", { name: "Settings" }).click();
  await enter(app.getByLabel("Temperature"), "0.5");
  await enter(app.getByLabel("Seed"), "42");
  await enter(app.getByLabel("Top P"), "7");
  await enter(app.getByLabel("Default system prompt"), "Be brief.");
  await expect(app.getByText("Enter a number from 0 to 1.")).toBeVisible();
  await app.getByRole("button", { name: "New chat" }).click();
  await say(app, "Hello");
  const asked = () => app.evaluate(() => window.fake?.asked);
  expect(await asked()).toMatchObject({
    options: { temperature: 0.5, seed: 42, think: false },
    messages: [{ role: "system", content: "Be brief." }, {}],
  });
  expect((await asked())?.options.topP).toBeUndefined();
  await app.getByRole("button", { name: "System prompt" }).click();
  await app.getByRole("textbox", { name: "System prompt for this chat" }).fill("Be long.");
  await app.getByRole("button", { name: "Save", exact: true }).click();
  await say(app, "Again");
  expect((await asked())?.messages[0]?.content).toBe("Be long.");
  await app.getByRole("button", { name: "System prompt" }).click();
  await app.getByRole("textbox", { name: "System prompt for this chat" }).fill("");
  await app.getByRole("button", { name: "Save", exact: true }).click();
  await say(app, "Without");
  // Told apart from none, for which a model would use its own.
  expect((await asked())?.messages[0]).toEqual({ role: "system", content: "" });
});

test("a full context: the answer says so, and goes on without the oldest messages", async ({ app }) => {
  await change(app, { context: 60, answer: "word ".repeat(70).trim() });
  await say(app, "alone");
  await expect(app.getByRole("button", { name: "Choose a larger context" })).toBeVisible();
  await app.getByRole("button", { name: "New chat" }).click();
  await change(app, { answer: "word ".repeat(30).trim() });
  await say(app, "one two three four five six seven eight nine ten");
  await say(app, "more of it please");
  const card = app.getByRole("group", { name: "The context is full" });
  await expect(card).toBeVisible();
  await card.getByRole("button", { name: "Answer without the oldest messages" }).click();
  await expect(app.getByText(/Answered without the 2 oldest messages/u)).toBeVisible();
  await expect(app.getByRole("button", { name: "Send" })).toBeVisible();
  expect(await app.evaluate(() => window.fake?.asked?.messages.length)).toBe(1);
});
