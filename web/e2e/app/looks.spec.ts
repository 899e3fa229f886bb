// Accessibility rules, small screens, keyboard: every page, in light and dark.
import { join } from "node:path";
import process from "node:process";
import { barriers, change, DEMO, DESKTOP, expect, overflow, PHONE, say, SMALLEST, start, test } from "./fixture.ts";

const ANSWER = [
  "# Title",
  "Some **bold** words, `code` and a [link](https://example.org).",
  '```rust\nfn main() { println!("a line that is far too long for the screen of any telephone that there is"); }\n```',
  "| column one | column two | column three | column four |\n|---|---|---|---|\n| 1 | 2 | 3 | 4 |",
  "> quoted",
  "1. one\n2. two",
  "averyveryverylongwordthatcannotbebrokenanywhereatallbecauseithasnospacesinitwhatsoeverandgoesonandon",
].join("\n\n");
const SERVED = [...DEMO, { name: "hub.example.org/some/very-long-name-of-a-model-GGUF:Q4_K_M", size: 3.6e9 }];

for (const [name, viewport] of Object.entries({ desktop: DESKTOP, phone: PHONE, smallest: SMALLEST })) {
  for (const scheme of name === "smallest" ? (["light"] as const) : (["light", "dark"] as const)) {
    // Both sizes and both schemes, once each; the rest repeats them.
    const tag = (name === "desktop" && scheme === "light") || (name === "phone" && scheme === "dark") ? [] : "@slow";
    test.describe(`${name}, ${scheme}`, { tag }, () => {
      test.use({
        viewport,
        scheme,
        fake: { served: SERVED, answer: ANSWER, thinking: "Hm.", warnings: ["A warning."], verdict: "tight" },
      });
      test("no page keeps anybody out or sticks out", async ({ app }) => {
        const folder = process.env["SCREENSHOTS"];
        const check = async (place: string) => {
          // `npm run screenshots` keeps what every page looks like, for people to look at.
          if (folder) await app.screenshot({ path: join(folder, `${place.toLowerCase()}-${name}-${scheme}.png`) });
          expect(await barriers(app), place).toEqual([]);
          expect(await overflow(app), place).toBe(0);
          // Pages scroll inside of the frame; the document itself does not.
          const below = () => app.evaluate(() => document.documentElement.scrollHeight - innerHeight);
          expect(await below(), place).toBe(0);
        };
        await app.getByRole("button", { name: "Try it now" }).waitFor();
        await check("welcome");
        await start(app);
        await app.getByRole("button", { name: "Thinking" }).click();
        await say(app, "A question that is long enough to need more than one line on a small screen, at least here");
        await check("chat");
        await change(app, { failAfter: { words: 2, code: "device_lost" } });
        await say(app, "Fail");
        await check("failure");
        await app.evaluate(() => (location.hash = "#/models"));
        await app.getByRole("button", { name: /Choose hub/u }).click();
        await app.getByRole("region", { name: /^hub/u }).getByText("May just fit this GPU").waitFor();
        await check("models");
        for (const page of ["Settings", "Storage", "Search", "Training", "Device"]) {
          await app.evaluate((hash) => (location.hash = hash), `#/${page.toLowerCase()}`);
          await expect(app.getByRole("heading", { name: page, level: 1 })).toBeFocused();
          await check(page);
        }
      });
    });
  }
}

