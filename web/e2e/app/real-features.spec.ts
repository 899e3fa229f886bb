// What the app does around a model, with the real engine and the demo model: tools that run, answers that are stopped and continued, documents in
// full and by meaning. One page for all: a software GPU compiles kernels for minutes.
import { test as base } from "@playwright/test";
import { startMcp } from "../support/mcp.ts";
import { Store } from "../support/store.ts";
import { PATIENCE_MS, type Real, expect, patient, withReal } from "./real.ts";

const test = base.extend<object, { real: Real }>({
  real: [
    // oxlint-disable-next-line no-empty-pattern -- Playwright reads the parameter list.
    async ({}, use) => {
      const store = await Store.make();
      await store.add("embedding", { model: "embedding/first-BF16.gguf" });
      try {
        await withReal({ store: store.folder }, async (real) => {
          // So that documents are soon too long.
          await real.page.evaluate(() => (location.hash = "#/settings"));
          await real.page.getByLabel("Context size").fill("1024");
          await real.page.getByLabel("Context size").blur();
          await real.newConversation();
          await real.page.getByRole("button", { name: "Try it now" }).click();
          await real.ready();
          await use(real);
        });
      } finally {
        await store.remove();
      }
    },
    { scope: "worker", timeout: 2 * PATIENCE_MS },
  ],
});

test.describe.configure({ mode: "serial", timeout: 2 * PATIENCE_MS });

const answer = ({ page }: Real) => page.getByRole("article").last();

/** Asks without waiting for the answer. */
async function begin({ page }: Real, text: string): Promise<void> {
  const field = page.getByRole("textbox", { name: "Message", exact: true });
  await field.fill(text);
  await field.press("Enter");
}

test("an answer that is stopped goes on to what it would have been", { tag: "@slow" }, async ({ real }) => {
  const { page } = real;
  const question = "Tell a story about a doctor and a mirror.";
  const whole = await real.ask(question);
  expect(whole).toContain("mirror");
  await real.newConversation();
  await begin(real, question);
  await patient(answer(real).locator(".markdown")).toContainText(/\w/u);
  await page.keyboard.press("Escape");
  await patient(answer(real)).toContainText("Stopped.");
  const part = await answer(real).locator(".markdown").innerText();
  expect(whole.startsWith(part.trimEnd()), part).toBe(true);
  expect(part.length).toBeLessThan(whole.length);
  await page.getByRole("button", { name: "Continue" }).click();
  await patient(page.getByRole("button", { name: "Send" })).toBeVisible();
  await expect(answer(real).locator(".markdown")).toHaveText(whole, { useInnerText: true });
});

test("the model calls a tool of an MCP server and answers with its result", { tag: "@slow" }, async ({ real }) => {
  const { page } = real;
  const server = await startMcp({
    tool: {
      name: "get_current_weather",
      description: "Weather of a place.",
      field: "city",
      fieldDescription: "Name of the city",
      result: "sunny",
    },
  });
  try {
    await page.evaluate(() => (location.hash = "#/settings"));
    await page.getByLabel("Server URL").fill(server.url);
    await page.getByLabel("Name (optional)").fill("Weather");
    await page.getByRole("button", { name: "Add server" }).click();
    await expect(page.getByText("Connected. 1 tool: get_current_weather")).toBeVisible();
    await real.newConversation();
    await page.getByRole("button", { name: "Tools and documents" }).click();
    await page.getByRole("checkbox", { name: "Weather" }).check();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await begin(real, "What is the temperature in Madrid?");
    await patient(page.getByText("Allow the model to run get_current_weather?")).toBeVisible();
    await expect(answer(real).getByRole("group", { name: "Arguments" })).toContainText('"city": "Madrid"');
    await page.getByRole("button", { name: "Allow once" }).click();
    await patient(page.getByRole("button", { name: "Send" })).toBeVisible();
    await expect(answer(real).locator(".markdown").last()).toContainText("sunny");
    await expect(answer(real).getByText("Called tool")).toBeVisible();
  } finally {
    await server.close();
  }
});

/** Tokens of the last answer's prompt. */
async function promptTokens(real: Real): Promise<number> {
  await answer(real).getByTitle("Answer details").click();
  const row = real.page.getByRole("dialog").getByRole("row", { name: /^Prompt \d/u });
  const tokens = Number((await row.getByRole("cell").innerText()).replaceAll(/\D/gu, ""));
  await real.page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  return tokens;
}

const document = (name: string, text: string) => ({ name, type: "text/plain", bytes: Buffer.from(text) });

test("a document that fits is read in full", { tag: "@slow" }, async ({ real }) => {
  await real.newConversation();
  await real.ask("What is 23 + 45?");
  const alone = await promptTokens(real);
  await real.newConversation();
  const text = Array.from({ length: 12 }, (_, at) => `Note ${at}: the bridge is open.`).join("\n");
  await real.drop([document("notes.txt", text)]);
  const size = real.page.getByRole("list", { name: "Attachments" }).getByText(/\d tokens/u);
  await expect(size).toBeVisible();
  const tokens = Number((await size.innerText()).replaceAll(/\D/gu, ""));
  await real.ask("What is 23 + 45?");
  // Its name and its frame come on top.
  expect(await promptTokens(real)).toBeGreaterThanOrEqual(alone + tokens);
  await expect(answer(real).getByRole("region", { name: "Sources" })).toHaveCount(0);
});

test("a document that does not fit is searched by meaning with a second model", { tag: "@slow" }, async ({ real }) => {
  const { page } = real;
  await real.newConversation();
  const paragraph = (at: number) => `Paragraph ${at} says that the ${at}th bridge is open and that the river is wide. `;
  const text = Array.from({ length: 12 }, (_, at) => paragraph(at).repeat(6)).join("\n\n");
  await real.drop([document("long.txt", text)]);
  await expect(page.getByText(/tokens · too long for the context/u)).toBeVisible();
  await real.ask("Which bridge is open?");
  await expect(answer(real).getByRole("region", { name: "Sources" })).toBeVisible();
  await expect(answer(real).getByText("Searched by words", { exact: false })).toHaveCount(0);
  await page.getByRole("button", { name: "Tools and documents" }).click();
  await expect(page.getByText(/embedding:latest takes .* of GPU memory\. Both models together: /u)).toBeVisible();
  await page.getByRole("button", { name: "Unload" }).click();
  await expect(page.getByText("Both models together", { exact: false })).toHaveCount(0);
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  expect(await real.ask("What is 23 + 45?")).toContain("68");
});
