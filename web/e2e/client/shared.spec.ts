// Two tabs with one model: the second has no device of its own, and takes over when the first one closes.
import { MODEL, expect, test } from "./fixtures.ts";

test("tabs share a model, and one takes over", async ({ studio }) => {
  const { context, server } = studio;
  const open = async () => {
    const page = await context.newPage();
    await page.goto(server.origin);
    await page.waitForFunction(() => "rullama" in globalThis);
    await page.evaluate(() => {
      const { requestDevice } = GPUAdapter.prototype;
      Object.assign(globalThis, { devices: 0 });
      GPUAdapter.prototype.requestDevice = function (descriptor) {
        (globalThis as unknown as { devices: number }).devices += 1;
        return requestDevice.call(this, descriptor);
      };
    });
    return page;
  };
  const say = (source: string) =>
    rullama.load(source, { keep: false, context: 256, worker: false, shared: true }).then(async (model) => {
      let text = "";
      const options = { temperature: 0, maxTokens: 3 };
      for await (const event of model.chat([{ role: "user", content: "Hello" }], options)) {
        if (event.type === "text" || event.type === "thinking") text += event.text;
      }
      Object.assign(globalThis, { model });
      const { tabs } = await model.memory();
      return { text, tabs, name: model.info.name };
    });
  const one = await open();
  const first = await one.evaluate(say, MODEL);
  const two = await open();
  const second = await two.evaluate(say, MODEL);
  expect(first).toMatchObject({ tabs: 1 });
  expect(second).toEqual({ ...first, tabs: 2 });
  const devices = () => (globalThis as unknown as { devices: number }).devices;
  const [owner, follower] = await Promise.all([one.evaluate(devices), two.evaluate(devices)]);
  expect(owner).toBeGreaterThan(0);
  expect(follower).toBe(0);
  const lost = two.evaluate(async () => {
    const { lost } = (globalThis as unknown as { model: { lost: Promise<{ code?: string }> } }).model;
    return (await lost).code;
  });
  await two.evaluate(() => {
    const { model } = globalThis as unknown as { model: Awaited<ReturnType<typeof rullama.load>> };
    Object.assign(globalThis, { texts: 0 });
    const reply = async () => {
      for await (const event of model.complete("the cat", { temperature: 0, maxTokens: 240, ignoreEos: true })) {
        if (event.type === "text") (globalThis as unknown as { texts: number }).texts += 1;
      }
    };
    const end = reply().then(
      () => ({ code: "none" }),
      (error: { code: string; canRetry: boolean }) => ({ code: error.code, canRetry: error.canRetry }),
    );
    Object.assign(globalThis, { end: () => end });
  });
  await two.waitForFunction(() => (globalThis as unknown as { texts: number }).texts > 1);
  await one.close();
  expect(await lost).toBe("interrupted");
  // A reply under way ends, too, and can be asked for again.
  const end = await two.evaluate(() => (globalThis as unknown as { end: () => Promise<object> }).end());
  expect(end).toEqual({ code: "interrupted", canRetry: true });
  expect(await two.evaluate(say, MODEL)).toEqual(first);
  expect(await two.evaluate(devices)).toBeGreaterThan(0);
  await two.close();
});
