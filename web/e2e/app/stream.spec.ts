// Answers while they are written and after they were stopped: going on, nothing that jumps, diagrams.
import { join } from "node:path";
import { GOLDENS } from "../client/goldens.ts";
import { barriers, change, DEMO, expect, releaseStopped, say, start, test } from "./fixture.ts";

test.use({ fake: { served: DEMO } });

test("a stopped answer goes on where it stopped", async ({ app }) => {
  const whole = "One two three four five six seven eight nine ten eleven twelve.";
  await start(app);
  await change(app, { answer: whole, held: 4 });
  await app.getByRole("textbox", { name: "Message", exact: true }).fill("Count");
  await app.keyboard.press("Enter");
  const answer = app.getByRole("article").last();
  await expect(answer).toContainText("One two three");
  await app.keyboard.press("Escape");
  await releaseStopped(app);
  await expect(answer).toContainText("Stopped.");
  expect(await barriers(app)).toEqual([]);
  const said = await answer.locator(".markdown").textContent();
  expect(whole).not.toBe(said?.trim());
  // What is loaded may think; what is continued has been thought about.
  await app.getByRole("button", { name: "Thinking" }).click();
  await change(app, { word: 1 });
  await answer.getByRole("button", { name: "Continue" }).click();
  await expect(answer.locator(".markdown")).toHaveText(whole);
  await expect(answer).not.toContainText("Stopped.");
  await expect(answer.getByRole("button", { name: "Continue" })).toHaveCount(0);
  await expect(answer).toContainText("12 tokens");
  const asked = await app.evaluate(() => window.fake?.asked);
  expect(asked?.messages.at(-1)).toMatchObject({ role: "assistant", prefix: true });
  expect(whole.startsWith(String(asked?.messages.at(-1)?.content))).toBe(true);
  expect(asked?.options.think).toBe(false);
  // One answer, not two versions of it; it is still there after a reload.
  await expect(app.getByRole("article")).toHaveCount(2);
  await app.getByRole("button", { name: "Send" }).waitFor();
  await app.reload();
  await expect(app.getByRole("article").last().locator(".markdown")).toHaveText(whole);
});

test("an answer that was cut off by its length goes on, one with an image does not", async ({ app }) => {
  await start(app);
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByLabel("Max tokens").fill("3");
  await app.getByLabel("Max tokens").blur();
  await app.getByRole("button", { name: "New chat" }).click();
  await change(app, { answer: "One two three four five six." });
  await say(app, "Count");
  const answer = app.getByRole("article").last();
  await expect(answer.locator(".markdown")).toHaveText("One two three");
  await answer.getByRole("button", { name: "Continue" }).click();
  await expect(answer.locator(".markdown")).toHaveText("One two three four five six.");
  await app.getByRole("button", { name: "New chat" }).click();
  await app.getByLabel("Images, audio and video").setInputFiles(join(GOLDENS, "demo/picture-1.png"));
  await say(app, "What is this?");
  await expect(app.getByRole("article").last()).toContainText("Stopped at the maximum");
  await expect(app.getByRole("article").last().getByRole("button", { name: "Continue" })).toHaveCount(0);
});

