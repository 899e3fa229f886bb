// Tools that run: offered, asked about, shown, stopped, limited; MCP servers.
import { type Page } from "@playwright/test";
import { barriers, change, DEMO, expect, overflow, PHONE, say, start, test } from "./fixture.ts";
import { startMcp } from "../support/mcp.ts";

const SUM = { name: "calculator", arguments: { expression: "2 * (3 + 4)" } };
test.use({ fake: { served: [...DEMO, { name: "no-tools:1", size: 3_000_000 }] } });

async function offer(app: Page, ...names: string[]): Promise<void> {
  await app.getByRole("button", { name: "Tools and documents" }).click();
  for (const name of names) await app.getByRole("checkbox", { name }).check();
  await app.getByRole("dialog").getByRole("button", { name: "Close" }).click();
}

async function ask(app: Page, text: string): Promise<void> {
  const field = app.getByRole("textbox", { name: "Message", exact: true });
  await field.fill(text);
  await field.press("Enter");
}

const answer = (app: Page) => app.getByRole("article").last();

test.describe("on a phone", () => {
  test.use({ viewport: PHONE });
  test("a call asks first, is shown with its result, and is remembered", async ({ app }) => {
    await start(app);
    await offer(app, "Calculator");
    await change(app, { toolCall: SUM });
    await ask(app, "How much is it?");
    await expect(app.getByText("Allow the model to run calculator?")).toBeVisible();
    // Nothing has been called yet, and the model waits.
    await expect(answer(app).getByText("Tool call", { exact: false })).toBeVisible();
    await expect(answer(app).getByText(/Called tool|Processing prompt|Waiting for the model/u)).toHaveCount(0);
    expect(await barriers(app)).toEqual([]);
    expect(await overflow(app)).toBe(0);
    await app.getByRole("button", { name: "Allow in this chat" }).click();
    await expect(answer(app)).toContainText("You said: 14");
    await answer(app).getByText("Called tool").click();
    await expect(answer(app).getByRole("group", { name: "Result" })).toHaveText("14");
    expect(await barriers(app)).toEqual([]);
    // Once allowed here, it runs; what was called and found stays in the chat.
    await say(app, "And again?");
    await expect(answer(app)).toContainText("You said: 14");
    const roles = await app.evaluate(() => window.fake?.asked?.messages.map(({ role }) => role));
    expect(roles).toEqual(["user", "assistant", "tool", "assistant", "user", "assistant", "tool"]);
    await app.reload();
    await expect(answer(app).getByText("Called tool")).toBeVisible();
  });
});

test("a refused call, and one too many, are told to the model", async ({ app }) => {
  await start(app);
  await offer(app, "Calculator");
  await change(app, { toolCall: SUM });
  await ask(app, "How much is it?");
  await app.getByRole("button", { name: "Deny" }).click();
  await expect(answer(app)).toContainText('You said: {"error":"the user did not allow this call"}');
  await change(app, { callsAgain: true });
  await ask(app, "Again and again");
  await app.getByRole("button", { name: "Always allow" }).click();
  await expect(answer(app)).toContainText("Stopped: the model called tools 8 times in a row.");
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByRole("button", { name: "Ask again before running Calculator" }).click();
  await expect(app.getByText("Allowed in all chats")).toHaveCount(0);
});

test("a program that never ends is stopped, and the model goes on", async ({ app }) => {
  await start(app);
  await offer(app, "JavaScript");
  await change(app, { toolCall: { name: "run_javascript", arguments: { code: "for (;;) {}" } } });
  await ask(app, "Loop");
  await app.getByRole("button", { name: "Allow once" }).click();
  await app.getByRole("button", { name: "Stop call" }).click();
  await expect(answer(app)).toContainText("the user stopped this call");
  await expect(app.locator("iframe")).toHaveCount(0);
});

test("models that cannot use tools are offered none; presets remember them", async ({ app }) => {
  await start(app);
  await offer(app, "Calculator", "Current time");
  await app.getByRole("button", { name: "System prompt" }).click();
  await app.getByRole("textbox", { name: "Preset name" }).fill("Clock");
  await app.getByRole("button", { name: "Save as preset" }).click();
  await app.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
  await say(app, "Hello");
  const offered = () => app.evaluate(() => window.fake?.asked?.options.tools?.map((tool) => tool.function.name));
  expect(await offered()).toEqual(["calculator", "current_time"]);
  await app.getByRole("button", { name: "New chat" }).click();
  await say(app, "Nothing is offered here");
  expect(await offered()).toBeUndefined();
  await app.getByRole("button", { name: "System prompt" }).click();
  await app.getByRole("button", { name: "Clock", exact: true }).click();
  await app.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
  await say(app, "And now?");
  expect(await offered()).toEqual(["calculator", "current_time"]);
  await app.evaluate(() => (location.hash = "#/models"));
  await app.getByRole("button", { name: "Choose no-tools:1" }).click();
  await app.getByRole("button", { name: "Load", exact: true }).click();
  await offer(app, "Calculator");
  await say(app, "And this model?");
  expect(await offered()).toBeUndefined();
});

test("an MCP server is added with its token, checked, and called", async ({ app }) => {
  const server = await startMcp({ token: "secret" });
  try {
    await start(app);
    await app.getByRole("link", { name: "Settings" }).click();
    await app.getByLabel("Server URL").fill("http://example.com/mcp");
    await app.getByRole("button", { name: "Add server" }).click();
    await expect(app.getByText("Enter an https:// address", { exact: false })).toBeVisible();
    await app.getByLabel("Server URL").fill(server.url);
    await app.getByLabel("Name (optional)").fill("Test tools");
    await app.getByLabel("Bearer token (optional)").fill("secret");
    await app.getByRole("button", { name: "Add server" }).click();
    await expect(app.getByText("Connected. 2 tools: echo and fail")).toBeVisible();
    expect(await barriers(app)).toEqual([]);
    await app.evaluate(() => (location.hash = "#/chat"));
    await offer(app, "Test tools");
    await change(app, { toolCall: { name: "echo", arguments: { text: "hello" } } });
    await ask(app, "Echo");
    await app.getByRole("button", { name: "Allow once" }).click();
    await expect(answer(app)).toContainText("You said: echo: hello");
  } finally {
    await server.close();
  }
});

test("an MCP server that is down is named in the chat, and asked again on demand", async ({ app }) => {
  const server = await startMcp();
  await start(app);
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByLabel("Server URL").fill(server.url);
  await app.getByLabel("Name (optional)").fill("Test tools");
  await app.getByRole("button", { name: "Add server" }).click();
  await expect(app.getByText("Connected. 2 tools: echo and fail")).toBeVisible();
  await app.evaluate(() => (location.hash = "#/chat"));
  await offer(app, "Test tools");
  await server.close();
  await say(app, "Are you there?");
  await expect(answer(app)).toContainText("You said: Are you there?");
  const problem = app.getByText(/^Test tools is not available: http:\/\/127\.0\.0\.1:\d+ cannot be reached/u);
  await expect(problem).toBeVisible();
  expect(await barriers(app)).toEqual([]);
  await app.getByRole("button", { name: "Tools and documents" }).click();
  await expect(app.getByRole("dialog").getByText("cannot be reached from this page", { exact: false })).toBeVisible();
  expect(await barriers(app)).toEqual([]);
  await app.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  const again = await startMcp({ port: Number(new URL(server.url).port) });
  try {
    await app.getByRole("button", { name: "Try again" }).click();
    await expect(problem).toHaveCount(0);
  } finally {
    await again.close();
  }
});
