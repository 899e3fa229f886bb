// Standards in the page: the Prompt API, unmodified SDK clients and the AI SDK around one model, which says the same through all of them.
import { fileURLToPath } from "node:url";
import { type Rollup, build } from "vite";
import { MODEL, expect, test } from "./fixtures.ts";

const SDKS = fileURLToPath(new URL("sdks.ts", import.meta.url));

async function bundle(): Promise<string> {
  const built = (await build({
    configFile: false,
    logLevel: "error",
    define: { "process.env.NODE_ENV": '"production"' },
    build: {
      write: false,
      minify: false,
      rolldownOptions: { output: { codeSplitting: false } },
      lib: { entry: SDKS, formats: ["es"], fileName: "sdks" },
    },
  })) as Rollup.RollupOutput[];
  const chunks = built.flatMap(({ output }) => output).filter((one) => one.type === "chunk");
  return chunks.find(({ isEntry }) => isEntry)!.code;
}

test("SDK clients say what the model says", async ({ client, server }) => {
  server.script("/sdks.js", await bundle());
  const said = await client.evaluate(async () => {
    const load = (path: string) => import(path);
    const { OpenAI, Ollama, Anthropic, generateText, streamText } = (await load(
      "/sdks.js",
    )) as typeof import("./sdks.ts");
    const { modelFetch } = (await load("/rullama/http/index.js")) as typeof import("../../client/src/http/index.js");
    const { createRullama } = (await load(
      "/rullama/ai-sdk/index.js",
    )) as typeof import("../../client/src/ai-sdk/index.js");
    const model = await sharedModel("worker");
    const messages = [{ role: "user" as const, content: "Hello" }];
    const [fetch, base] = [modelFetch(model), "http://rullama.invalid"];
    const common = { apiKey: "x", fetch, dangerouslyAllowBrowser: true };
    const greedy = { temperature: 0, max_tokens: 4 };
    const texts: Record<string, string> = { direct: "", openai: "", ollama: "", anthropic: "", stream: "" };
    for await (const event of model.chat(messages, { temperature: 0, maxTokens: 4 })) {
      if (event.type === "text") texts["direct"] += event.text;
    }
    const openai = new OpenAI({ ...common, baseURL: `${base}/v1` });
    const chunks = await openai.chat.completions.create({ model: "m", messages, stream: true, ...greedy });
    for await (const { choices } of chunks) texts["openai"] += choices[0]?.delta.content ?? "";
    const ollama = new Ollama({ host: base, fetch });
    const options = { temperature: 0, num_predict: 4 };
    for await (const { message } of await ollama.chat({ model: "m", messages, stream: true, options })) {
      texts["ollama"] += message.content;
    }
    const anthropic = new Anthropic({ ...common, baseURL: base });
    const whole = await anthropic.messages.create({ model: "m", messages, ...greedy });
    texts["anthropic"] = whole.content.map((block) => (block.type === "text" ? block.text : "")).join("");
    const provider = createRullama(model);
    const settings = { messages, temperature: 0, maxOutputTokens: 4 };
    texts["generate"] = (await generateText({ model: provider(), ...settings })).text;
    for await (const more of streamText({ model: provider(), ...settings }).textStream) texts["stream"] += more;
    return texts;
  });
  expect(said["direct"]).not.toBe("");
  expect(new Set(Object.values(said))).toEqual(new Set([said["direct"]]));
});

test("thoughts end when their budget is used", async ({ client, server }) => {
  server.script("/sdks.js", await bundle());
  const found = await client.evaluate(async () => {
    const load = (path: string) => import(path);
    const { Anthropic } = (await load("/sdks.js")) as typeof import("./sdks.ts");
    const { modelFetch } = (await load("/rullama/http/index.js")) as typeof import("../../client/src/http/index.js");
    const model = await sharedModel("worker");
    const id = async (marker: string) => (await model.tokenize(marker, { special: true, bos: false }))[0]!;
    const [open, close] = await Promise.all(["<|channel>", "<channel|>"].map(id));
    // A random model that begins to think, and would never end by itself; its thoughts are nothing but the token that begins them.
    const logitBias = { [open!]: 50, [close!]: -100 };
    const thinker = new Proxy(model, {
      get: (target, key) =>
        key === "chat"
          ? (...[messages, options]: Parameters<typeof model.chat>) =>
              target.chat(messages, { ...options, logitBias, seed: 1 })
          : Reflect.get(target, key),
    });
    const fetch = modelFetch(thinker);
    const anthropic = new Anthropic({ apiKey: "x", fetch, dangerouslyAllowBrowser: true, baseURL: "http://x.invalid" });
    const asked = async (budget?: number) => {
      const { content, stop_reason, usage } = await anthropic.messages.create({
        model: "m",
        messages: [{ role: "user", content: "Hello" }],
        max_tokens: 32,
        thinking: budget === undefined ? { type: "adaptive" } : { type: "enabled", budget_tokens: budget },
        // One token.
        output_config: { format: { type: "json_schema", schema: { enum: [1] } } },
      });
      const text = content.map((block) => (block.type === "text" ? block.text : "")).join("");
      return { text, stop_reason, tokens: usage.output_tokens };
    };
    return { short: await asked(6), longer: await asked(12), endless: await asked() };
  });
  // The thought, the tokens around it and the answer.
  const ended = (budget: number) => ({ text: "1", stop_reason: "end_turn", tokens: budget + 3 });
  expect(found).toEqual({
    short: ended(6),
    longer: ended(12),
    endless: { text: "", stop_reason: "max_tokens", tokens: 32 },
  });
});

