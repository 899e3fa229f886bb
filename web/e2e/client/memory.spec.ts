// Memory: freed is gone, and a long conversation takes no more than a short one.
import { type Thread, expect, test } from "./fixtures.ts";

for (const thread of ["page", "worker"] satisfies Thread[]) {
  // Buffers are counted in pages alone.
  test(`fifty turns do not grow in a ${thread}`, { tag: thread === "worker" ? "@slow" : [] }, async ({ client }) => {
    const made = await client.evaluate(async (thread) => {
      const model = await sharedModel(thread);
      const session = await model.session();
      const turn = async (number: number) => {
        // What was said differs from turn to turn and every tenth turn starts anew, as conversations do.
        const text = "cat ".repeat(1 + (number % 10));
        for await (const _ of session.chat([{ role: "user", content: text }], { maxTokens: 1, seed: number }));
      };
      const measure = async () => ({ ...(await model.memory()), buffers: gpuWatch.bytes });
      // Once round and back to the start: runs of each length that there is to read have been made ready.
      for (let i = 0; i < 20; i++) await turn(i);
      const early = await measure();
      for (let i = 20; i < 50; i++) await turn(i);
      const late = await measure();
      await session.free();
      return { early, late };
    }, thread);
    expect(made.late).toEqual(made.early);
  });
}

test("free gives every buffer back", async ({ client }) => {
  const made = await client.evaluate(async () => {
    const model = await sharedModel("page");
    const [before, reportBefore] = [gpuWatch.bytes, await model.memory()];
    const session = await model.session();
    for await (const _ of session.complete("the cat", { maxTokens: 1, logprobs: 1 }));
    const [used, report] = [gpuWatch.bytes, await model.memory()];
    await session.free();
    const [withoutSession, reportThen] = [gpuWatch.bytes, await model.memory()];
    await release("page");
    const freed = gpuWatch.bytes;
    return { before, reportBefore, used, report, withoutSession, reportThen, freed, info: model.info };
  });
  expect(made.before).toBeGreaterThanOrEqual(made.info.memory.weights);
  expect(made.used).toBeGreaterThan(made.before);
  expect(made.withoutSession).toBeLessThan(made.used);
  expect(made.freed).toBe(0);
  expect(made.report.sessions).toBe(made.reportBefore.sessions + 1);
  expect(made.reportThen.sessions).toBe(made.reportBefore.sessions);
  // The report leaves out uniforms and landing buffers, which are small.
  expect(made.used - made.report.gpu).toBeGreaterThanOrEqual(0);
  expect(made.used - made.report.gpu).toBeLessThan(2_000_000);
});
