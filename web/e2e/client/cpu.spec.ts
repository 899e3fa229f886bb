// Without WebGPU, models run on the CPU: the same tokens, in a worker that hears of an end.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bytesBody, fileBody } from "../support/body.ts";
import { CASES, right } from "./cases.ts";
import { MODEL, NAME, expect, test } from "./fixtures.ts";
import { GOLDENS, golden, numbersOf } from "./goldens.ts";

type Model = Awaited<ReturnType<typeof rullama.load>>;

/** The engine's worker in a browser without WebGPU. */
const WITHOUT = `
import "/rullama/worker.js";
delete WorkerNavigator.prototype.gpu;
`;

/** The file is in two, as registries limit the size of a package. */
const DEMO = ["demo/demo-1.bin", "demo-tail/demo-2.bin"].map((piece) =>
  fileURLToPath(new URL(`../../../crates/${piece}`, import.meta.url)),
);

declare global {
  /** A model in a worker without WebGPU; the demo model is loaded once. */
  var onCpu: (url: string, options?: Parameters<typeof rullama.load>[1]) => Promise<Model>;
  var demoOnCpu: Promise<Model> | undefined;
}

test.beforeEach(async ({ client, server }) => {
  server.script("/without-gpu.js", WITHOUT);
  server.file("/demo.gguf", bytesBody(Buffer.concat(await Promise.all(DEMO.map((piece) => readFile(piece))))));
  await client.evaluate(() => {
    globalThis.onCpu = (url, options) =>
      rullama.load(url, { keep: false, workerScript: "/without-gpu.js", ...options });
  });
});

// The first one's reply ends after seven tokens.
for (const [model, prompt, most] of [
  [NAME, "short", 6],
  ["tiny-e2b-Q4_K_M", "medium", 16],
  ["tiny-moe-Q4_K_M", "short", 16],
] as const) {
  test(`${model}: greedy tokens are the golden ones`, async ({ client }) => {
    const wanted = await golden(model, prompt, most);
    const made = await client.evaluate(async (golden) => {
      const loaded = await onCpu(`/goldens/gguf/${golden.model}.gguf`);
      const session = await loaded.session({ cache: "f32", context: 128 });
      const wishes = { temperature: 0, maxTokens: golden.greedy.length };
      for await (const _ of session.completeIds(golden.prompt, wishes));
      const tokens = [...(await session.tokens())];
      const { info } = loaded;
      const memory = await loaded.memory();
      await loaded.free();
      return { tokens, device: info.device, runsOn: info.runsOn, capabilities: info.capabilities, gpu: memory.gpu };
    }, wanted);
    expect(made.tokens).toEqual([...wanted.prompt, ...wanted.greedy]);
    expect(made).toMatchObject({ device: "CPU", runsOn: "cpu", gpu: 0 });
    expect(made.capabilities).not.toContain("training");
  });
}

test("vectors are the golden ones, alone and together", async ({ client, server }) => {
  server.file("/embedding.gguf", await fileBody(join(GOLDENS, "embedding/first-BF16.gguf")));
  const numbers = await numbersOf("embedding/first.safetensors");
  const prompts = ["short", "medium", "long"];
  const vectors = await client.evaluate(
    async (ids) => {
      const model = await onCpu("/embedding.gguf");
      const { vectors } = await model.embedIds(ids);
      await model.free();
      return vectors.map((vector) => [...vector]);
    },
    prompts.map((prompt) => numbers(`${prompt}.ids`)),
  );
  for (const [at, prompt] of prompts.entries()) {
    const off = numbers(`${prompt}.unit`).map((x, i) => Math.abs(x - (vectors[at]?.[i] ?? Number.NaN)));
    expect(Math.max(...off), prompt).toBeLessThan(1e-3);
  }
});

