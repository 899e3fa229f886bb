// The decoder's relatives in a page: vectors, blocks that settle, drafts.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileBody } from "../support/body.ts";
import { program } from "../support/program.ts";
import type { TestServer } from "../support/server.ts";
import { expect, test } from "./fixtures.ts";
import { GOLDENS, golden, numbersOf } from "./goldens.ts";

const DIFFUSION = "diffusion/micro-diffusion-BF16.gguf";
const TARGET = "micro-e2b-BF16";
const DRAFTER = "assistant/micro-assistant-BF16.gguf";
/** As the native tests allow. */
const TOLERANCE = 2e-5;
/** The whole engine, while it loads such a model. */
const MOST_HEAP = 256 * 2 ** 20;

async function serve(server: TestServer, ...files: string[]): Promise<void> {
  for (const file of files) server.file(`/goldens/${file}`, await fileBody(join(GOLDENS, file)));
}

for (const generation of ["first", "second"]) {
  test(`vectors of the ${generation} EmbeddingGemma are the reference's`, async ({ client, server }) => {
    const file = `embedding/${generation}-BF16.gguf`;
    await serve(server, file);
    const numbers = await numbersOf(`embedding/${generation}.safetensors`);
    const prompts = ["short", "medium", "long"];
    const made = await client.evaluate(
      async ({ url, ids }) => {
        const engine = rullama.openEngine();
        const { info: found, memory } = await engine.inspect(url);
        const model = await engine.load(url, { keep: false });
        const { vectors } = await model.embedIds(ids);
        const { kind, dimensions } = model.info;
        const chat = await model
          .chat([{ role: "user", content: "Hello" }])
          .next()
          .catch((error: Error) => error.message);
        const report = { found: found.kind, needs: memory.gpu, kind, dimensions, chat, ...(await model.memory()) };
        engine.close();
        return { vectors: vectors.map((vector) => [...vector]), ...report };
      },
      { url: `/goldens/${file}`, ids: prompts.map((prompt) => numbers(`${prompt}.ids`)) },
    );
    for (const [at, prompt] of prompts.entries()) {
      const wanted = numbers(`${prompt}.unit`);
      const off = Math.max(...wanted.map((x, i) => Math.abs(x - (made.vectors[at]?.[i] ?? NaN))));
      expect(off, prompt).toBeLessThan(TOLERANCE);
    }
    expect(made).toMatchObject({ found: "embedding", kind: "embedding", dimensions: made.vectors[0]?.length });
    expect(made.needs).toBeGreaterThan(100_000);
    expect(made.wasmHeap).toBeLessThan(MOST_HEAP);
    expect(made.chat).toContain("is an EmbeddingGemma and cannot answer");
  });
}

test("texts become vectors in OpenAI's shape and in Ollama's, and are found", async ({ client, server }) => {
  await serve(server, "embedding/first-BF16.gguf");
  const made = await client.evaluate(async (url) => {
    const model = await rullama.load(url, { keep: false, worker: false });
    const input = ["Hello there", "World"];
    const openai = await model.embeddings.create({ input, dimensions: 8, encoding_format: "float", purpose: "query" });
    const plain = await model.embed("task: search result | query: Hello there", { dimensions: 8 });
    const wrong = await model.embed("x", { dimensions: 9999 }).catch((error: Error) => error.message);
    const strange = await model.embed("x", { purpose: "poetry" as "query" }).catch((error: Error) => error.message);
    const index = new rullama.SearchIndex(model);
    const ids = await index.add(["one text", "another one", "title: none | text: Hello"]);
    const hits = await index.search("Hello", { top: 2 });
    const same = rullama.cosine(plain.vectors[0] ?? [], openai.data[0]?.embedding as number[]);
    await model.free();
    const ollama = new rullama.Ollama(rullama.openEngine({ worker: false }), { keep: false });
    const embedded = await ollama.embed({ model: url, input: "Hello" });
    await ollama.unload();
    return { openai, same, wrong, strange, ids, hits, embedded };
  }, "/goldens/embedding/first-BF16.gguf");
  expect(made.openai).toMatchObject({ object: "list", data: [{ object: "embedding", index: 0 }, { index: 1 }] });
  expect(made.openai.data[0]?.embedding).toHaveLength(8);
  expect(made.openai.usage.prompt_tokens).toBeGreaterThan(4);
  expect(made.same).toBeCloseTo(1, 5);
  expect(made.wrong).toContain("choose 1 to 32");
  expect(made.strange).toContain("choose one of none, query, document");
  expect(made.hits).toHaveLength(2);
  expect(made.hits[0]?.score).toBeGreaterThanOrEqual(made.hits[1]?.score ?? 1);
  expect(made.embedded.embeddings[0]).toHaveLength(32);
  expect(made.embedded.prompt_eval_count).toBeGreaterThan(1);
});

