// Things that went wrong for people once: attachments that block a chat, lost drafts, answers in the wrong place, silent buttons.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { en } from "../../app/src/text/en/index.ts";
import { GOLDENS } from "../client/goldens.ts";
import {
  barriers,
  change,
  DEMO,
  expect,
  PHONE,
  releaseStopped,
  say,
  slowDatabase,
  start,
  stopClock,
  test,
} from "./fixture.ts";

const PICTURE = join(GOLDENS, "demo/picture-1.png");
const SERVED = [...DEMO, { name: "text-only:1", size: 3_000_000 }, { name: "no-audio:1", size: 3_000_000 }];
test.use({ fake: { served: SERVED } });

const message = (app: Page) => app.getByRole("textbox", { name: "Message", exact: true });
const attach = (app: Page) => app.getByLabel("Images, audio and video").setInputFiles(PICTURE);

async function load(app: Page, name: string): Promise<void> {
  await app.evaluate(() => (location.hash = "#/models"));
  await app.getByRole("button", { name: `Choose ${name}` }).click();
  await app.getByRole("button", { name: "Load", exact: true }).click();
  await message(app).waitFor();
}

/** Waits until the engine has begun to answer a message. */
async function begun(app: Page, text: string): Promise<void> {
  await expect.poll(() => app.evaluate(() => window.fake?.asked?.messages.at(-1)?.content)).toBe(text);
}

/** An answer in the chat that is shown, held in the middle, and slow after that. */
async function begin(app: Page, text: string, words = 4000): Promise<void> {
  await change(app, { answer: "word ".repeat(words), word: 20, held: 5 });
  await message(app).fill(text);
  await message(app).press("Enter");
  await expect(app.getByRole("article").last()).toContainText("word word");
}

test.describe("attachments", () => {
  test("one that the model refuses does not block its chat", async ({ app }) => {
    await start(app);
    await attach(app);
    await change(app, { badMedia: true });
    await say(app, "What is this?");
    const card = app.getByRole("group", { name: en["failure.bad_media.title"] });
    await card.getByRole("button", { name: "Answer without attachments" }).click();
    await expect(app.getByRole("article").last()).toContainText("You said: What is this?");
    await expect(app.getByText("Answered without the attachments.")).toBeVisible();
    // What follows does not bring it back.
    await say(app, "And now?");
    await expect(app.getByRole("article").last()).toContainText("You said: And now?");
    const asked = () => app.evaluate(() => JSON.stringify(window.fake?.asked?.messages));
    expect(await asked()).not.toContain("image");
    // What is attached after it does count.
    await attach(app);
    await change(app, { badMedia: null });
    await say(app, "And this one?");
    await expect(app.getByRole("article").last()).toContainText("You said: [image] And this one?");
    expect((await asked())?.match(/"type":"image"/gu)).toHaveLength(1);
  });

  test("they are seen and removed while a message is edited", async ({ app }) => {
    await start(app);
    await attach(app);
    await say(app, "What is this?");
    await app.getByRole("article").first().getByRole("button", { name: "Edit message" }).click();
    await app.getByRole("article").first().getByRole("button", { name: "Remove picture-1.png" }).click();
    await app.getByRole("button", { name: "Save & resend" }).click();
    await expect(app.getByRole("article").last()).toContainText("You said: What is this?");
    await expect(app.getByRole("article").first().getByRole("img")).toHaveCount(0);
    // The branch before still has it.
    await app.getByRole("article").first().getByRole("button", { name: "Previous version" }).click();
    await expect(app.getByRole("article").first().getByRole("img")).toHaveCount(1);
  });

  test("a model without encoders offers none, says so, and answers without those that are there", async ({ app }) => {
    await start(app);
    await attach(app);
    await say(app, "What is this?");
    const { hash } = new URL(app.url());
    await load(app, "text-only:1");
    await expect(app.getByRole("button", { name: "Attach images, audio, video or documents" })).toHaveCount(0);
    await app.evaluate(
      (bytes) => {
        const files = new DataTransfer();
        files.items.add(new File([new Uint8Array(bytes)], "dropped.png", { type: "image/png" }));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
      },
      [...readFileSync(PICTURE)],
    );
    await expect(app.getByText("text-only:1 does not support images, audio or video.")).toBeVisible();
    await app.evaluate((given) => (location.hash = given), hash);
    await expect(app.getByRole("article")).toHaveCount(2);
    await say(app, "And without?");
    await expect(app.getByRole("article").last()).toContainText("Answered without the attachments.");
    // Without a model nobody knows yet what the next one takes.
    await app.getByRole("button", { name: "Model: text-only:1" }).click();
    await app.getByRole("menuitem", { name: "Unload" }).click();
    await attach(app);
    await expect(app.getByRole("button", { name: "Remove picture-1.png" })).toBeVisible();
  });

  test("a model that hears nothing takes images, and offers no recording", async ({ app }) => {
    await load(app, "no-audio:1");
    await expect(app.getByRole("button", { name: "Attach images, video or documents" })).toBeVisible();
    await expect(app.getByRole("button", { name: "Take a photo" })).toBeVisible();
    await expect(app.getByRole("button", { name: "Record audio" })).toHaveCount(0);
    const files = app.getByLabel("Images and video, or documents");
    await files.setInputFiles([PICTURE, join(GOLDENS, "demo/digit-1-rms.wav")]);
    await expect(app.getByText("no-audio:1 does not support audio.")).toBeVisible();
    await say(app, "What is this?");
    await expect(app.getByRole("article").last()).toContainText("You said: [image] What is this?");
  });

  test("an image that cannot be decoded is refused when it is attached", async ({ app }) => {
    await start(app);
    const broken = { name: "broken.png", mimeType: "image/png", buffer: Buffer.from("no image at all") };
    await app.getByLabel("Images, audio and video").setInputFiles(broken);
    await expect(app.getByText("broken.png could not be decoded.")).toBeVisible();
    await expect(app.getByRole("button", { name: "Remove broken.png" })).toHaveCount(0);
  });

  test("the time of encoding is shown while it lasts, and counted", async ({ app }) => {
    await start(app);
    await attach(app);
    await change(app, { encode: 1500, heldPhase: "decode" });
    await message(app).fill("What is this?");
    await message(app).press("Enter");
    await expect(app.getByText("Reading image 1 of 1…")).toBeVisible();
    await change(app, { heldPhase: "encode" });
    await expect(app.getByText("Encoding image 1 of 1…")).toBeVisible();
    await change(app, { heldPhase: null });
    await expect(app.getByText(/first token after (?:[3-9]|\d\d+)(?:\.\d)?s/u)).toBeVisible();
  });
});

