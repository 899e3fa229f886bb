// Golden greedy answers in Firefox: its compiler for kernels is another one than Chromium's, and so are its limits.
import { expect, test as base } from "@playwright/test";
import { startServer } from "../client/fixtures.ts";
import { type Golden, golden } from "../client/goldens.ts";
import { type Firefox, openFirefox } from "../support/firefox.ts";
import type { TestServer } from "../support/server.ts";

const test = base.extend<object, { server: TestServer; firefox: Firefox }>({
  server: [
    // oxlint-disable-next-line no-empty-pattern -- Playwright reads the parameter list.
    async ({}, use) => {
      const server = await startServer();
      await use(server);
      await server.close();
    },
    { scope: "worker" },
  ],
  firefox: [
    async ({ server }, use) => {
      const firefox = await openFirefox(server.origin);
      await firefox.page.waitForFunction(() => "rullama" in globalThis);
      await use(firefox);
      await firefox.close();
    },
    { scope: "worker", timeout: 120_000 },
  ],
});

const CASES: { model: string; worker: boolean; most: number; slow?: boolean }[] = [
  { model: "micro-e2b-Q8_0", worker: true, most: 6 },
  { model: "tiny-e2b-Q4_K_M", worker: false, most: 16, slow: true },
  { model: "tiny-moe-Q4_K_M", worker: true, most: 16, slow: true },
];

for (const { model, worker, most, slow } of CASES) {
  const tag = slow ? "@slow" : [];
  test(`${model} in a ${worker ? "worker, kept and read back from storage" : "page"}`, { tag }, async ({ firefox }) => {
    test.setTimeout(900_000);
    const wanted = await golden(model, "short", most);
    const made = await firefox.page.evaluate(
      async (asked: Golden, inWorker: boolean) => {
        const load = () => {
          const options = { worker: inWorker, keep: inWorker, context: 128, cache: "f32" } as const;
          return rullama.load(`/goldens/gguf/${asked.model}.gguf`, options);
        };
        if (inWorker) await (await load()).free();
        const loaded = await load();
        const session = await loaded.session();
        const options = { temperature: 0, maxTokens: asked.greedy.length };
        for await (const event of session.completeIds(asked.prompt, options)) void event;
        const tokens = [...(await session.tokens())];
        const { device } = loaded.info;
        await loaded.free();
        const engine = rullama.openEngine({ worker: inWorker });
        const stored = (await engine.storage()).models.map(({ complete }) => complete);
        engine.close();
        return { tokens, device, stored };
      },
      wanted,
      worker,
    );
    console.log(`Firefox on ${made.device}`);
    expect(made.tokens).toEqual([...wanted.prompt, ...wanted.greedy]);
    if (worker) expect(made.stored).toContain(true);
  });
}
