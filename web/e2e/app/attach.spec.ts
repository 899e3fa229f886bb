// Images and audio in the app: picked, dropped, pasted and recorded; shown, kept, and given to the model.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { GOLDENS } from "../client/goldens.ts";
import { barriers, DEMO, expect, PHONE, say, start, test } from "./fixture.ts";

const PICTURE = join(GOLDENS, "demo/picture-1.png");
const SPEECH = join(GOLDENS, "demo/digit-1-rms.wav");
test.use({ fake: { served: DEMO } });

test("a picked image and an audio clip are shown, sent, kept and exported", async ({ app }) => {
  await start(app);
  await app.getByLabel("Images, audio and video").setInputFiles([PICTURE, SPEECH]);
  await expect(app.getByRole("img", { name: "picture-1.png" })).toBeVisible();
  await expect(app.getByLabel("digit-1-rms.wav", { exact: true })).toBeVisible();
  expect(await barriers(app)).toEqual([]);
  await say(app, "What is this?");
  const article = app.getByRole("article").first();
  await expect(article.getByRole("img", { name: "picture-1.png" })).toBeVisible();
  await expect(app.getByRole("article").last()).toContainText("[image] [audio] What is this?");
  const asked = await app.evaluate(async () => {
    const content = window.fake?.asked?.messages.at(-1)?.content ?? [];
    const [image] = typeof content === "string" ? [] : content;
    const bytes = image?.type === "image" && image.image instanceof Blob ? await image.image.arrayBuffer() : undefined;
    return { content, bytes: bytes && [...new Uint8Array(bytes)] };
  });
  expect(asked.content).toMatchObject([{ type: "image", tokens: 280 }, { type: "audio" }, { type: "text" }]);
  expect(asked.bytes).toEqual([...readFileSync(PICTURE)]);
  await app.reload();
  await expect(article.getByRole("img", { name: "picture-1.png" })).toBeVisible();
  const playable = article.locator("audio");
  await expect.poll(() => playable.evaluate((audio: HTMLAudioElement) => audio.duration)).toBeGreaterThan(0.1);
});

test.describe("on a phone", () => {
  test.use({ viewport: PHONE });
  test("a chat opens at its end, also when its images come later", async ({ app }) => {
    await start(app);
    await say(app, "A long message. ".repeat(60));
    await app.getByLabel("Images, audio and video, or documents").setInputFiles(PICTURE);
    await say(app, "And an image");
    await app.reload();
    await expect(app.getByRole("img", { name: "picture" })).toBeVisible();
    const beyond = () =>
      app.locator(".scroller").evaluate((one) => Math.round(one.scrollHeight - one.scrollTop - one.clientHeight));
    await expect.poll(beyond).toBeLessThanOrEqual(1);
    expect(await app.locator(".scroller").evaluate((one) => one.scrollTop)).toBeGreaterThan(0);
  });
});

test("a dropped and a pasted image are attached, and can be removed", async ({ app }) => {
  await start(app);
  const bytes = [...readFileSync(PICTURE)];
  await app.evaluate((numbers) => {
    const files = new DataTransfer();
    files.items.add(new File([new Uint8Array(numbers)], "dropped.png", { type: "image/png" }));
    for (const kind of ["dragenter", "dragover", "drop"]) {
      document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
    }
    const pasted = new DataTransfer();
    pasted.items.add(new File([new Uint8Array(numbers)], "pasted.png", { type: "image/png" }));
    const field = document.querySelector("textarea");
    // Firefox leaves out files that a script puts into such an event.
    const event = new ClipboardEvent("paste", { bubbles: true, cancelable: true });
    Object.defineProperty(event, "clipboardData", { value: pasted });
    field?.dispatchEvent(event);
  }, bytes);
  await expect(app.getByRole("img", { name: "dropped.png" })).toBeVisible();
  await expect(app.getByRole("img", { name: "pasted.png" })).toBeVisible();
  await app.getByRole("button", { name: "Remove dropped.png" }).click();
  await expect(app.getByRole("img", { name: "dropped.png" })).toHaveCount(0);
  // An image needs no words.
  await app.getByRole("button", { name: "Send" }).click();
  await expect(app.getByRole("article").last()).toContainText("[image]");
});

// Only Chromium has a microphone and a camera that tests can switch on.
test("a recording shows its level and is attached @chromium", async ({ app, context }) => {
  await context.grantPermissions(["microphone"]);
  await start(app);
  await app.getByRole("button", { name: "Record audio" }).click();
  const level = app.getByRole("meter", { name: "Microphone level" });
  await expect.poll(() => level.evaluate((meter: HTMLMeterElement) => meter.value)).toBeGreaterThan(0);
  await app.getByRole("button", { name: "Stop recording" }).click();
  await expect(app.getByLabel("recording", { exact: true })).toBeVisible();
  await say(app, "What do you hear?");
  await expect(app.getByRole("article").last()).toContainText("[audio] What do you hear?");
});

test("a photograph is taken and attached @chromium", async ({ app, context }) => {
  await context.grantPermissions(["camera"]);
  await start(app);
  await app.getByRole("button", { name: "Take a photo" }).click();
  expect(await barriers(app)).toEqual([]);
  await app.getByRole("button", { name: "Take photo" }).click();
  await expect(app.getByRole("dialog", { name: "Camera" })).toHaveCount(0);
  await expect(app.getByRole("img", { name: "photo.jpg" })).toBeVisible();
  await say(app, "Who is this?");
  await expect(app.getByRole("article").last()).toContainText("[image] Who is this?");
});

test("without a microphone or a camera it is said what to do", async ({ app }) => {
  await start(app);
  await app.evaluate(() => {
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "NotAllowedError"));
  });
  await app.getByRole("button", { name: "Take a photo" }).click();
  await expect(app.getByText(/Could not use the camera/u)).toBeVisible();
  await app.getByRole("button", { name: "Record audio" }).click();
  await expect(app.getByText(/Could not use the microphone/u)).toBeVisible();
});