test.describe("states", { tag: "@slow" }, () => {
  const diagram = "```mermaid\ngraph LR\n  A[Prompt] --> B[Prefill]\n  B --> C[Decode]\n  C -->|next token| C\n```";
  const answers = {
    "demo:latest": `A short answer.\n\n${diagram}`,
    "other:latest": "A **longer** answer.\n\n- one\n- two",
  };
  const served = [...DEMO, { name: "other:latest", size: 1e9 }];
  for (const [name, viewport] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
    for (const scheme of ["light", "dark"] as const) {
      test.describe(`${name}, ${scheme}`, () => {
        test.use({ viewport, scheme, fake: { served, answers } });
        test("empty, busy and offline pages, dialogs, and answers side by side", async ({ app, context }) => {
          const folder = process.env["SCREENSHOTS"];
          const check = async (place: string) => {
            if (folder) await app.screenshot({ path: join(folder, `${place}-${name}-${scheme}.png`) });
            expect(await barriers(app), place).toEqual([]);
            expect(await overflow(app), place).toBe(0);
          };
          const go = (hash: string) => app.evaluate((to) => (location.hash = to), hash);
          await go("#/storage");
          await app.getByText("No models stored yet.").waitFor();
          await check("storage-empty");
          await go("#/training");
          await app.getByText("Adapters you train or import appear here.").waitFor();
          await check("training-empty");
          await go("#/");
          await change(app, { loadStep: 1000 });
          await app.getByRole("button", { name: "Try it now" }).click();
          await app.getByText("Loading demo:latest").last().waitFor();
          await check("welcome-loading");
          await change(app, { loadStep: 1 });
          await app.getByRole("textbox", { name: "Message" }).waitFor({ timeout: 60_000 });
          await check("welcome-ready");
          await say(app, "Draw how a model answers");
          await app.getByRole("button", { name: "Show diagram" }).click();
          await app.getByRole("img", { name: "Mermaid diagram" }).waitFor();
          await check("diagram");
          await app.getByRole("button", { name: "Compare with another model" }).click();
          const dialog = app.getByRole("dialog", { name: "Compare answers" });
          await dialog.getByText("Both models are kept", { exact: false }).waitFor();
          await check("compare-dialog");
          await dialog.getByRole("button", { name: "Compare" }).click();
          await app.getByRole("region", { name: "other:latest" }).getByText("A longer answer.").waitFor();
          await app.getByRole("button", { name: "Keep this answer" }).last().waitFor();
          await check("compare");
          await app.getByRole("button", { name: "Keep this answer" }).first().click();
          await app.keyboard.press("Control+k");
          await app.getByRole("option", { name: "New chat" }).waitFor();
          await check("palette");
          await app.keyboard.press("Escape");
          await app.getByRole("button", { name: "Tools and documents" }).click();
          await app.getByRole("dialog").getByText("There are no collections yet.", { exact: false }).waitFor();
          await check("tools");
          await app.getByRole("dialog").getByRole("button", { name: "Close" }).click();
          await context.setOffline(true);
          await app.getByText("You are offline.", { exact: false }).waitFor();
          await check("offline");
        });
      });
    }
  }
});

test.describe("phone", () => {
  test.use({ viewport: PHONE, fake: { served: DEMO } });
  test("conversations are in a drawer", async ({ app }) => {
    await start(app);
    await say(app, "Hello");
    await app.getByRole("button", { name: "Chats and pages" }).click();
    const drawer = app.getByRole("dialog", { name: "Chats and pages" });
    await expect(drawer.getByRole("link", { name: "Hello" })).toBeVisible();
    expect(await barriers(app)).toEqual([]);
    await app.keyboard.press("Escape");
    await expect(drawer).toHaveCount(0);
    await expect(app.getByRole("button", { name: "Chats and pages" })).toBeFocused();
    await app.getByRole("button", { name: "Chats and pages" }).click();
    await drawer.getByRole("link", { name: "Settings" }).click();
    await expect(drawer).toHaveCount(0);
    await expect(app.getByRole("heading", { name: "Settings" })).toBeVisible();
  });
});

test.describe("keyboard", () => {
  test.use({ fake: { served: DEMO } });
  test("everything is reached in order, and focus is seen", async ({ app }) => {
    await app.getByRole("button", { name: "Try it now" }).waitFor();
    const order: string[] = [];
    for (let step = 0; step < 13; step++) {
      await app.keyboard.press("Tab");
      const focus = await app.evaluate(() => {
        const one = document.activeElement;
        const { outlineStyle, outlineWidth } = one
          ? getComputedStyle(one)
          : { outlineStyle: "none", outlineWidth: "0px" };
        return {
          name: one?.getAttribute("aria-label") ?? one?.textContent?.trim() ?? "",
          seen: outlineStyle !== "none" && outlineWidth !== "0px",
        };
      });
      expect(focus.seen, focus.name).toBe(true);
      order.push(focus.name);
    }
    expect(order.map((name) => name.replace(/ \(.*/u, ""))).toEqual([
      "Skip to content",
      "Search chats",
      "New chat",
      "New folder",
      "Models",
      "Search",
      "Training",
      "Storage",
      "Settings",
      "Device",
      "Model: Choose a model",
      "Try it now",
      "Choose another model",
    ]);
    await app.getByRole("button", { name: "Try it now" }).focus();
    await app.keyboard.press("Enter");
    await expect(app.getByRole("textbox", { name: "Message" })).toBeFocused();
  });
});