test("objects and tool loops of the AI SDK are held to their schemas", async ({ client, server }) => {
  server.script("/sdks.js", await bundle());
  const made = await client.evaluate(async () => {
    const load = (path: string) => import(path);
    const { generateObject, generateText, jsonSchema, stepCountIs, tool } = (await load(
      "/sdks.js",
    )) as typeof import("./sdks.ts");
    const { createRullama } = (await load(
      "/rullama/ai-sdk/index.js",
    )) as typeof import("../../client/src/ai-sdk/index.js");
    const model = createRullama(await sharedModel("worker"))();
    // Random models would spend their tokens on white space.
    const compact = { "x-guidance": { whitespace_flexible: false } };
    const kind = { type: "object" as const, properties: { kind: { enum: ["cat", "dog"] } }, required: ["kind"] };
    const schema = jsonSchema<{ kind: string }>({ ...kind, ...compact } as typeof kind);
    const { object } = await generateObject({ model, schema, prompt: "x", maxOutputTokens: 120 });
    const ran: unknown[] = [];
    const execute = async (input: object) => {
      ran.push(input);
      return "done";
    };
    const tools = { pet: tool({ description: "Names a pet.", inputSchema: jsonSchema<object>(kind), execute }) };
    const { steps } = await generateText({
      model,
      tools,
      toolChoice: "required",
      stopWhen: stepCountIs(2),
      prompt: "x",
      maxOutputTokens: 120,
    });
    const results = steps.map(({ toolResults }) => toolResults.map(({ output }) => output));
    return { object, ran, results };
  });
  expect(["cat", "dog"]).toContain(made.object.kind);
  expect(made.ran).toHaveLength(2);
  for (const input of made.ran) expect(["cat", "dog"]).toContain((input as { kind: string }).kind);
  expect(made.results).toEqual([["done"], ["done"]]);
});

test("the Prompt API prompts, streams, aborts and counts", async ({ client }) => {
  const result = await client.evaluate(async (source) => {
    const load = (path: string) => import(path);
    const api = (await load("/rullama/prompt-api/index.js")) as typeof import("../../client/src/prompt-api/index.js");
    const options = { keep: false, context: 512, workerScript: "/worker.js" };
    api.useModel(source, options);
    // Chromium may have one of its own.
    api.install({ force: true });
    const { LanguageModel } = globalThis as unknown as { LanguageModel: typeof api.LanguageModel };
    const before = await LanguageModel.availability();
    const progress: number[] = [];
    const monitor = (target: EventTarget) =>
      target.addEventListener("downloadprogress", (event) => progress.push((event as ProgressEvent).loaded));
    const controller = new AbortController();
    Object.defineProperty(navigator, "userActivation", { value: { hasBeenActive: true }, configurable: true });
    const session = await LanguageModel.create({ monitor, samplingMode: "most-predictable" });
    const cost = await session.measureContextUsage("Hello");
    await session.append("Hello");
    const usage = session.contextUsage;
    const reader = session.promptStreaming("Go on", { signal: controller.signal }).getReader();
    const first = await reader.read();
    controller.abort(new DOMException("enough", "AbortError"));
    const aborted = await reader.read().then(
      () => "went on",
      (error: Error) => error.name,
    );
    const after = session.contextUsage;
    const constrained = await session.prompt("x", { responseConstraint: /yes|no{1,3}/u });
    const refused = await session.prompt("x", { responseConstraint: { not: {} } }).catch((error: Error) => error.name);
    session.destroy();
    return {
      before,
      progress,
      cost,
      usage,
      first: typeof first.value,
      aborted,
      after,
      constrained: /^(?:yes|no{1,3})$/u.test(String(constrained)),
      refused,
      available: await LanguageModel.availability(),
    };
  }, MODEL);
  expect(result).toMatchObject({
    before: "downloadable",
    first: "string",
    aborted: "AbortError",
    constrained: true,
    refused: "NotSupportedError",
    available: "available",
  });
  expect([result.progress[0], result.progress.at(-1)]).toEqual([0, 1]);
  expect([result.usage, result.after]).toEqual([result.cost, result.cost]);
  expect(result.cost).toBeGreaterThan(5);
});

test("a reply continues a prefix after the tokens of the prompt", async ({ client }) => {
  const made = await client.evaluate(async () => {
    const model = await sharedModel("worker");
    const question = { role: "user" as const, content: "Hello" };
    const options = { temperature: 0, maxTokens: 3 };
    const session = await model.session();
    let length = 0;
    for await (const event of session.chat([question], { ...options, maxTokens: 1 })) {
      if (event.type === "done") length = event.usage.promptTokens;
    }
    const prompt = [...(await session.tokens())].slice(0, length);
    const prefix = [...(await model.tokenize("Well, the"))];
    let plain = "";
    for await (const event of session.completeIds([...prompt, ...prefix], options)) {
      if (event.type === "text") plain += event.text;
    }
    const wanted = [...(await session.tokens())];
    await session.free();
    const other = await model.session();
    let text = "";
    const begun = { role: "assistant" as const, content: "Well, the", prefix: true };
    for await (const event of other.chat([question, begun], options)) if (event.type === "text") text += event.text;
    const tokens = [...(await other.tokens())];
    await other.free();
    return { wanted, tokens, plain, text, prefix: prefix.length };
  });
  expect(made.prefix).toBeGreaterThan(0);
  expect(made.tokens).toEqual(made.wanted);
  expect(made.text).toBe(made.plain);
  expect(made.text).not.toContain("Well, the");
});