test("a DiffusionGemma says what the native program says, and shows how it settles", async ({ client, server }) => {
  // Kernels of experts take SwiftShader minutes on a busy machine.
  test.setTimeout(600_000);
  await serve(server, DIFFUSION);
  const args = ["run", join(GOLDENS, DIFFUSION), "Hello", "--device", "cpu", "--seed", "1", "--json"];
  const native = JSON.parse(
    execFileSync(program(), [...args, "--steps", "2", "--blocks", "2"], { encoding: "utf8" }),
  ) as {
    text: string;
    steps: number;
  };
  const made = await client.evaluate(async (url) => {
    const model = await rullama.load(url, { keep: false });
    const hello = [{ role: "user" as const, content: "Hello" }];
    const watched = [];
    for await (const event of model.chat(hello, { seed: 1, steps: 2, blocks: 2, canvas: true })) watched.push(event);
    const cancelled = [];
    const stop = new AbortController();
    for await (const event of model.chat(hello, { signal: stop.signal })) {
      cancelled.push(event);
      if (event.type === "step") stop.abort();
    }
    const saved = await (await model.session()).save().catch((error: Error) => error.message);
    const { info } = model;
    const memory = await model.memory();
    await model.free();
    return { watched, cancelled, saved, info, memory };
  }, `/goldens/${DIFFUSION}`);
  const text = made.watched.map((event) => (event.type === "text" ? event.text : "")).join("");
  expect(text).toBe(native.text);
  const canvases = made.watched.filter((event) => event.type === "canvas");
  expect(canvases.map(({ block, step, steps }) => [block, step, steps])).toEqual([
    [0, 1, 2],
    [0, 2, 2],
    [1, 1, 2],
    [1, 2, 2],
  ]);
  expect(canvases.filter(({ step }) => step === 2).map(({ tokens }) => tokens.length)).toEqual([24, 24]);
  expect(canvases.every(({ tokens }) => tokens.every(({ settled }) => typeof settled === "boolean"))).toBe(true);
  // Nobody watched this one.
  expect([...new Set(made.cancelled.map(({ type }) => type))]).toEqual(["prefill", "step", "done"]);
  const usage = { blocks: 2, steps: native.steps, seed: 1 };
  expect(made.watched.at(-1)).toMatchObject({ type: "done", finish: "length", usage });
  expect(made.cancelled.at(-1)).toMatchObject({ type: "done", finish: "cancelled" });
  expect(made.saved).toContain("is a DiffusionGemma and cannot");
  expect(made.info).toMatchObject({ kind: "diffusion", canvas: 24, defaults: { steps: 48, blocks: 4 } });
  expect(made.memory.wasmHeap).toBeLessThan(MOST_HEAP);
});

for (const draft of [`/goldens/${DRAFTER}`, "ngram"]) {
  test(`drafts change no answer: ${draft}`, async ({ client, server }) => {
    await serve(server, `gguf/${TARGET}.gguf`, DRAFTER);
    test.setTimeout(600_000);
    const wanted = await golden(TARGET, "medium", 11);
    const made = await client.evaluate(
      async ({ model: url, draft, golden }) => {
        const model = await rullama.load(url, { keep: false, draft, draftTokens: 3, draftAlways: true });
        const session = await model.session({ context: golden.prompt.length + golden.greedy.length });
        let usage;
        const options = { temperature: 0, maxTokens: golden.greedy.length };
        for await (const event of session.completeIds(golden.prompt, options)) {
          if (event.type === "done") ({ usage } = event);
        }
        const tokens = [...(await session.tokens())];
        await model.free();
        return { tokens, drafts: usage?.drafts, from: model.info.draft };
      },
      { model: `/goldens/gguf/${TARGET}.gguf`, draft, golden: wanted },
    );
    // The reference wrote one token at a time.
    expect(made.tokens).toEqual([...wanted.prompt, ...wanted.greedy]);
    const drafter = { from: "drafter", name: "micro-assistant-BF16.gguf" };
    expect(made.from).toEqual(draft === "ngram" ? { from: "ngram" } : drafter);
    expect(made.drafts?.drafted).toBeGreaterThan(0);
    // The text repeats a token for a while, and then does not.
    if (draft === "ngram") expect(made.drafts?.accepted).toBeGreaterThan(0);
  });
}

test("what cannot draft, or only drafts, is refused with a reason", async ({ client, server }) => {
  await serve(server, `gguf/${TARGET}.gguf`, DRAFTER);
  const made = await client.evaluate(
    async ({ model, drafter }) => {
      const engine = rullama.openEngine();
      const refused = (loading: Promise<unknown>) => loading.catch((error: Error) => error.message);
      const alone = await refused(engine.load(drafter, { keep: false }));
      const wrong = await refused(engine.load(model, { keep: false, draft: model }));
      const { info, memory } = await engine.inspect(drafter);
      engine.close();
      return { alone: String(alone), wrong: String(wrong), kind: info.kind, weights: memory.weights };
    },
    { model: `/goldens/gguf/${TARGET}.gguf`, drafter: `/goldens/${DRAFTER}` },
  );
  expect(made.alone).toContain("is a drafter: load the model it belongs to");
  expect(made.wrong).toContain("not a drafter");
  expect(made.kind).toBe("drafter");
  expect(made.weights).toBeGreaterThan(50_000);
});

test("a served model brings its drafter, and answers without one that is of no use", async ({ client, server }) => {
  await serve(server, `gguf/${TARGET}.gguf`, DRAFTER);
  const layer = async (kind: string, file: string) => {
    const bytes = await readFile(join(GOLDENS, file));
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    return { kind, digest, size: bytes.length, url: `/goldens/${file}` };
  };
  const model = await layer("model", `gguf/${TARGET}.gguf`);
  const drafter = await layer("drafter", DRAFTER);
  const models = [
    { name: "good:latest", size: 1, layers: [model, drafter] },
    { name: "odd:latest", size: 1, layers: [model, { ...model, kind: "drafter" }] },
  ];
  server.json("/rullama/models", { models });
  const infos = await client.evaluate(async () => {
    const found = [];
    for (const name of ["good", "odd"]) {
      const loaded = await rullama.load(name, { keep: false });
      found.push(loaded.info);
      await loaded.free();
    }
    return found;
  });
  expect(infos[0]).toMatchObject({ draft: { from: "drafter", name: "good:latest (drafter)" } });
  expect(infos[1]?.draft).toBeUndefined();
  expect(infos[1]?.draftProblem).toContain("not a drafter");
});