test("the demo model answers, two conversations at a time, and in JSON", async ({ client }) => {
  const chosen = ["arithmetic", "facts"].map((skill) => CASES.find((one) => one.skill === skill && !one.thinking)!);
  const answers = await client.evaluate(
    async (questions) => {
      const model = await (globalThis.demoOnCpu ??= onCpu("/demo.gguf"));
      const ask = async (text: string): Promise<string> => {
        const { messages } = JSON.parse(text) as { messages: { role: "user"; content: string }[] };
        let answer = "";
        let pieces = 0;
        for await (const event of model.chat(messages, { temperature: 0, maxTokens: 80 })) {
          if (event.type !== "text") continue;
          answer += event.text;
          pieces++;
        }
        return pieces > 0 ? answer : "nothing";
      };
      const alone = await ask(questions[0] ?? "");
      const together = await Promise.all(questions.map(ask));
      let json = "";
      const sum = { type: "integer", minimum: 0, maximum: 999 };
      const tight = { whitespace_flexible: false };
      const format = {
        type: "object",
        properties: { sum },
        required: ["sum"],
        additionalProperties: false,
        "x-guidance": tight,
      };
      const messages = [{ role: "user" as const, content: "What is 23 + 45?" }];
      for await (const event of model.chat(messages, { temperature: 0, maxTokens: 40, format })) {
        if (event.type === "text") json += event.text;
      }
      return { alone, together, json };
    },
    chosen.map(({ messages }) => JSON.stringify({ messages })),
  );
  expect(answers.together[0]).toBe(answers.alone);
  for (const [index, { check }] of chosen.entries()) {
    const text = answers.together[index] ?? "";
    expect(right(check, { text, thinking: "", calls: [] }), text).toBe(true);
  }
  expect(JSON.parse(answers.json)).toEqual({ sum: expect.any(Number) });
});

test("a reply ends while its prompt is read, and between two tokens", async ({ client }) => {
  const made = await client.evaluate(async () => {
    const model = await (globalThis.demoOnCpu ??= onCpu("/demo.gguf"));
    const session = await model.session();
    const end = async (when: "prefill" | "text", prompt: string) => {
      const stop = new AbortController();
      const types: string[] = [];
      let last;
      for await (const event of session.complete(prompt, { temperature: 0, maxTokens: 400, signal: stop.signal })) {
        types.push(event.type);
        last = event;
        if (event.type === when) stop.abort();
      }
      return { events: types.length, last: JSON.stringify(last) };
    };
    const prefill = await end("prefill", "What is 23 + 45? ".repeat(120));
    const text = await end("text", "What is");
    // The session goes on.
    let after = "";
    for await (const event of session.complete("What is", { temperature: 0, maxTokens: 4 })) {
      if (event.type === "text") after += event.text;
    }
    await session.free();
    return { prefill, text, after };
  });
  for (const { last } of [made.prefill, made.text]) expect(last).toContain('"finish":"cancelled"');
  // A prompt of 1,322 tokens is read in 42 parts.
  expect(made.prefill.events).toBeLessThan(20);
  expect(made.text.events).toBeLessThan(100);
  expect(made.after).not.toBe("");
});

test("what needs a GPU, or more memory than there is, is refused by its code", async ({ client }) => {
  const codes = await client.evaluate(async (url) => {
    const code = (job: Promise<unknown>) =>
      job.then(
        () => "none",
        (error: { code?: string }) => error.code,
      );
    const model = await onCpu(url);
    const found = {
      gpu: await code(onCpu(url, { device: "gpu" })),
      tooLarge: await code(onCpu(url, { device: "cpu", gpuMemory: 1000 })),
      tooLargeWithout: await code(onCpu(url, { gpuMemory: 1000 })),
      training: await code(model.train('{"prompt":"a","completion":"b"}', { steps: 1 })),
    };
    await model.free();
    return found;
  }, MODEL);
  expect(codes).toEqual({
    gpu: "no_webgpu",
    tooLarge: "does_not_fit",
    tooLargeWithout: "no_webgpu",
    training: "no_webgpu",
  });
});

test("a report says beforehand that the CPU would be used, and whether it fits", async ({ client }) => {
  const reports = await client.evaluate(async (url) => {
    const engine = rullama.openEngine({ workerScript: "/without-gpu.js" });
    const fits = await engine.inspect(url);
    const small = await engine.inspect(url, { gpuMemory: 1000 });
    const gpu = await engine.inspect(url, { device: "gpu" });
    engine.close();
    return [fits, small, gpu].map(({ runsOn, verdict, warnings }) => ({ runsOn, verdict, warnings }));
  }, MODEL);
  expect(reports[0]).toEqual({
    runsOn: "cpu",
    verdict: "fits",
    warnings: ["It runs on the CPU: a GPU would be faster."],
  });
  expect(reports[1]).toMatchObject({ runsOn: "cpu", verdict: "too-large" });
  expect(reports[2]).toMatchObject({ runsOn: "gpu", verdict: "too-large" });
});
