// The package in Firefox: no subgroups, bindings of 128 MiB, kernels compiled by naga. What it gives must be what other browsers get.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test as base } from "@playwright/test";
import { NAME, startServer } from "../client/fixtures.ts";
import { GOLDENS, golden } from "../client/goldens.ts";
import { splitFile } from "../../client/test/storage/split-file.ts";
import { bytesBody } from "../support/body.ts";
import { type Firefox, openFirefox } from "../support/firefox.ts";

const test = base.extend<object, { firefox: Firefox }>({
  firefox: [
    // oxlint-disable-next-line no-empty-pattern -- Playwright reads the parameter list.
    async ({}, use) => {
      const server = await startServer();
      const whole = new Uint8Array(await readFile(join(GOLDENS, "gguf", `${NAME}.gguf`)));
      for (const [index, part] of (await splitFile(whole, 2)).entries()) {
        server.file(`/split/m-0000${index + 1}-of-00002.gguf`, bytesBody(part));
      }
      const firefox = await openFirefox(server.origin);
      await firefox.page.waitForFunction(() => "rullama" in globalThis);
      await use(firefox);
      await firefox.close();
      await server.close();
    },
    // A busy machine starts it in minutes.
    { scope: "worker", timeout: 300_000 },
  ],
});

test("its GPU is reported as it is, in the page and in the worker", async ({ firefox }) => {
  const { report, text } = await firefox.page.evaluate(async () => {
    const engine = rullama.openEngine();
    const report = await rullama.browserReport(engine);
    engine.close();
    return { report, text: rullama.reportText(report) };
  });
  expect(report.userAgent).toContain("Firefox");
  expect(report.page).toMatchObject({ webgpu: true, limits: { maxStorageBufferBindingSize: 128 << 20 } });
  expect(report.page).not.toHaveProperty("subgroups");
  expect(report.engine).toMatchObject({ webgpu: true });
  expect(report.storage).toMatchObject({ privateFiles: true, locks: true });
  expect(text).toContain("no self-test");
});

test("a split model answers, continues a prefix, stops and is freed", async ({ firefox }) => {
  test.setTimeout(900_000);
  const wanted = await golden(NAME, "short", 4);
  const made = await firefox.page.evaluate(async ({ prompt, greedy }) => {
    const model = await rullama.load("/split/m-00001-of-00002.gguf", { context: 256, cache: "f32" });
    const session = await model.session();
    for await (const event of session.completeIds(prompt, { temperature: 0, maxTokens: greedy.length })) void event;
    const tokens = [...(await session.tokens())];
    const question = { role: "user" as const, content: "Hello" };
    const begun = { role: "assistant" as const, content: "Well, the", prefix: true };
    const ends: string[] = [];
    for await (const event of session.chat([question, begun], { temperature: 0, maxTokens: 2 })) {
      if (event.type === "done") ends.push(event.finish);
    }
    const continued = [...(await session.tokens())];
    const text = await model.detokenize(continued);
    const stop = new AbortController();
    for await (const event of model.chat([question], { signal: stop.signal, maxTokens: 50 })) {
      if (event.type === "text" || event.type === "thinking") stop.abort();
      if (event.type === "done") ends.push(event.finish);
    }
    await model.free();
    const engine = rullama.openEngine();
    const stored = (await engine.storage()).models.map(({ complete }) => complete);
    engine.close();
    return { tokens, text, ends, stored };
  }, wanted);
  expect(made.tokens).toEqual([...wanted.prompt, ...wanted.greedy]);
  expect(made.text).toContain("Well, the");
  expect(made.ends).toEqual(["length", "cancelled"]);
  expect(made.stored).toEqual([true, true]);
});
