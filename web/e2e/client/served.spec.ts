// Models of the real `rullama serve` that come with more than one file.
import { Store } from "../support/store.ts";
import { startServe } from "../support/serve.ts";
import { NAME, expect, test as base } from "./fixtures.ts";

interface Shop {
  host: string;
  /** Names of models: with encoders, and with a drafter. */
  seeing: string;
  drafted: string;
}

const test = base.extend<{ shop: Shop }>({
  shop: async ({ server }, use) => {
    const store = await Store.make();
    const seeing = await store.add("seeing", {
      model: `gguf/${NAME}.gguf`,
      projector: "gguf/micro-e2b-mmproj-F16.gguf",
    });
    const drafted = await store.add("drafted", {
      model: "gguf/micro-e2b-BF16.gguf",
      draft: "assistant/micro-assistant-BF16.gguf",
    });
    const serve = await startServe({ store: store.folder, origin: server.origin });
    try {
      await use({ host: serve.origin, seeing, drafted });
    } finally {
      await serve.stop();
      await store.remove();
    }
  },
});

test("what comes with a model is counted before it is loaded", async ({ client, shop }) => {
  const found = await client.evaluate(async ({ host, seeing, drafted }) => {
    const engine = rullama.openEngine({ host });
    const memory = async (name: string, options = {}) => (await engine.inspect(name, options)).memory;
    const all = [await memory(seeing), await memory(drafted), await memory(drafted, { draft: "off" })] as const;
    const tight = await engine.inspect(seeing, { gpuMemory: all[0].gpu - 1 });
    engine.close();
    return { all, tight: tight.verdict };
  }, shop);
  const [seeing, drafted, alone] = found.all;
  expect(seeing.encoders).toBeGreaterThan(100_000);
  expect(seeing.gpu).toBe(seeing.weights + seeing.caches + seeing.work + seeing.encoders!);
  expect(seeing.drafter).toBe(undefined);
  expect(drafted.drafter).toBeGreaterThan(10_000);
  expect(drafted.encoders).toBe(undefined);
  expect(drafted.gpu).toBe(alone.gpu + drafted.drafter!);
  expect(found.tight).toBe("too-large");
});

test("a model with a projector layer sees an image", { tag: "@slow" }, async ({ client, shop }) => {
  const made = await client.evaluate(async ({ host, seeing }) => {
    const engine = rullama.openEngine({ host });
    const model = await engine.load(seeing, { keep: false, context: 256 });
    const before = (await model.memory()).gpu;
    const canvas = new OffscreenCanvas(96, 96);
    canvas.getContext("2d")!.fillRect(16, 16, 48, 48);
    const image = await canvas.convertToBlob();
    const content = [
      { type: "image" as const, image, tokens: 70 as const },
      { type: "text" as const, text: "cat" },
    ];
    let usage;
    for await (const event of model.chat([{ role: "user", content }], { maxTokens: 1 })) {
      if (event.type === "done") usage = event.usage;
    }
    const seen = (await model.memory()).gpu - before;
    await model.free();
    engine.close();
    return { usage, seen };
  }, shop);
  expect(made.usage?.promptTokens).toBeGreaterThan(60);
  expect(made.seen).toBeGreaterThan(100_000);
});

test("a page connects to the program, which replies alike in both dialects", async ({ client, shop }) => {
  const made = await client.evaluate(async ({ host, drafted }) => {
    const schema = {
      type: "object",
      properties: { kind: { enum: ["cat", "dog"] } },
      required: ["kind"],
      "x-guidance": { whitespace_flexible: false },
    };
    const messages = [{ role: "user" as const, content: "the cat" }];
    const replies = [];
    for (const dialect of ["ollama", "openai"] as const) {
      const model = await rullama.connect(host, { model: drafted, dialect });
      const say = async (options: object) => {
        const reply = { text: "", answerTokens: 0 };
        for await (const event of model.chat(messages, { temperature: 0, ...options })) {
          if (event.type === "text" || event.type === "thinking") reply.text += event.text;
          if (event.type === "done") reply.answerTokens = event.usage.answerTokens;
        }
        return reply;
      };
      replies.push({
        said: await say({ maxTokens: 4 }),
        object: JSON.parse((await say({ format: schema, maxTokens: 60 })).text) as { kind: string },
        remote: model.info.remote?.dialect,
      });
      await model.free();
    }
    const found = await rullama.connect(host, { model: drafted });
    const server = await rullama.connect(`${host}/v1`, { model: drafted });
    const [told, own] = [
      await server.tokenize("the <eos>"),
      await server.tokenize("the <eos>", { special: true, bos: true }),
    ];
    const local = await sharedModel("worker");
    const same = [await local.tokenize("the <eos>"), await local.tokenize("the <eos>", { special: true, bos: true })];
    const missing = await rullama.connect(host, { model: "none" }).catch((error: { code?: string }) => error.code);
    const ids = (all: Uint32Array[]) => all.map((one) => [...one]);
    return { replies, found: found.info.remote?.dialect, tokens: ids([told, own]), same: ids(same), missing };
  }, shop);
  const [ollama, openai] = made.replies;
  expect([ollama!.remote, openai!.remote, made.found]).toEqual(["ollama", "openai", "ollama"]);
  expect(ollama!.said).toEqual(openai!.said);
  expect(ollama!.said.answerTokens).toBe(4);
  for (const { object } of made.replies) expect(["cat", "dog"]).toContain(object.kind);
  expect(made.tokens).toEqual(made.same);
  expect(made.missing).toBe("not_found");
});