test("drafts stay with their chats, over pages, chats and reloads", async ({ app }) => {
  await start(app);
  await say(app, "First");
  const { hash } = new URL(app.url());
  await message(app).fill("half a thought");
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByRole("link", { name: "First" }).click();
  await expect(message(app)).toHaveValue("half a thought");
  await app.getByRole("button", { name: "New chat" }).click();
  await expect(message(app)).toHaveValue("");
  await message(app).fill("another one");
  await app.evaluate((given) => (location.hash = given), hash);
  await expect(message(app)).toHaveValue("half a thought");
  await expect.poll(() => app.evaluate(() => localStorage.getItem("rullama-drafts"))).toContain("another one");
  await app.reload();
  await expect(message(app)).toHaveValue("half a thought");
  await say(app, "whole");
  await expect(message(app)).toHaveValue("");
  await app.getByRole("button", { name: "New chat" }).click();
  await expect(message(app)).toHaveValue("another one");
});

test("Ctrl+K and Enter open what was found, on its branch, and say when there is nothing", async ({ app }) => {
  await start(app);
  await say(app, "About whales");
  await app.getByRole("button", { name: "Edit message" }).click();
  await app.getByRole("textbox", { name: "Edit your message" }).fill("About ants");
  await app.getByRole("button", { name: "Save & resend" }).click();
  await expect(app.getByRole("article").last()).toContainText("You said: About ants");
  await app.getByRole("button", { name: "New chat" }).click();
  await app.keyboard.press("Control+k");
  const field = app.getByRole("combobox", { name: "Search chats" });
  // Typed and entered at once, before anything can have been found.
  await field.fill("said: about whales");
  await field.press("Enter");
  await expect(app.getByRole("article").last()).toContainText("You said: About whales");
  await expect(app.getByText("1 of 2")).toBeVisible();
  await app.keyboard.press("Control+k");
  await change(app, { answer: "# Seals\n\nThey **love** fish." });
  await app.keyboard.press("Escape");
  await say(app, "About seals");
  await app.keyboard.press("Control+k");
  await field.fill("love");
  await expect(app.getByRole("option").first()).toContainText("They love fish.");
  await field.fill("zebras");
  await expect(app.getByText("No chats found for “zebras”.")).toBeVisible();
  expect(await barriers(app)).toEqual([]);
});

