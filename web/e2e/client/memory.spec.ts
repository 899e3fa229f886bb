// Memory: freed is gone, and a long conversation takes no more than a short one.
import { type Thread, expect, test } from "./fixtures.ts";

const MODEL = "/goldens/gguf/tiny-e2b-Q4_K_M.gguf";

test("free gives every buffer back", async ({ client }) => {
  const made = await client.evaluate(async (url) => {
    const model = await rullama.load(url, { keep: false, worker: false, context: 128 });
    const loaded = gpuWatch.bytes;
    const session = await model.session();
    for await (const _ of session.complete("the cat", { maxTokens: 3 }));
    for await (const _ of model.complete("the cat", { maxTokens: 3, logprobs: 1 }));
    const [used, report] = [gpuWatch.bytes, await model.memory()];
    await session.free();
    const [withoutSession, reportThen] = [gpuWatch.bytes, await model.memory()];
    await model.free();
    return {
      loaded,
      used,
      report,
      withoutSession,
      reportThen,
      freed: gpuWatch.bytes,
      weights: model.info.memory.weights,
    };
  }, MODEL);
  expect(made.loaded).toBeGreaterThanOrEqual(made.weights);
  expect(made.used).toBeGreaterThan(made.loaded);
  expect(made.withoutSession).toBeLessThan(made.used);
  expect(made.freed).toBe(0);
  expect(made.report.sessions).toBe(2);
  expect(made.reportThen.sessions).toBe(1);
  // The report leaves out uniforms and landing buffers, which are small.
  expect(made.used - made.report.gpu).toBeGreaterThanOrEqual(0);
  expect(made.used - made.report.gpu).toBeLessThan(2_000_000);
});

for (const thread of ["page", "worker"] satisfies Thread[]) {
  test(`fifty turns do not grow in a ${thread}`, { tag: thread === "page" ? "@slow" : [] }, async ({ client }) => {
    test.setTimeout(180_000);
    const made = await client.evaluate(
      async ({ url, worker }) => {
        const model = await rullama.load(url, { keep: false, worker, context: 512 });
        const session = await model.session();
        const turn = async (number: number) => {
          // What was said differs from turn to turn and every tenth turn starts anew, as conversations do.
          const text = "cat ".repeat(1 + (number % 10));
          for await (const _ of session.chat([{ role: "user", content: text }], { maxTokens: 2, seed: number }));
        };
        const measure = async () => ({ ...(await model.memory()), buffers: gpuWatch.bytes });
        for (let i = 0; i < 10; i++) await turn(i);
        const early = await measure();
        for (let i = 10; i < 50; i++) await turn(i);
        const late = await measure();
        await model.free();
        return { early, late };
      },
      { url: MODEL, worker: thread === "worker" },
    );
    expect(made.late).toEqual(made.early);
  });
}
