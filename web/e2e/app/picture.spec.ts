// The image of the README: `npm run picture` writes docs/app.png. The engine is made up, so the figures of speed are left out.
import { statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { change, expect, say, test } from "./fixture.ts";

const ANSWER = [
  "Each query is compared with every key, so the scores are an $n \\times n$ matrix:",
  "$$\n\\mathrm{Attention}(Q, K, V) = \\mathrm{softmax}\\!\\left(\\frac{QK^\\top}{\\sqrt{d}}\\right) V\n$$",
  "Both time and memory grow with $n^2$. Flash attention keeps the time but never stores the matrix: it walks over blocks of keys and rescales a running sum.",
  "```rust\nfor (k, v) in keys.chunks(BLOCK).zip(values.chunks(BLOCK)) {\n    let scores = q.dot(k) / d.sqrt();\n    acc.rescale(scores.max());\n    acc.add(scores.exp(), v);\n}\n```",
].join("\n\n");

test.use({ viewport: { width: 1280, height: 800 }, fake: { served: [{ name: "gemma4:e2b", size: 3_600_000_000 }] } });

test("the image of the README", { tag: "@slow" }, async ({ app }, testInfo) => {
  await app.getByRole("button", { name: "Load gemma4:e2b" }).click();
  for (const [question, folder] of [
    ["Trip to Lisbon in May", ""],
    ["Regex for ISO dates", "Work"],
    ["Review this pull request", "Work"],
    ["Haiku about the sea", ""],
  ] as const) {
    await say(app, question);
    if (folder !== "") {
      if ((await app.getByRole("button", { name: `Options for folder “${folder}”` }).count()) === 0) {
        await app.getByRole("button", { name: "New folder" }).click();
        await app.getByLabel("Folder name").fill(folder);
        await app.getByRole("button", { name: "Create" }).click();
      }
      await app.getByRole("button", { name: `Options for “${question}”` }).click();
      await app.getByRole("dialog").getByLabel("Folder").selectOption(folder);
    }
    await app.getByRole("button", { name: "New chat" }).click();
  }
  await change(app, { answer: ANSWER });
  await say(app, "Why is attention quadratic, and what does flash attention change?");
  await expect(app.locator(".hljs-keyword").first()).toBeVisible();
  await expect(app.locator("math")).toHaveCount(3);
  await app.evaluate(() => {
    document.querySelectorAll(".tools .figures").forEach((one) => one.replaceChildren("gemma4:e2b"));
    document.querySelector(".scroller")?.scrollTo(0, 1e6);
    (document.activeElement as HTMLElement | null)?.blur();
  });
  await app.mouse.move(640, 620);
  const path = process.env["PICTURE"] ?? join(testInfo.outputDir, "app.png");
  await app.screenshot({ path });
  expect(statSync(path).size).toBeLessThan(200_000);
});