test.describe("several chats", () => {
  test("another chat is free to write in, waits for its turn, and says for what", async ({ app }) => {
    await start(app);
    await begin(app, "Long story");
    await app.getByRole("button", { name: "New chat" }).click();
    await expect(app.getByRole("button", { name: "Stop (Esc)" })).toHaveCount(0);
    await expect(app.getByRole("link", { name: "Answering Long story" })).toBeVisible();
    await change(app, { answer: "Quick." });
    await message(app).fill("Short question");
    await message(app).press("Enter");
    await expect(app.getByText("Queued: waiting for “Long story” to finish.")).toBeVisible();
    // Escape concerns the chat that is shown: the other one goes on.
    await app.keyboard.press("Escape");
    await expect(app.getByText("Stopped.", { exact: true }).first()).toBeVisible();
    await expect(app.getByRole("link", { name: "Answering Long story" })).toBeVisible();
    await message(app).fill("Another one");
    await message(app).press("Enter");
    await app.getByRole("link", { name: "Answering Long story" }).click();
    await app.getByRole("button", { name: "Stop (Esc)" }).click();
    await releaseStopped(app);
    await app.getByRole("link", { name: "Short question" }).click();
    await expect(app.getByRole("article").last()).toContainText("Quick.");
  });

  test("the next message of the same chat queues", async ({ app }) => {
    await start(app);
    await begin(app, "Long story", 20);
    await change(app, { answer: "Next." });
    await message(app).fill("And then?");
    await app.getByRole("button", { name: "Send next" }).click();
    await expect(app.getByRole("article")).toHaveCount(4);
    await expect(app.getByText("Queued: answered after the current answer.")).toBeVisible();
    await change(app, { held: null });
    await expect(app.getByRole("article").last()).toContainText("Next.");
    const asked = await app.evaluate(() => window.fake?.asked?.messages.map(({ role }) => role));
    expect(asked).toEqual(["user", "assistant", "user"]);
  });

  test("a deleted chat stops answering at once, and can be brought back for a while", async ({ app }) => {
    await app.clock.install();
    await start(app);
    await begin(app, "Long story");
    await app.getByRole("button", { name: "Options for “Long story”" }).click();
    await app.getByRole("button", { name: "Delete" }).click();
    await expect(app.getByRole("link", { name: "Long story" })).toHaveCount(0);
    // The rest of the long story would take longer than this waits.
    await change(app, { answer: "Free.", held: null });
    await say(app, "Are you free?");
    await expect(app.getByRole("article").last()).toContainText("Free.");
    await expect(app.getByRole("button", { name: "Undo" })).toBeVisible();
    // Longer than other notices stay.
    await app.clock.fastForward(9000);
    await app.getByRole("button", { name: "Undo" }).click();
    await expect(app.getByRole("article").first()).toContainText("Long story");
  });

  test("stopping says so until it has stopped", async ({ app }) => {
    await start(app);
    await change(app, { answer: "word ".repeat(2000), held: 0 });
    await message(app).fill("Go on");
    await message(app).press("Enter");
    // What is stopped before the engine begins ends at once.
    await begun(app, "Go on");
    await app.getByRole("button", { name: "Stop (Esc)" }).click();
    await expect(app.getByRole("button", { name: "Stopping…" })).toBeDisabled();
    await expect(app.getByText("Stopping…")).toBeVisible();
    await change(app, { held: null });
    await expect(app.getByRole("button", { name: "Send" })).toBeVisible();
  });
});

test("settings show the model's defaults as people write them", async ({ app }) => {
  await start(app);
  await app.getByRole("link", { name: "Settings" }).click();
  await expect(app.getByLabel("Top P")).toHaveAttribute("placeholder", "0.95");
  await expect(app.getByLabel("Min P")).toHaveAttribute("placeholder", "");
});

