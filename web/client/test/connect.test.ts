// Models on servers: the in-page `fetch` with a fake model stands for the server.
import { afterEach, describe, expect, it, vi } from "vitest";
import { connect } from "../src/connect/index.js";
import { wav } from "../src/connect/files.js";
import { Engine } from "../src/engine.js";
import { NoWebGpuError, RullamaError } from "../src/errors.js";
import { modelFetch } from "../src/http/index.js";
import { load } from "../src/index.js";
import { search } from "../src/search.js";
import type { GenerateEvent } from "../src/types.js";
import { type FakeModel, drained, fakeModel } from "./fake-model.js";

const URLS = { ollama: "http://server.invalid", openai: "http://server.invalid/v1" };
const QUESTION = [{ role: "user" as const, content: "Hi" }];
const CALL = { type: "tool_call" as const, index: 0, call: { name: "weather", arguments: { city: "Ulm" } } };
const TOOL = { type: "function" as const, function: { name: "weather", parameters: { type: "object" } } };
const text = (events: GenerateEvent[]) => events.map((event) => (event.type === "text" ? event.text : "")).join("");

afterEach(() => vi.restoreAllMocks());

describe.each(["ollama", "openai"] as const)("a server of %s's dialect", (dialect) => {
  const open = (model: FakeModel, more: object = {}) => connect(URLS[dialect], { fetch: modelFetch(model), ...more });

  it("answers as a model in this tab does", async () => {
    const fake = fakeModel(() => [{ type: "thinking", text: "Hm." }, "Hello", " there", CALL]);
    const model = await open(fake);
    expect(model.info).toMatchObject({ name: "fake:latest", kind: "decoder", remote: { dialect } });
    const events = await drained(
      model.chat([{ role: "system", content: "S" }, ...QUESTION], {
        temperature: 0.5,
        maxTokens: 9,
        tools: [TOOL],
        think: true,
      }),
    );
    expect(text(events)).toBe("Hello there");
    expect(events).toContainEqual({ type: "thinking", text: "Hm." });
    expect(events).toContainEqual(CALL);
    expect(events.at(-1)).toMatchObject({ type: "done", finish: "stop", usage: { promptTokens: 5, answerTokens: 3 } });
    expect(fake.asked[0]).toMatchObject({
      messages: [{ role: "system", content: "S" }, ...QUESTION],
      options: { temperature: 0.5, maxTokens: 9, think: true, tools: [TOOL] },
    });
    expect(text(await drained(model.complete("Once")))).toContain("Hello there");
    const session = await model.session();
    expect(text(await drained(session.chat(QUESTION, { format: "json" })))).toBe("Hello there");
    expect(fake.asked.at(-1)!.options.format).toBe("json");
    const whole = await model.openai.chat.completions.create({ messages: QUESTION });
    expect(whole.choices[0]!.message.content).toBe("Hello there");
  });

  it("shows calls and results, and gets formats and choices", async () => {
    const fake = fakeModel();
    const model = await open(fake);
    const messages = [
      ...QUESTION,
      { role: "assistant" as const, content: "", toolCalls: [CALL.call, { name: "b", arguments: {} }] },
      { role: "tool" as const, toolName: "weather", content: "blue" },
      { role: "tool" as const, toolName: "b", content: "7" },
    ];
    const format = { type: "object", properties: {} };
    await drained(
      model.chat(messages, { format, ...(dialect === "openai" ? { toolChoice: "required", tools: [TOOL] } : {}) }),
    );
    const { messages: asked, options } = fake.asked[0]!;
    expect(asked).toEqual(messages);
    expect(options.format).toEqual(format);
    if (dialect === "openai") expect(options.toolChoice).toBe("required");
    expect(() => model.chat(QUESTION, { format: /x/u })).toThrow("regular expressions");
    // What this interface of a server has no words for is refused, not dropped.
    const unheard =
      dialect === "openai"
        ? model.complete("Once", { format: "json" })
        : model.chat(QUESTION, { toolChoice: "required", tools: [TOOL] });
    await expect(drained(unheard)).rejects.toMatchObject({ code: "bad_options" });
    await expect(drained(model.chat(QUESTION, { steps: 3 }))).rejects.toMatchObject({ code: "bad_options" });
    await expect(model.embed("x", { purpose: "query" })).rejects.toMatchObject({ code: "bad_options" });
    const session = await model.session();
    expect(() => session.complete("Once", { format: /x/u })).toThrow("regular expressions");
    expect(() => session.complete("Once", { tools: [TOOL] })).toThrow("use `chat`");
  });

  it("ends replies after their first call where one is wanted", async () => {
    const fake = fakeModel(() => [CALL, { ...CALL, index: 1 }], { wait: 5 });
    const model = await open(fake);
    const events = await drained(model.chat(QUESTION, { tools: [TOOL], parallelToolCalls: false }));
    expect(events.map(({ type }) => type)).toEqual(["tool_call", "done"]);
    expect(events.at(-1)).toMatchObject({ finish: "stop" });
  });

  it("makes embeddings", async () => {
    const { vectors, tokens } = await (await open(fakeModel())).embed(["abc", "d"]);
    expect([vectors.map((vector) => [...vector]), tokens]).toEqual([
      [
        [3, 1],
        [1, 1],
      ],
      2,
    ]);
  });

  it("sends samples as a file where it takes audio", async () => {
    const fake = fakeModel();
    const audio = { samples: new Float32Array([0, 0.5, -1]), sampleRate: 16_000 };
    const model = await open(fake);
    const events = drained(model.chat([{ role: "user", content: [{ type: "audio", audio }] }]));
    if (dialect === "ollama") return expect(events).rejects.toMatchObject({ code: "bad_media" });
    await events;
    const [part] = fake.asked[0]!.messages[0]!.content as { type: string; input_audio: { data: string } }[];
    const bytes = wav({ kind: "audio", samples: audio.samples, channels: 1, rate: 16_000 });
    expect([part!.type, atob(part!.input_audio.data).length]).toEqual(["input_audio", bytes.length]);
  });

  it("fails with typed errors, before and while it answers", async () => {
    const failing = async (error: Error) => drained((await open(fakeModel(() => [error]))).chat(QUESTION));
    await expect(
      failing(new RullamaError("context_full", "the prompt exceeds the context window")),
    ).rejects.toMatchObject({
      code: "context_full",
    });
    await expect(failing(new RullamaError("bad_options", "no"))).rejects.toMatchObject({
      code: "bad_options",
      message: "no",
    });
    await expect(failing(new RullamaError("device_lost", "gone"))).rejects.toMatchObject({
      code: "network",
      status: 500,
    });
    const late = await open(fakeModel(() => ["a", new RullamaError("device_lost", "gone")]));
    await expect(drained(late.chat(QUESTION))).rejects.toThrow("gone");
    const model = await open(fakeModel());
    await expect(drained(model.chat(QUESTION, { logprobs: 2 }))).rejects.toMatchObject({ code: "bad_options" });
    await expect(model.train("{}")).rejects.toMatchObject({ code: "bad_options" });
    await model.free();
    await expect(drained(model.chat(QUESTION))).rejects.toMatchObject({ code: "freed" });
  });

  it("stops when the signal aborts", async () => {
    const fake = fakeModel(() => ["a", "b", "c"], { wait: 10 });
    const model = await open(fake);
    const controller = new AbortController();
    const events: GenerateEvent[] = [];
    for await (const event of model.chat(QUESTION, { signal: controller.signal })) {
      events.push(event);
      controller.abort();
    }
    expect(events.at(-1)).toMatchObject({ type: "done", finish: "cancelled" });
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(fake.running).toBe(0);
  });
});

