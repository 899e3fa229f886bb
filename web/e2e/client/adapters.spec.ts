// Adapters beside a golden model: what they make it say, several at once, and what does not fit.
import { type Thread, expect, test } from "./fixtures.ts";
import { ADAPTER_FOLDER, ADAPTER_GGUF, MODEL, logSoftmax, loraGolden, serveLora } from "./lora.ts";

/** Halves on the GPU, on a scale where logits reach 20. */
const TOLERANCE = 0.05;

for (const thread of ["worker", "page"] satisfies Thread[]) {
  test(
    `in a ${thread}: golden logits with an adapter, its half and none, switched between requests`,
    { tag: thread === "page" ? "@slow" : [] },
    async ({ client, server }) => {
      await serveLora(server);
      const golden = await loraGolden();
      const made = await client.evaluate(
        async ({ url, gguf, folder, worker, ids }) => {
          const model = await rullama.load(url, { worker, keep: false, context: 64, cache: "f32" });
          const one = await model.adapters.add(gguf);
          const two = await model.adapters.add(new URL(folder, location.href), { name: "from PEFT" });
          const session = await model.session();
          const top = async (adapters: { id: string; weight?: number }[]) => {
            for await (const event of session.completeIds(ids, {
              temperature: 0,
              maxTokens: 1,
              logprobs: 5,
              adapters,
            })) {
              if (event.type === "logprobs") return event.top.map(({ id, logprob }) => ({ id, logprob }));
            }
            throw new Error("no token");
          };
          const base = await top([]);
          const whole = await top([{ id: one.id }]);
          const halves = await top([
            { id: one.id, weight: 0.5 },
            { id: two.id, weight: 0.5 },
          ]);
          const again = await top([]);
          const saved = await session.save();
          await session.restore(saved);
          await model.adapters.remove(one.id);
          const unknown = await top([{ id: one.id }]).then(
            () => "none",
            (error) => error.code,
          );
          const list = await model.adapters.list();
          await model.free();
          return { base, whole, halves, again, unknown, list, one };
        },
        {
          url: MODEL,
          gguf: ADAPTER_GGUF,
          folder: ADAPTER_FOLDER,
          worker: thread === "worker",
          ids: golden("short.ids"),
        },
      );
      const wanted = logSoftmax(golden("short.logits").slice(-640));
      const best = wanted.indexOf(Math.max(...wanted));
      for (const made_ of [made.whole, made.halves]) {
        expect(made_[0]?.id).toBe(best);
        for (const { id, logprob } of made_) expect(Math.abs(logprob - wanted[id]!)).toBeLessThan(TOLERANCE);
      }
      expect(made.again).toEqual(made.base);
      expect(made.base[0]).not.toEqual(made.whole[0]);
      expect(made.unknown).toBe("bad_adapter");
      expect(made.one).toMatchObject({ name: "micro-e2b-lora-F32", format: "gguf", rank: 4 });
      expect(made.list.map(({ name }) => name)).toEqual(["from PEFT"]);
    },
  );
}

test("a served name brings its adapter, which answers unless a request says otherwise", async ({ client, server }) => {
  await serveLora(server);
  const layer = (kind: string, url: string) => ({ kind, url, digest: null, size: 1 });
  const layers = [layer("model", MODEL), layer("adapter", ADAPTER_GGUF)];
  server.json("/rullama/models", { models: [{ name: "tuned:latest", size: 2, layers }] });
  const golden = await loraGolden();
  const made = await client.evaluate(async (ids) => {
    const model = await rullama.load("tuned", { keep: false, context: 64, cache: "f32" });
    const session = await model.session();
    const first = async (options: { adapters?: { id: string }[] }) => {
      const asked = { temperature: 0, maxTokens: 1, logprobs: 1, ...options };
      for await (const event of session.completeIds(ids, asked)) {
        if (event.type === "logprobs") return event.top[0]!;
      }
      throw new Error("no token");
    };
    const made = { usual: await first({}), base: await first({ adapters: [] }), list: await model.adapters.list() };
    await model.free();
    return made;
  }, golden("short.ids"));
  const wanted = logSoftmax(golden("short.logits").slice(-640));
  expect(Math.abs(made.usual.logprob - wanted[made.usual.id]!)).toBeLessThan(TOLERANCE);
  expect(made.usual.id).toBe(wanted.indexOf(Math.max(...wanted)));
  expect(made.base).not.toEqual(made.usual);
  expect(made.list).toMatchObject([{ name: "tuned:latest (adapter 1)", rank: 4 }]);
});

test("what does not fit is listed; what is kept is there after a reload, by its id alone", async ({
  client,
  server,
}) => {
  await serveLora(server);
  const { misfits, code, id } = await client.evaluate(
    async ({ url, folder }) => {
      const other = await rullama.load("/goldens/gguf/tiny-e2b-Q4_K_M.gguf", { keep: false, context: 64 });
      const error = await other.adapters.add(folder).then(
        () => undefined,
        (failure: unknown) => failure,
      );
      await other.free();
      const model = await rullama.load(url, { keep: false, context: 64 });
      const fetched = async (name: string) => new File([await (await fetch(folder + name)).blob()], name);
      const files = [await fetched("adapter_config.json"), await fetched("adapter_model.safetensors")];
      const info = await model.adapters.add(files, { name: "kept", keep: true });
      if (!(error instanceof rullama.BadAdapterError)) throw new Error(String(error));
      return { misfits: error.misfits, code: error.code, id: info.id };
    },
    { url: MODEL, folder: ADAPTER_FOLDER },
  );
  expect(code).toBe("bad_adapter");
  expect(misfits.length).toBeGreaterThan(24);
  expect(misfits[0]).toMatch(/blk\.\d+\./u);

  await client.reload();
  await client.waitForFunction(() => "rullama" in globalThis);
  const after = await client.evaluate(
    async ({ url, id }) => {
      const engine = rullama.openEngine();
      const [stored] = await engine.storedAdapters();
      await engine.renameAdapter(id, "renamed");
      const model = await engine.load(url, { keep: false, context: 64 });
      const events = [];
      for await (const event of model.complete("the", { temperature: 0, maxTokens: 2, adapters: [{ id }] })) {
        events.push(event.type);
      }
      const names = (await model.adapters.list()).map(({ name }) => name);
      await engine.deleteAdapter(id);
      const left = await engine.storedAdapters();
      engine.close();
      return { stored, names, last: events.at(-1), left };
    },
    { url: MODEL, id },
  );
  expect(after.stored).toMatchObject({ id, name: "kept", format: "peft", rank: 4 });
  expect(after).toMatchObject({ names: ["renamed"], last: "done", left: [] });
});
