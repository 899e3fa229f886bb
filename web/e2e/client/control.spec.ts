// Who comes first, who is stopped, and what happens to calls that make no sense.
import { MODEL, type Thread, expect, test } from "./fixtures.ts";

for (const thread of ["page", "worker"] satisfies Thread[]) {
  test(`abort, break and queueing in a ${thread}`, { tag: thread === "page" ? "@slow" : [] }, async ({ client }) => {
    const made = await client.evaluate(async (thread) => {
      const model = await sharedModel(thread);
      const session = await model.session();
      const wishes = { temperature: 0, maxTokens: 400 };
      const order: string[] = [];
      const ask = async (name: string, options: import("../../client/src/types.js").GenerateOptions) => {
        let last;
        for await (const event of session.complete("the cat", options)) {
          if (last === undefined) order.push(`${name} begins`);
          last = event;
        }
        order.push(`${name} ends`);
        return last?.type === "done" ? last : undefined;
      };
      // Of one conversation: the second waits for the first; the third is told not to come before it can begin.
      const controller = new AbortController();
      const first = ask("first", { ...wishes, maxTokens: 2 });
      const second = ask("second", { ...wishes, maxTokens: 1 });
      const third = ask("third", { ...wishes, signal: controller.signal });
      controller.abort();
      const [one, two, three] = await Promise.all([first, second, third]);
      // A break ends the answer, and the next one begins behind it.
      let heard = 0;
      for await (const event of session.complete("the cat", wishes)) {
        if (event.type === "text" && ++heard === 1) break;
      }
      const afterBreak = await ask("after", { ...wishes, maxTokens: 1 });
      const late = new AbortController();
      let answered = 0;
      let cancelled;
      for await (const event of model.complete("the cat", { ...wishes, signal: late.signal })) {
        if (event.type === "text" && ++answered === 2) late.abort();
        if (event.type === "done") cancelled = event;
      }
      await session.free();
      return { order, one, two, three, afterBreak, cancelled };
    }, thread);
    expect(made.order.filter((line) => !line.startsWith("third"))).toEqual([
      "first begins",
      "first ends",
      "second begins",
      "second ends",
      "after begins",
      "after ends",
    ]);
    expect(made.one).toMatchObject({ finish: "length", usage: { answerTokens: 2 } });
    expect(made.two).toMatchObject({ finish: "length", usage: { answerTokens: 1 } });
    expect(made.three).toMatchObject({ finish: "cancelled", usage: { answerTokens: 0 } });
    expect(made.afterBreak).toMatchObject({ finish: "length", usage: { answerTokens: 1 } });
    expect(made.cancelled!.finish).toBe("cancelled");
    expect(made.cancelled!.usage.answerTokens).toBeGreaterThanOrEqual(2);
    expect(made.cancelled!.usage.answerTokens).toBeLessThan(100);
  });
}

test("failures have codes and say what to do", async ({ client, server }) => {
  server.html("/page.gguf", "<!doctype html><title>Not a model</title>");
  const codes = await client.evaluate(async (url) => {
    const codeOf = (promise: Promise<unknown>) =>
      promise.then(
        () => "none",
        (error: unknown) => (error instanceof rullama.RullamaError ? error.code : String(error)),
      );
    const run = async (events: AsyncIterable<unknown>) => {
      for await (const _ of events);
    };
    const model = await rullama.load(url, { keep: false, context: 64 });
    const session = await model.session();
    const controller = new AbortController();
    const cancelled = codeOf(rullama.load(url, { keep: false, signal: controller.signal }));
    controller.abort();
    const result: Record<string, string> = {
      long: await codeOf(run(model.complete("cat ".repeat(200)))),
      temperature: await codeOf(run(model.complete("cat", { temperature: NaN }))),
      topP: await codeOf(run(model.complete("cat", { topP: -1 }))),
      context: await codeOf(model.session({ context: 10 ** 9 })),
      token: await codeOf(run(session.completeIds([99999]))),
      nothing: await codeOf(run(session.completeIds([]))),
      saved: await codeOf(session.restore(new Uint8Array(10))),
      fit: await codeOf(rullama.load(url, { keep: false, gpuMemory: 1000 })),
      unverified: await codeOf(rullama.load(url, { keep: false, sha256: "0".repeat(64) })),
      checksum: await codeOf(rullama.load(url, { keep: true, sha256: "0".repeat(64) })),
      format: await codeOf(run(model.complete("cat", { format: { not: {} } }))),
      page: await codeOf(rullama.load("/page.gguf", { keep: false })),
      missing: await codeOf(rullama.load("/missing.gguf", { keep: false })),
      cancelled: await cancelled,
      blob: await codeOf(rullama.load(new Blob([new Uint8Array(100)]), { keep: false })),
    };
    await session.free();
    result["freedSession"] = await codeOf(run(session.complete("cat")));
    await model.free();
    result["freed"] = await codeOf(run(model.complete("cat")));
    result["freedTokens"] = await codeOf(model.tokenize("cat"));
    return result;
  }, MODEL);
  expect(codes).toMatchObject({
    long: "context_full",
    temperature: "bad_options",
    topP: "bad_options",
    context: "bad_options",
    token: "bad_options",
    nothing: "bad_options",
    saved: "bad_options",
    fit: "does_not_fit",
    unverified: "unverified",
    checksum: "checksum",
    format: "bad_options",
    cancelled: "cancelled",
    blob: "bad_file",
    freedSession: "freed",
    freed: "freed",
    freedTokens: "freed",
  });
  expect(["no_ranges", "bad_file", "network"]).toContain(codes["page"]);
  expect(["not_found", "network"]).toContain(codes["missing"]);
});

test("a session is saved and goes on elsewhere", async ({ client }) => {
  const [whole, parts] = await client.evaluate(async () => {
    const model = await sharedModel("worker");
    const answer = async (
      session: import("../../client/src/session.js").Session,
      ids: Iterable<number>,
      maxTokens: number,
    ) => {
      for await (const _ of session.completeIds(ids, { temperature: 0, maxTokens }));
      return [...(await session.tokens())];
    };
    const prompt = [2, 5, 6, 7];
    const first = await model.session();
    const whole = await answer(first, prompt, 4);
    const second = await model.session();
    await answer(second, prompt, 2);
    const saved = await second.save();
    await second.free();
    const third = await model.session();
    await third.restore(saved);
    const parts = await answer(third, await third.tokens(), 2);
    await Promise.all([first.free(), third.free()]);
    return [whole, parts];
  });
  expect(parts).toEqual(whole);
});