test("copying shows that it worked", async ({ app }) => {
  await start(app);
  await say(app, "Hello");
  await stopClock(app);
  await app.getByRole("button", { name: "Copy answer" }).click();
  const copied = app.getByRole("button", { name: "Copied" });
  await expect(copied).toHaveText("Copied");
  await expect.poll(() => app.evaluate(() => navigator.clipboard.readText())).toBe("You said: Hello");
  await app.clock.runFor(2000);
  await expect(app.getByRole("button", { name: "Copy answer" })).toBeVisible();
});

test("a dialog gives the focus back, and a name is selected for writing over it", async ({ app }) => {
  await start(app);
  await say(app, "Hello");
  const options = app.getByRole("button", { name: "Options for “Hello”" });
  await options.click();
  await app.keyboard.type("Renamed");
  await app.keyboard.press("Enter");
  await expect(app.getByRole("button", { name: "Options for “Renamed”" })).toBeFocused();
  await app.getByRole("button", { name: "Options for “Renamed”" }).click();
  await app.getByRole("button", { name: "Delete" }).click();
  await expect(app.getByRole("link", { name: "Renamed" })).toHaveCount(0);
  await expect.poll(() => app.evaluate(() => document.activeElement?.tagName)).not.toBe("BODY");
});

test("the model that was used last loads again after a reload, unless that failed or is turned off", async ({
  app,
}) => {
  await start(app);
  await app.reload();
  await expect(app.getByText("demo:latest runs on this device.")).toBeVisible();
  // A load that took the tab down is not tried again by itself.
  await app.evaluate(() => localStorage.setItem("rullama-autoload", "demo:latest"));
  await app.reload();
  await app.getByRole("button", { name: "Load demo:latest" }).waitFor();
  await app.getByRole("link", { name: "Settings" }).click();
  await app.getByLabel("Load the last used model when the app starts").uncheck();
  await app.getByRole("button", { name: "New chat" }).click();
  await app.reload();
  await app.getByRole("button", { name: "Load demo:latest" }).waitFor();
});

test.describe("without a real GPU", () => {
  test.use({ fake: { served: DEMO, fallback: true } });
  test("it is said before anything is loaded", async ({ app }) => {
    await expect(app.getByText("No GPU found: emulated on the CPU, very slow.")).toBeVisible();
    await app.getByRole("link", { name: "Models" }).click();
    await expect(app.getByText("No GPU found: emulated on the CPU, very slow.")).toBeVisible();
  });
});

test("the loaded model can be deleted", async ({ app }) => {
  await start(app);
  await app.getByRole("link", { name: "Storage" }).click();
  await app.getByRole("button", { name: "Delete demo:latest" }).click();
  await app.getByRole("button", { name: "Delete 3.0 MB" }).click();
  await expect(app.getByText("Deleted demo:latest and freed 3.0 MB.")).toBeVisible();
  await expect(app.getByText("No models stored yet.")).toBeVisible();
});

test("a message that is too long gets advice that helps", async ({ app }) => {
  await start(app);
  // Fits the model's trained context of 131,072 tokens, not the 4,096 that were set.
  await message(app).fill("word ".repeat(6000).trim());
  await message(app).press("Enter");
  await expect(app.getByText(/This message has about 6,0\d\d tokens, but the context is set to 4,096/u)).toBeVisible();
  await change(app, { answer: "Read it." });
  await app.getByRole("button", { name: "Reload with 8,192 tokens of context" }).click();
  await expect(app.getByRole("article").last()).toContainText("Read it.");
  await app.getByRole("button", { name: "New chat" }).click();
  await message(app).fill("word ".repeat(140_000).trim());
  await message(app).press("Enter");
  // A page with 700 kB of text is slow on a busy machine.
  await expect(app.getByText(/more than the 131,072 this model can read/u)).toBeVisible({ timeout: 120_000 });
  await app.getByRole("group").getByRole("button", { name: "Edit message" }).click();
  await expect(app.getByRole("textbox", { name: "Edit your message" })).toBeFocused();
});

test("tables keep their alignment, and tasks have one marker", async ({ app }) => {
  await start(app);
  await change(app, { answer: "| a | b |\n|:-:|--:|\n| 1 | 2 |\n\n- [x] done\n- [ ] open" });
  await say(app, "Table");
  const align = (name: string) =>
    app.getByRole("columnheader", { name, exact: true }).evaluate((cell) => getComputedStyle(cell).textAlign);
  expect([await align("a"), await align("b")]).toEqual(["center", "right"]);
  const task = app.locator(".markdown li").first();
  expect(await task.evaluate((item) => getComputedStyle(item).listStyleType)).toBe("none");
});