it("a search of vectors from a server has no purposes", async () => {
  const model = await connect(URLS.openai, { fetch: modelFetch(fakeModel()) });
  expect(await search(model, "a", ["abc"])).toMatchObject([{ text: "abc" }]);
});

it("a server that tokenizes is told what to recognise", async () => {
  const asked: unknown[] = [];
  const inner = modelFetch(fakeModel());
  const own: typeof fetch = async (input, init) => {
    if (!new URL(String(input)).pathname.endsWith("/tokenize")) return inner(input, init);
    asked.push(JSON.parse(String(init?.body)));
    return Response.json({ tokens: [2, 7] });
  };
  const model = await connect(URLS.openai, { fetch: own });
  expect([...(await model.tokenize("<eos>", { special: true, bos: true }))]).toEqual([2, 7]);
  expect(asked).toMatchObject([{ content: "<eos>", add_special: true, parse_special: true }]);
});

describe("connecting", () => {
  it("sends keys and headers, and says what is wrong", async () => {
    const sent: Headers[] = [];
    const inner = modelFetch(fakeModel());
    const spy: typeof fetch = (input, init) => {
      sent.push(new Headers(init?.headers));
      return inner(input, init);
    };
    await connect(URLS.openai, { fetch: spy, apiKey: "k", headers: { "x-a": "b" } });
    expect([sent[0]!.get("authorization"), sent[0]!.get("x-a")]).toEqual(["Bearer k", "b"]);
    const offline: typeof fetch = () => Promise.reject(new TypeError("failed"));
    await expect(connect(URLS.ollama, { fetch: offline })).rejects.toMatchObject({ code: "network" });
    await expect(connect("ftp://x.invalid")).rejects.toMatchObject({ code: "bad_options" });
    const empty = modelFetch({ model: () => fakeModel() });
    await expect(connect(URLS.openai, { fetch: empty })).rejects.toMatchObject({ code: "not_found" });
  });

  it("is what load falls back to without WebGPU, and says so", async () => {
    vi.stubGlobal("location", { href: "http://page.invalid/", origin: "http://page.invalid" });
    vi.spyOn(Engine.prototype, "load").mockRejectedValue(new NoWebGpuError("no WebGPU here"));
    const otherwise = { url: URLS.ollama, fetch: modelFetch(fakeModel()) };
    const model = await load("gemma4:e2b", { worker: false, otherwise });
    expect(model.info.remote).toMatchObject({ reason: "no WebGPU here" });
    expect(text(await drained(model.chat(QUESTION)))).toBe("Hello there");
    await expect(load("gemma4:e2b", { worker: false })).rejects.toMatchObject({ code: "no_webgpu" });
    vi.spyOn(Engine.prototype, "load").mockRejectedValue(new RullamaError("bad_file", "broken"));
    await expect(load("gemma4:e2b", { worker: false, otherwise })).rejects.toMatchObject({ code: "bad_file" });
    vi.unstubAllGlobals();
  });
});
