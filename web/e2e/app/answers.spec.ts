// What answers are made of and what can be done with them: formulas, code, details, images, reading aloud, editing, documents.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { GOLDENS } from "../client/goldens.ts";
import { barriers, change, DEMO, enter, expect, overflow, PHONE, say, start, test } from "./fixture.ts";

const PICTURE = join(GOLDENS, "demo/picture-1.png");
test.use({ fake: { served: DEMO } });

const scripts = (app: Page) =>
  app.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname));

test("formulas are typeset, money is not, and nothing large is fetched before", async ({ app }) => {
  await start(app);
  await change(app, { answer: "It costs $5 and $6, `$x$`." });
  await say(app, "Money");
  await expect(app.getByRole("article").last()).toContainText("It costs $5 and $6, $x$.");
  expect((await scripts(app)).filter((path) => /katex|common/u.test(path))).toEqual([]);
  await change(app, {
    answer:
      "So $a^2 + b^2$ and \\(c^2\\).\n\n$$\n\\int_0^1 x\\,dx = \\frac{1}{2}\n$$\n\n\\[ e^{i\\pi} = -1 \\]\n\n$\\notacommand{$",
  });
  await say(app, "Math");
  const answer = app.getByRole("article").last();
  await expect(answer.locator("math")).toHaveCount(4);
  await expect(answer.locator(".formula.display math")).toHaveCount(2);
  await expect(answer.locator("mfrac")).toHaveCount(1);
  // What is no formula stays as it was written.
  await expect(answer).toContainText("notacommand");
  expect((await scripts(app)).some((path) => path.includes("katex"))).toBe(true);
  expect(await barriers(app)).toEqual([]);
});