test("a notice leaves the composer free", async ({ app }) => {
  await start(app);
  await say(app, "Hello");
  await app.getByRole("button", { name: "Options for “Hello”" }).click();
  await app.getByRole("button", { name: "Delete" }).click();
  const notice = await app.getByText("Deleted “Hello”.").boundingBox();
  const composer = await message(app).boundingBox();
  expect(notice!.y + notice!.height).toBeLessThan(composer!.y - 40);
});

test("the self-test says how much there is to do", async ({ app }) => {
  await change(app, { held: 1 });
  await app.getByRole("link", { name: "Device" }).click();
  await app.getByRole("button", { name: "Run self-test" }).click();
  await expect(app.getByText("Case 1 of 4: linear")).toBeVisible();
  await expect(app.getByRole("progressbar", { name: "Self-test" })).toHaveAttribute("max", "4");
});

test.describe("on a phone", () => {
  test.use({ viewport: PHONE });
  test("Enter begins a new line, and the button sends", async ({ app }) => {
    await app.addInitScript(() => {
      const { matchMedia } = window;
      window.matchMedia = (query) => matchMedia.call(window, query === "(pointer: coarse)" ? "all" : query);
    });
    await app.reload();
    await start(app);
    await message(app).fill("one");
    await message(app).press("Enter");
    await message(app).pressSequentially("two");
    await expect(message(app)).toHaveValue("one\ntwo");
    await app.getByRole("button", { name: "Send" }).click();
    await expect(app.getByRole("article").first()).toContainText("one\ntwo");
    // The same while a message is edited.
    await app.getByRole("button", { name: "Edit message" }).click();
    const field = app.getByRole("textbox", { name: "Edit your message" });
    await field.press("Enter");
    await field.pressSequentially("three");
    await app.getByRole("button", { name: "Save & resend" }).click();
    await expect(app.getByRole("article").first()).toContainText("one\ntwo\nthree");
  });
});

test("what fails on export is said", async ({ app }) => {
  await start(app);
  await say(app, "Hello");
  await app.getByRole("link", { name: "Settings" }).click();
  await app.evaluate(() => {
    URL.createObjectURL = () => {
      throw new DOMException("The quota has been exceeded.", "QuotaExceededError");
    };
  });
  await app.getByRole("button", { name: "Export all as JSON" }).click();
  await expect(app.getByText("Export failed: browser storage is full")).toBeVisible();
});

const see = (app: Page, state: DocumentVisibilityState) =>
  app.evaluate((given) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => given });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);

/** Asks for an answer, and loses the GPU in its middle while the page is in the background. */
async function loseGpu(app: Page): Promise<void> {
  await change(app, { failAfter: { words: 1, code: "device_lost" }, held: 1 });
  await message(app).fill("Hello");
  await message(app).press("Enter");
  await begun(app, "Hello");
  await see(app, "hidden");
  await change(app, { held: null });
}

test("a GPU that was lost in the background comes back with the user, and the answer goes on", async ({ app }) => {
  await start(app);
  await loseGpu(app);
  await expect(app.getByRole("group", { name: en["failure.device_lost.title"] })).toBeVisible();
  expect(await app.evaluate(() => window.fake?.loads)).toBe(1);
  await see(app, "visible");
  await expect.poll(() => app.evaluate(() => window.fake?.loads)).toBe(2);
  await expect(app.getByRole("article").last()).toContainText("You said: Hello");
  await expect(app.getByRole("article")).toHaveCount(2);
  await say(app, "Are you back?");
  await expect(app.getByRole("article").last()).toContainText("You said: Are you back?");
});

test("a GPU that is back before the answer without it is saved goes on with it, too", async ({ app }) => {
  await start(app);
  await slowDatabase(app, 1000);
  await loseGpu(app);
  await expect(app.getByTestId("spoken")).toContainText(en["failure.device_lost.title"]);
  await see(app, "visible");
  await expect(app.getByRole("article").last()).toContainText("You said: Hello");
  await expect(app.getByRole("article")).toHaveCount(2);
});