test("formulas and code grow in place", async ({ app }) => {
  const line = "let value = compute(one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve);\n";
  await start(app);
  // Loads what typesets.
  await change(app, { answer: "$$\na\n$$\n\n```js\nlet x;\n```" });
  await say(app, "First");
  await expect(app.locator(".hljs-keyword").first()).toBeVisible();
  await change(app, {
    answer: `So $x^2 + y$ is:\n\n$$\n\\frac{ 1 }{ 2 } + \\sqrt{ 3 } + 4\n$$\n\n\`\`\`js\n${line.repeat(12)}\`\`\`\n`,
    word: 15,
    // In the code's fourth line.
    held: 70,
  });
  await app.evaluate(() => {
    const seen = { raw: [] as string[], frames: new Set<Element>() };
    Object.assign(globalThis, { seen });
    new MutationObserver(() => {
      const answer = [...document.querySelectorAll("article")].at(-1);
      const copy = answer?.querySelector(".markdown")?.cloneNode(true) as Element | undefined;
      // Typeset formulas keep their source for screen readers.
      copy?.querySelectorAll("math, pre").forEach((one) => one.remove());
      const text = copy?.textContent ?? "";
      if (/\$|\\frac|`/u.test(text)) seen.raw.push(text);
      const frame = answer?.querySelector(".code");
      if (frame) seen.frames.add(frame);
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  await app.getByRole("textbox", { name: "Message", exact: true }).fill("Second");
  await app.keyboard.press("Enter");
  const pre = app.getByRole("article").last().locator("pre");
  await expect(pre).toContainText("twelve");
  await pre.evaluate((element) => (element.scrollLeft = 60));
  await pre.focus();
  await change(app, { held: null });
  await app.getByRole("button", { name: "Send" }).waitFor();
  await expect(pre).toBeFocused();
  expect(await pre.evaluate((element) => element.scrollLeft)).toBe(60);
  const seen = await app.evaluate(() => {
    const { raw, frames } = (globalThis as unknown as { seen: { raw: string[]; frames: Set<Element> } }).seen;
    return { raw, frames: frames.size };
  });
  expect(seen).toEqual({ raw: [], frames: 1 });
  await expect(app.getByRole("article").last().locator("math")).toHaveCount(2);
});

test("an answer is said sentence by sentence while it is written", async ({ app }) => {
  await start(app);
  await change(app, { answer: "The first sentence. The second one is here. And the last one.", held: 6 });
  await app.getByRole("textbox", { name: "Message", exact: true }).fill("Speak");
  await app.keyboard.press("Enter");
  const spoken = app.getByTestId("spoken");
  await expect(spoken).toContainText("The first sentence.");
  await expect(app.getByRole("button", { name: "Stop" })).toBeVisible();
  await change(app, { held: null });
  await expect(spoken).toContainText("And the last one.");
  const parts = await spoken.locator("p").allTextContents();
  expect(parts.filter((text) => text.includes("first sentence"))).toHaveLength(1);
  expect(parts.find((text) => text.includes("first sentence"))).not.toContain("last one");
});

const FLOW = "graph TD\n  A[Start] -->|yes| B{Decide}\n  B --> C[End]";

test("a diagram is drawn when that is wanted, and not before", async ({ app }) => {
  await start(app);
  await change(app, { answer: `Here:\n\n\`\`\`mermaid\n${FLOW}\n\`\`\`` });
  await say(app, "Draw");
  const answer = app.getByRole("article").last();
  const loaded = () =>
    app.evaluate(() =>
      performance
        .getEntriesByType("resource")
        .map(({ name }) => name)
        .join(),
    );
  expect(await loaded()).not.toContain("diagram-worker");
  // A network that takes longer to bring what draws than drawing may take.
  await app.clock.install();
  await app.route(/diagram-worker/u, async (route) => {
    await app.clock.fastForward(10_000);
    await route.continue();
  });
  await answer.getByRole("button", { name: "Show diagram" }).click();
  const image = answer.getByRole("img", { name: "Mermaid diagram" });
  await expect(image).toBeVisible();
  await expect.poll(() => image.evaluate((element: HTMLImageElement) => element.naturalWidth)).toBeGreaterThan(50);
  await expect(answer.locator("pre")).toBeHidden();
  expect(await barriers(app)).toEqual([]);
  await answer.getByRole("button", { name: "Show code" }).click();
  await expect(answer.locator("pre")).toBeVisible();
  await change(app, { answer: "```mermaid\npie title Pets\n```" });
  await say(app, "Draw a pie");
  await answer.getByRole("button", { name: "Show diagram" }).click();
  await expect(answer.getByText("This diagram cannot be drawn.")).toBeVisible();
  await expect(answer.locator("pre")).toBeVisible();
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByLabel("Draw Mermaid diagrams in answers").check();
  await change(app, { answer: `\`\`\`mermaid\n${FLOW}\n\`\`\`` });
  await app.getByRole("button", { name: "New chat" }).click();
  await say(app, "Draw again");
  await expect(image).toBeVisible();
});

test(
  "hostile diagrams neither run nor load anything, and none takes forever",
  { tag: "@slow" },
  async ({ app, server }) => {
    const requests: string[] = [];
    app.on("request", (request) => requests.push(request.url()));
    const big = Array.from({ length: 3000 }, (_, at) => `N${(at * 7919) % 1009}`).join("-->");
    const hostile = [
      `graph TD\n A["<img src=https://example.org/x onerror='window.hit=1'>"] --> B["<script>window.hit=1</script>"]`,
      `graph TD\n A --> B\n click A href "javascript:window.hit=1"\n click B callback "window.hit=1"`,
      `graph TD\n A["</text></svg><script>window.hit=1</script><svg onload='window.hit=1'>"] --> B`,
      `graph TD\n A --> B\n style A fill:url(https://example.org/x.svg),stroke:red;}@import 'https://example.org/x.css';`,
      `%%{init: {"securityLevel": "loose", "themeCSS": "@import url(https://example.org/y.css)"}}%%\ngraph TD\n A --> B`,
      `sequenceDiagram\n A->>B: <foreignObject><iframe src="https://example.org"></iframe></foreignObject>`,
      `graph TD\n${big}`,
      `graph TD\n A["${"x".repeat(30_000)}"] --> B`,
    ];
    await start(app);
    await change(app, { word: 0, answer: hostile.map((source) => `\`\`\`mermaid\n${source}\n\`\`\``).join("\n\n") });
    await say(app, "Try");
    const answer = app.getByRole("article").last();
    const buttons = answer.getByRole("button", { name: "Show diagram" });
    await expect(buttons).toHaveCount(hostile.length);
    await answer.evaluate((article) => article.querySelectorAll<HTMLElement>(".draw").forEach((one) => one.click()));
    await expect(answer.locator(".diagram")).toHaveCount(hostile.length);
    await expect(answer.getByText("Drawing…")).toHaveCount(0);
    expect(await answer.locator(".diagram img").count()).toBeGreaterThan(2);
    const tags = await answer.locator(".diagram *").evaluateAll((all) => all.map((one) => one.tagName));
    expect(new Set(tags)).toEqual(new Set(["IMG"]));
    expect(await app.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined();
    const elsewhere = requests.filter((url) => !url.startsWith(server.origin) && !url.startsWith("data:"));
    expect(elsewhere).toEqual([]);
  },
);