test("formulas and code cannot do harm", async ({ app }) => {
  await start(app);
  await change(app, {
    answer: [
      "$\\href{javascript:window.hit=1}{x}$ $\\url{https://example.org}$ $\\includegraphics{https://example.org/x.png}$",
      "$\\htmlStyle{position:fixed}{x}$ $\\htmlData{x=1}{y}$ $\\def\\a{\\a\\a}\\a$",
      "$<img src=x onerror=window.hit=1>$",
      "```html\n<img src=x onerror=window.hit=1><script>window.hit=1</script>\n```",
    ].join("\n\n"),
  });
  await say(app, "Try");
  const answer = app.getByRole("article").last();
  await expect(answer.locator(".hljs-name").first()).toHaveText("img");
  await expect(answer.locator("a, img, script, [style]")).toHaveCount(0);
  expect(await app.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined();
});

for (const scheme of ["light", "dark"] as const) {
  test.describe(scheme, () => {
    test.use({ scheme, viewport: PHONE });
    test("code has colours that can be read, and is copied as it is", async ({ app }) => {
      const code = 'fn main() {\n    let x: u32 = 41 + 1; // count\n    println!("{x}");\n}\n';
      await start(app);
      await change(app, { answer: `Here:\n\n\`\`\`rust\n${code}\`\`\`\n\n$$\n${"a + ".repeat(60)}a\n$$` });
      await say(app, "Code");
      await expect(app.locator(".hljs-keyword").first()).toHaveText("fn");
      await expect(app.locator(".formula.display math")).toBeVisible();
      expect(await barriers(app)).toEqual([]);
      expect(await app.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
      await app.getByRole("button", { name: "Copy rust code" }).click();
      await expect.poll(() => app.evaluate(() => navigator.clipboard.readText())).toBe(code);
    });
  });
}

test("an answer says which model wrote it, and with what", async ({ app }) => {
  await app.getByRole("link", { name: "Settings" }).click();
  await enter(app.getByLabel("Temperature"), "0.5");
  await app.getByRole("button", { name: "New chat" }).click();
  await start(app);
  await say(app, "Hello");
  await app.getByRole("article").last().getByText("demo:latest").click();
  const dialog = app.getByRole("dialog", { name: "Answer details" });
  await expect(dialog.getByRole("row", { name: /Model/u })).toContainText("demo:latest");
  await expect(dialog.getByRole("row", { name: /Temperature/u })).toContainText("0.5");
  await expect(dialog.getByRole("row", { name: /Top P/u })).toContainText("0.95");
  await expect(dialog.getByRole("row", { name: /Seed/u })).toContainText("7");
  expect(await barriers(app)).toEqual([]);
  await dialog.getByRole("button", { name: "Close" }).click();
  await expect(dialog).toHaveCount(0);
});

test("an image is enlarged", async ({ app }) => {
  await start(app);
  await app.getByLabel("Images, audio and video").setInputFiles(PICTURE);
  await say(app, "What is this?");
  await app.getByRole("article").first().getByRole("button", { name: "Enlarge picture-1.png" }).click();
  const dialog = app.getByRole("dialog", { name: "picture-1.png" });
  await expect(dialog.getByRole("img")).toBeVisible();
  const { width } = (await app.locator("article button img").first().boundingBox())!;
  await expect.poll(async () => (await dialog.locator("img").boundingBox())!.width).toBeGreaterThan(1.5 * width);
  expect(await barriers(app)).toEqual([]);
  await app.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
});

test("an answer is read aloud, and stopped", async ({ app }) => {
  await app.evaluate(() => {
    const said: string[] = [];
    Object.assign(globalThis, { said });
    speechSynthesis.speak = (utterance) => said.push(`${utterance.lang}: ${utterance.text}`);
    speechSynthesis.cancel = () => said.push("cancel");
  });
  await start(app);
  await change(app, { answer: "It is **bold**." });
  await say(app, "Hello");
  await app.getByRole("button", { name: "Read aloud" }).click();
  await app.getByRole("button", { name: "Stop reading" }).click();
  await expect(app.getByRole("button", { name: "Read aloud" })).toBeVisible();
  const said = await app.evaluate(() => (globalThis as unknown as { said: string[] }).said);
  expect(said).toEqual(["cancel", "en: It is bold.", "cancel"]);
});

test("an answer is edited: the new one counts, the old one stays", async ({ app }) => {
  await start(app);
  await say(app, "Hello");
  await app.getByRole("article").last().getByRole("button", { name: "Edit answer" }).click();
  await app.getByRole("textbox", { name: "Edit the answer" }).fill("Something **else**.");
  await app.getByRole("button", { name: "Save", exact: true }).click();
  await expect(app.getByRole("article").last()).toContainText("Something else.");
  await expect(app.getByRole("article").last()).toContainText("edited");
  await expect(app.getByText("2 of 2")).toBeVisible();
  await say(app, "Go on");
  const asked = await app.evaluate(() => window.fake?.asked?.messages.map(({ content }) => content));
  expect(asked).toEqual(["Hello", "Something **else**.", "Go on"]);
});

test("a long message is folded until it is wanted", async ({ app }) => {
  await start(app);
  await change(app, { answer: "Read." });
  await say(app, "line\n".repeat(60));
  const message = app.getByRole("article").first();
  const height = () => message.evaluate((element) => element.getBoundingClientRect().height);
  const folded = await height();
  expect(folded).toBeLessThan(400);
  await message.getByRole("button", { name: "Show more" }).click();
  await expect.poll(height).toBeGreaterThan(folded + 300);
  await message.getByRole("button", { name: "Show less" }).click();
  expect(await overflow(app)).toBe(0);
});

// Firefox tells automation nothing of downloads that a script starts.
test("a chat is exported as Markdown and as a page of its own @chromium", async ({ app, context }) => {
  await start(app);
  await app.getByLabel("Images, audio and video").setInputFiles(PICTURE);
  await change(app, { answer: "It is a **shape** <script>window.hit = 1</script>." });
  await say(app, "What is <b>this</b>?");
  const save = async (kind: string) => {
    await app.getByRole("button", { name: "Options for “What is <b>this</b>?”" }).click();
    const waiting = app.waitForEvent("download");
    await app.getByRole("button", { name: kind }).click();
    const file = await waiting;
    return { name: file.suggestedFilename(), text: await readFile(await file.path(), "utf8") };
  };
  const markdown = await save("Markdown");
  expect(markdown.name).toMatch(/\.md$/u);
  expect(markdown.text).toContain(
    "## You\n\n*picture-1.png*\n\nWhat is <b>this</b>?\n\n## demo:latest\n\nIt is a **shape**",
  );
  const html = await save("HTML");
  expect(html.name).toMatch(/\.html$/u);
  const page = await context.newPage();
  await page.setContent(html.text);
  await expect(page.locator("strong")).toHaveText("shape");
  await expect(page.getByText("What is <b>this</b>?", { exact: true }).last()).toBeVisible();
  expect(await page.locator("img").evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(0);
  expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined();
});
