// The package's own words, and those of OpenAI and Ollama, on a model that answers nonsense.
import { MODEL, NAME, expect, test } from "./fixtures.ts";

test("chat, stop, seed and logprobs", async ({ client }) => {
  const made = await client.evaluate(async () => {
    const model = await sharedModel("worker");
    const ask = async (options: import("../../client/src/types.js").GenerateOptions) => {
      const [texts, logprobs] = [[] as string[], [] as { token: string; logprob: number; top: number }[]];
      for await (const event of model.complete("the cat", options)) {
        if (event.type === "text") texts.push(event.text);
        if (event.type === "logprobs") {
          logprobs.push({ token: event.token.token, logprob: event.token.logprob, top: event.top.length });
        }
        if (event.type === "done") return { text: texts.join(""), logprobs, finish: event.finish, usage: event.usage };
      }
      throw new Error("no end");
    };
    const greedy = await ask({ temperature: 0, maxTokens: 8 });
    const middle = greedy.text.slice(Math.floor(greedy.text.length / 2));
    const result = {
      greedy,
      stopped: await ask({ temperature: 0, maxTokens: 8, stop: middle.slice(0, 3) }),
      stop: middle.slice(0, 3),
      seven: await ask({ seed: 7, maxTokens: 4 }),
      sevenAgain: await ask({ seed: 7, maxTokens: 4 }),
      eight: await ask({ seed: 8, maxTokens: 4 }),
      unseeded: await ask({ maxTokens: 1 }),
      probable: await ask({ temperature: 0, maxTokens: 2, logprobs: 3 }),
      ids: [...(await model.tokenize("the cat", { bos: true }))],
      info: model.info,
    };
    const text = await model.detokenize(result.ids.slice(1));
    return { ...result, roundTrip: text };
  });
  expect(made.greedy.finish).toBe("length");
  expect(made.greedy.usage.answerTokens).toBe(8);
  expect(made.stopped.finish).toBe("stop");
  expect(made.greedy.text.startsWith(made.stopped.text)).toBe(true);
  expect(made.stopped.text).not.toContain(made.stop);
  expect(made.sevenAgain.text).toBe(made.seven.text);
  expect(made.eight.text).not.toBe(made.seven.text);
  expect(made.seven.usage.seed).toBe(7);
  expect(made.unseeded.usage.seed).toBeGreaterThanOrEqual(0);
  // The prompt was in the caches by then, but for its last token.
  expect(made.unseeded.usage.cachedTokens).toBe(made.ids.length - 1);
  expect(made.probable.logprobs).toHaveLength(2);
  for (const { logprob, top } of made.probable.logprobs) {
    expect(logprob).toBeLessThanOrEqual(0);
    expect(top).toBe(3);
  }
  expect(made.roundTrip).toBe("the cat");
  expect(made.info).toMatchObject({
    name: `${NAME}.gguf`,
    architecture: "gemma4",
    context: 512,
    vocabulary: 640,
    thinking: true,
  });
  expect(made.info.memory.gpu).toBeGreaterThan(made.info.memory.weights);
});

test("OpenAI's shape", async ({ client }) => {
  const made = await client.evaluate(async () => {
    const model = await sharedModel("worker");
    const { completions } = model.openai.chat;
    const messages = [{ role: "user" as const, content: [{ type: "text" as const, text: "Hello" }] }];
    const params = { messages, temperature: 0, max_tokens: 3, logprobs: true, top_logprobs: 2 };
    const whole = await completions.create(params);
    const chunks = [];
    for await (const chunk of await completions.create({
      ...params,
      stream: true,
      stream_options: { include_usage: true },
    })) {
      chunks.push(chunk);
    }
    const controller = new AbortController();
    controller.abort();
    const cancelled = await completions.create(params, { signal: controller.signal }).catch((error) => error.code);
    const image = await completions
      .create({ messages: [{ role: "user", content: [{ type: "image_url" } as never] }] })
      .catch((error) => error.code);
    return { whole, chunks, cancelled, image };
  });
  const { whole, chunks } = made;
  expect(whole).toMatchObject({ object: "chat.completion", model: `${NAME}.gguf` });
  const [choice] = whole.choices;
  expect(choice!.finish_reason).toBe("length");
  expect(choice!.message).toMatchObject({ role: "assistant", refusal: null });
  expect(choice!.logprobs!.content).toHaveLength(3);
  expect(choice!.logprobs!.content[0]!.top_logprobs).toHaveLength(2);
  expect(whole.usage).toMatchObject({ completion_tokens: 3, total_tokens: whole.usage.prompt_tokens + 3 });
  expect(whole.usage.rullama.tokensPerSecond).toBeGreaterThan(0);
  expect(whole.usage.rullama.timeToFirstToken).toBeGreaterThan(0);
  expect(chunks[0]!.choices[0]!.delta).toEqual({ role: "assistant", content: "" });
  const said = (key: "content" | "reasoning_content") =>
    chunks.map((chunk) => chunk.choices[0]?.delta[key] ?? "").join("");
  expect(said("content")).toBe(choice!.message.content ?? "");
  expect(said("reasoning_content")).toBe(choice!.message.reasoning_content ?? "");
  expect(chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? [])).toHaveLength(3);
  expect(chunks.at(-2)!.choices[0]!.finish_reason).toBe("length");
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 3 } });
  expect(made.cancelled).toBe("cancelled");
  expect(made.image).toBe("bad_options");
});

test("Ollama's shape, with a name that the host knows", { tag: "@slow" }, async ({ client, server }) => {
  server.json("/rullama/models", {
    models: [
      {
        name: "tiny:latest",
        size: 536576,
        modified: "2026-01-02T03:04:05Z",
        layers: [{ kind: "model", digest: null, size: 536576, url: MODEL }],
        parameters: { temperature: 0, num_predict: 5, num_ctx: 200 },
        system: "Be brief.",
      },
    ],
  });
  const made = await client.evaluate(async () => {
    const engine = rullama.openEngine();
    const ollama = new rullama.Ollama(engine, { keep: false });
    const { models } = await ollama.list();
    const shown = await ollama.show({ model: "tiny" });
    const messages = [{ role: "user", content: "Hello" }];
    const whole = await ollama.chat({ model: "tiny", messages });
    const parts = [];
    for await (const part of await ollama.chat({ model: "tiny", messages, stream: true })) parts.push(part);
    const raw = await ollama.generate({ model: "tiny", prompt: "the cat", raw: true, options: { num_predict: 3 } });
    const unknown = await ollama.chat({ model: "nothing", messages }).catch((error) => error.code);
    engine.close();
    return { models, shown, whole, parts, raw, unknown };
  });
  expect(made.models).toMatchObject([{ name: "tiny:latest", model: "tiny:latest", size: 536576 }]);
  expect(made.shown).toMatchObject({ system: "Be brief.", details: { family: "gemma4", format: "gguf" } });
  expect(made.whole).toMatchObject({
    done: true,
    done_reason: "length",
    eval_count: 5,
    message: { role: "assistant" },
  });
  const said = made.parts.map((part) => part.message.content + (part.message.thinking ?? "")).join("");
  expect(said).toBe(made.whole.message.content + (made.whole.message.thinking ?? ""));
  expect(made.parts.filter((part) => part.done)).toHaveLength(1);
  expect(made.raw).toMatchObject({ done: true, eval_count: 3 });
  expect(made.raw.eval_duration).toBeGreaterThan(0);
  expect(made.unknown).toBe("not_found");
});
