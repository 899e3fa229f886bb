// Unmodified clients against the in-page `fetch`.
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embed, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { Ollama } from "ollama/browser";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { NotFoundError, RullamaError } from "../src/errors.js";
import { modelFetch } from "../src/http/index.js";
import { type FakeModel, drained, fakeModel } from "./fake-model.js";

const BASE = "http://rullama.invalid/v1";
const CALL = { type: "tool_call" as const, index: 0, call: { name: "weather", arguments: { city: "Ulm" } } };
const QUESTION = [{ role: "user" as const, content: "Hi" }];
const PARAMETERS = { type: "object", properties: { city: { type: "string" } } };
const TOOL = { type: "function" as const, function: { name: "weather", parameters: PARAMETERS } };

const openai = (model: FakeModel) =>
  new OpenAI({ apiKey: "x", baseURL: BASE, fetch: modelFetch(model), dangerouslyAllowBrowser: true });
const ollama = (model: FakeModel) => new Ollama({ host: "http://rullama.invalid", fetch: modelFetch(model) });
const anthropic = (model: FakeModel) =>
  new Anthropic({
    apiKey: "x",
    baseURL: "http://rullama.invalid",
    fetch: modelFetch(model),
    dangerouslyAllowBrowser: true,
  });

describe("openai", () => {
  it("gets whole replies, streams, embeddings and models", async () => {
    const model = fakeModel(() => [{ type: "thinking", text: "Hm." }, "Hello", " there"]);
    const client = openai(model);
    const whole = await client.chat.completions.create({ model: "m", messages: QUESTION, max_tokens: 7 });
    expect(whole).toMatchObject({
      model: "m",
      choices: [{ message: { content: "Hello there" }, finish_reason: "stop" }],
    });
    expect(whole.usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 3 });
    expect(model.asked[0]!.options).toMatchObject({ maxTokens: 7 });
    const stream = await client.chat.completions.create({ model: "m", messages: QUESTION, stream: true });
    const text = (await drained(stream)).map(({ choices }) => choices[0]?.delta.content ?? "").join("");
    expect(text).toBe("Hello there");
    const vectors = await client.embeddings.create({ model: "m", input: ["abc", "d"] });
    expect(vectors.data.map(({ embedding }) => embedding)).toEqual([
      [3, 1],
      [1, 1],
    ]);
    expect((await drained(client.models.list())).map(({ id }) => id)).toEqual(["fake:latest"]);
  });

  it("gets tool calls, and legacy completions", async () => {
    const client = openai(fakeModel(() => [CALL]));
    const { choices } = await client.chat.completions.create({ model: "m", messages: QUESTION, tools: [TOOL] });
    expect(choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: { tool_calls: [{ function: { name: "weather", arguments: '{"city":"Ulm"}' } }] },
    });
    const completed = await openai(fakeModel()).completions.create({ model: "m", prompt: "Once" });
    expect(completed.choices[0]).toMatchObject({ text: "Hello there", finish_reason: "stop" });
  });

  it("gets responses, whole and streamed", async () => {
    const model = fakeModel(() => [{ type: "thinking", text: "Hm." }, "Hel", "lo", CALL]);
    const client = openai(model);
    const whole = await client.responses.create({ model: "m", instructions: "Be brief.", input: "Hi" });
    expect(whole.output_text).toBe("Hello");
    expect(whole.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call"]);
    expect(model.asked[0]!.messages).toEqual([{ role: "system", content: "Be brief." }, ...QUESTION]);
    const events = await drained(await client.responses.create({ model: "m", input: "Hi", stream: true }));
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
    expect([events[0]!.type, events.at(-1)!.type]).toEqual(["response.created", "response.completed"]);
    const deltas = events.flatMap((event) => (event.type === "response.output_text.delta" ? [event.delta] : []));
    expect(deltas).toEqual(["Hel", "lo"]);
  });

  it("sends what the model wrote in one turn as one message", async () => {
    const model = fakeModel();
    const call = (id: string, city: string) => ({
      type: "function_call" as const,
      call_id: id,
      name: "weather",
      arguments: JSON.stringify({ city }),
    });
    await openai(model).responses.create({
      model: "m",
      parallel_tool_calls: false,
      input: [
        { role: "user", content: "Hi" },
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }] },
        { role: "assistant", content: "Wait." },
        call("1", "Ulm"),
        call("2", "Bonn"),
        { type: "function_call_output", call_id: "1", output: "rain" },
        { type: "function_call_output", call_id: "2", output: "sun" },
      ],
    });
    const toolCalls = ["Ulm", "Bonn"].map((city) => ({ name: "weather", arguments: { city } }));
    expect(model.asked[0]!.messages).toEqual([
      ...QUESTION,
      { role: "assistant", content: "Wait.", thinking: "Hm.", toolCalls },
      { role: "tool", content: "rain", toolName: "weather" },
      { role: "tool", content: "sun", toolName: "weather" },
    ]);
    expect(model.asked[0]!.options).toMatchObject({ parallelToolCalls: false });
  });

  it("is refused what would change the reply and is not served", async () => {
    const model = fakeModel();
    const client = openai(model);
    const refused = { status: 400, code: "bad_options" };
    for (const more of [{ web_search_options: {} }, { guided_regex: "a" }, { modalities: ["audio"] }, { n: 2 }]) {
      const request = { model: "m", messages: QUESTION, ...more } as never;
      await expect(client.chat.completions.create(request)).rejects.toMatchObject(refused);
    }
    for (const more of [{ echo: true }, { logprobs: 2 }, { best_of: 3 }, { suffix: "x" }]) {
      await expect(client.completions.create({ model: "m", prompt: "x", ...more })).rejects.toMatchObject(refused);
    }
    const reference = { type: "item_reference", id: "msg_1" } as const;
    for (const more of [{ conversation: "c" }, { background: true }, { input: [reference] }, { top_logprobs: 2 }]) {
      await expect(client.responses.create({ model: "m", input: "x", ...more })).rejects.toMatchObject(refused);
    }
    expect(model.asked).toEqual([]);
  });

  it("gets errors with a status and does not retry them", async () => {
    const model = fakeModel(() => [new RullamaError("bad_options", "no")]);
    const client = openai(model);
    const failed = client.chat.completions.create({ model: "m", messages: QUESTION, stream: true });
    await expect(failed).rejects.toMatchObject({ status: 400, code: "bad_options" });
    const lost = openai(fakeModel(() => [new RullamaError("device_lost", "gone")]));
    await expect(lost.chat.completions.create({ model: "m", messages: QUESTION })).rejects.toMatchObject({
      status: 500,
    });
    expect(model.asked).toHaveLength(1);
    const late = openai(fakeModel(() => ["a", new RullamaError("device_lost", "gone")]));
    const stream = await late.chat.completions.create({ model: "m", messages: QUESTION, stream: true });
    await expect(drained(stream)).rejects.toThrow("gone");
    await expect(client.files.list()).rejects.toMatchObject({ status: 404 });
    const named = modelFetch({ model: () => Promise.reject(new NotFoundError("no model m")) });
    const nobody = new OpenAI({ apiKey: "x", baseURL: BASE, fetch: named, dangerouslyAllowBrowser: true });
    await expect(nobody.chat.completions.create({ model: "m", messages: QUESTION })).rejects.toMatchObject({
      status: 404,
    });
  });

  it("gets the headers of a stream while the model is loaded, and late errors in it", async () => {
    const wait = <T>(value: T) => new Promise<T>((resolve) => setTimeout(resolve, 400, value));
    const slow = (model: FakeModel) => modelFetch({ model: () => wait(model) }, { patienceMs: 20 });
    const body = JSON.stringify({ model: "m", messages: QUESTION, stream: true });
    const response = await slow(fakeModel())(`${BASE}/chat/completions`, { method: "POST", body });
    expect(await response.text()).toMatch(/^(?:: loading\n\n)+data: .*Hello/su);
    const client = (model: FakeModel) =>
      new OpenAI({ apiKey: "x", baseURL: BASE, fetch: slow(model), dangerouslyAllowBrowser: true });
    const request = { model: "m", messages: QUESTION, stream: true as const };
    const chunks = await drained(await client(fakeModel()).chat.completions.create(request));
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe("Hello there");
    const failing = await client(fakeModel(() => [new RullamaError("bad_options", "no")])).chat.completions.create(
      request,
    );
    await expect(drained(failing)).rejects.toThrow("no");
  });

  it("ends the reply when it aborts or breaks", async () => {
    const model = fakeModel(() => ["a", "b", "c", "d"], { wait: 5 });
    const client = openai(model);
    const stream = await client.chat.completions.create({ model: "m", messages: QUESTION, stream: true });
    for await (const { choices } of stream) if (choices[0]?.delta.content === "b") break;
    const controller = new AbortController();
    const other = client.chat.completions.create({ model: "m", messages: QUESTION }, { signal: controller.signal });
    setTimeout(() => controller.abort(), 8);
    await expect(other).rejects.toThrow("aborted");
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(model.running).toBe(0);
  });
});

describe("ollama", () => {
  it("chats, generates, embeds and lists", async () => {
    const model = fakeModel(() => [{ type: "thinking", text: "Hm." }, "Hello", CALL]);
    const client = ollama(model);
    const whole = await client.chat({ model: "m", messages: QUESTION, options: { num_predict: 9, top_k: 3 } });
    expect(whole).toMatchObject({
      message: {
        content: "Hello",
        thinking: "Hm.",
        tool_calls: [{ function: { name: "weather", arguments: { city: "Ulm" } } }],
      },
      done: true,
      done_reason: "stop",
      eval_count: 3,
    });
    expect(model.asked[0]!.options).toMatchObject({ maxTokens: 9, topK: 3 });
    const stream = await drained(await client.chat({ model: "m", messages: QUESTION, stream: true }));
    expect(stream.map(({ message }) => message.content)).toEqual(["", "Hello", "", ""]);
    const generated = await drained(await client.generate({ model: "m", prompt: "Hi", system: "S", stream: true }));
    expect(generated.map(({ response }) => response).join("")).toBe("Hello");
    expect(model.asked.at(-1)!.messages).toEqual([{ role: "system", content: "S" }, ...QUESTION]);
    expect((await client.embed({ model: "m", input: "abc" })).embeddings).toEqual([[3, 1]]);
    expect((await client.list()).models.map(({ name }) => name)).toEqual(["fake:latest"]);
    expect((await client.show({ model: "m" })).capabilities).toContain("tools");
  });

  it("gets log-probabilities, and sends all sampling options", async () => {
    const token = { id: 1, token: "Hel", bytes: [72], logprob: -0.5 };
    const model = fakeModel(() => [{ type: "logprobs", token, top: [token] }, "Hel", "lo"]);
    const plain = { token: "Hel", logprob: -0.5, bytes: [72] };
    const logprobs = [{ ...plain, top_logprobs: [plain] }];
    const request = { model: "m", messages: QUESTION, logprobs: true, top_logprobs: 1, options: { num_predict: -1 } };
    expect(await ollama(model).chat(request as never)).toMatchObject({ message: { content: "Hello" }, logprobs });
    const stream = await ollama(model).chat({ ...request, stream: true } as never);
    const lines = (await drained(stream as never)) as unknown as { logprobs?: object }[];
    expect(lines.map((line) => line.logprobs)).toEqual([logprobs, undefined, undefined]);
    const options = { dry_multiplier: 0.8, dynatemp_range: 0.1, num_ctx: 9 };
    await ollama(model).chat({ ...request, options } as never);
    expect(model.asked[0]!.options).toEqual({ logprobs: 1, signal: expect.any(AbortSignal) });
    expect(model.asked[2]!.options).toMatchObject({ dryMultiplier: 0.8, dynatempRange: 0.1 });
  });

  it("is refused what a raw prompt has no place for", async () => {
    for (const more of [{ system: "S" }, { images: ["AQID"] }, { context: [1] }]) {
      const generated = ollama(fakeModel()).generate({ model: "m", prompt: "x", raw: true, ...more });
      await expect(generated).rejects.toThrow("not supported");
    }
  });

  it("passes images, tools and the results of tools on", async () => {
    const model = fakeModel();
    const messages = [
      { role: "user", content: "Look", images: ["AQID"] },
      { role: "assistant", content: "", tool_calls: [{ function: { name: "f", arguments: { a: 1 } } }] },
      { role: "tool", content: "7", tool_name: "f" },
    ];
    await ollama(model).chat({ model: "m", messages, tools: [TOOL], think: false });
    const { messages: asked, options } = model.asked[0]!;
    expect(asked).toEqual([
      {
        role: "user",
        content: [
          { type: "image", image: new Uint8Array([1, 2, 3]) },
          { type: "text", text: "Look" },
        ],
      },
      { role: "assistant", content: "", toolCalls: [{ name: "f", arguments: { a: 1 } }] },
      { role: "tool", content: "7", toolName: "f" },
    ]);
    expect(options).toMatchObject({ tools: [TOOL], think: false });
  });

  it("gets errors before and in streams, and aborts", async () => {
    const early = ollama(fakeModel(() => [new RullamaError("context_full", "too long")]));
    await expect(early.chat({ model: "m", messages: QUESTION, stream: true })).rejects.toThrow("too long");
    const late = await ollama(fakeModel(() => ["a", new RullamaError("device_lost", "gone")])).chat({
      model: "m",
      messages: QUESTION,
      stream: true,
    });
    await expect(drained(late)).rejects.toThrow("gone");
    const model = fakeModel(() => ["a", "b", "c"], { wait: 5 });
    const stream = await ollama(model).chat({ model: "m", messages: QUESTION, stream: true });
    const read = (async () => {
      for await (const _piece of stream) stream.abort();
    })();
    await expect(read).rejects.toThrow("aborted");
    await new Promise((resolve) => setTimeout(resolve, 40));
    expect(model.running).toBe(0);
  });
});

describe("anthropic", () => {
  const request = { model: "m", max_tokens: 9, messages: QUESTION };

  it("gets whole messages and streams with thoughts and tools", async () => {
    const model = fakeModel(() => [{ type: "thinking", text: "Hm." }, "Hel", "lo", CALL]);
    const client = anthropic(model);
    const content = [
      { type: "thinking", thinking: "Hm." },
      { type: "text", text: "Hello" },
      { type: "tool_use", name: "weather", input: { city: "Ulm" } },
    ];
    const whole = await client.messages.create({ ...request, system: "S" });
    expect(whole).toMatchObject({ role: "assistant", content, stop_reason: "tool_use", usage: { output_tokens: 3 } });
    expect(model.asked[0]).toMatchObject({
      messages: [{ role: "system", content: "S" }, ...QUESTION],
      options: { maxTokens: 9 },
    });
    const final = await client.messages.stream(request).finalMessage();
    expect(final).toMatchObject({ content, stop_reason: "tool_use", usage: { output_tokens: 3 } });
  });

  it("sends tools and their results", async () => {
    const model = fakeModel();
    await anthropic(model).messages.create({
      ...request,
      tools: [{ name: "f", input_schema: { type: "object" } }],
      messages: [
        { role: "user", content: [{ type: "text", text: "Hi" }] },
        { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "f", input: { a: 1 } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "7" }] },
      ],
    });
    expect(model.asked[0]!.messages).toEqual([
      { role: "user", content: "Hi" },
      { role: "assistant", content: "", toolCalls: [{ name: "f", arguments: { a: 1 } }] },
      { role: "tool", toolName: "f", content: "7" },
    ]);
    expect(model.asked[0]!.options.tools).toEqual([
      { type: "function", function: { name: "f", parameters: { type: "object" } } },
    ]);
  });

  it("sends results with images, and failures; other blocks are refused", async () => {
    const model = fakeModel();
    const source = { type: "base64" as const, media_type: "image/png" as const, data: "AQID" };
    const result = (content: object[], more: object = {}) => ({
      ...request,
      messages: [
        { role: "assistant" as const, content: [{ type: "tool_use" as const, id: "t1", name: "f", input: {} }] },
        { role: "user" as const, content: [{ type: "tool_result", tool_use_id: "t1", content, ...more }] },
      ],
    });
    const blocks = [
      { type: "text", text: "See" },
      { type: "image", source },
    ];
    const image = { type: "image", image: "data:image/png;base64,AQID" };
    await anthropic(model).messages.create(result(blocks) as never);
    await anthropic(model).messages.create(result(blocks, { is_error: true }) as never);
    const [error, see] = ["Error: ", "See"].map((text) => ({ type: "text", text }));
    expect(model.asked.map(({ messages }) => messages[1]!.content)).toEqual([
      [see, image],
      [error, see, image],
    ]);
    const unknown = result([{ type: "search_result", title: "x" }]);
    for (const wrong of [
      unknown,
      { ...request, mcp_servers: [{ type: "url", name: "x", url: "https://x.invalid" }] },
    ]) {
      await expect(anthropic(model).messages.create(wrong as never)).rejects.toMatchObject({ status: 400 });
    }
  });

  it("sends formats and choices of tools; others are refused", async () => {
    const model = fakeModel();
    const schema = { type: "object" as const };
    const tools = [{ name: "f", input_schema: schema }];
    const client = anthropic(model);
    await client.messages.create({ ...request, tools, tool_choice: { type: "any", disable_parallel_tool_use: true } });
    await client.messages.create({ ...request, tools, tool_choice: { type: "tool", name: "f" } });
    await client.messages.create({ ...request, output_config: { format: { type: "json_schema", schema } } } as never);
    expect(model.asked.map(({ options: { toolChoice, format } }) => [toolChoice, format])).toEqual([
      ["required", undefined],
      [{ name: "f" }, undefined],
      [undefined, schema],
    ]);
    expect(model.asked.map(({ options }) => options.parallelToolCalls)).toEqual([false, undefined, undefined]);
    for (const more of [{ tools, tool_choice: { type: "some" } }, { output_format: { type: "xml" } }]) {
      await expect(client.messages.create({ ...request, ...more } as never)).rejects.toMatchObject({ status: 400 });
    }
  });

  it("gets errors", async () => {
    const early = anthropic(fakeModel(() => [new RullamaError("context_full", "too long")]));
    await expect(early.messages.create(request)).rejects.toMatchObject({ status: 400 });
    const late = anthropic(fakeModel(() => ["a", new RullamaError("device_lost", "gone")]));
    await expect(late.messages.stream(request).finalMessage()).rejects.toThrow("gone");
  });
});

describe("ai", () => {
  it("talks through OpenAI's providers", async () => {
    const model = fakeModel(() => [{ type: "thinking", text: "Hm." }, "Hello"]);
    const compatible = createOpenAICompatible({
      name: "r",
      baseURL: BASE,
      fetch: modelFetch(model),
      includeUsage: true,
    });
    const { text, reasoningText, usage } = await generateText({ model: compatible("m"), prompt: "Hi" });
    expect([text, reasoningText, usage.outputTokens]).toEqual(["Hello", "Hm.", 3]);
    const { textStream } = streamText({ model: compatible("m"), prompt: "Hi" });
    expect((await drained(textStream)).join("")).toBe("Hello");
    expect((await embed({ model: compatible.embeddingModel("m"), value: "abc" })).embedding).toEqual([3, 1]);
    const provider = createOpenAI({ apiKey: "x", baseURL: BASE, fetch: modelFetch(model) });
    const answer = await generateText({ model: provider("m"), prompt: "Hi" });
    expect(answer.text).toBe("Hello");
    const streamed = streamText({ model: provider("m"), prompt: "Hi" });
    expect((await drained(streamed.textStream)).join("")).toBe("Hello");
  });

  it("runs tool loops through OpenAI's provider, which names what was written before by its ids", async () => {
    const model = fakeModel((_m, _o, number) => (number === 0 ? [{ type: "thinking", text: "Hm." }, CALL] : ["Rain."]));
    const provider = createOpenAI({ apiKey: "x", baseURL: BASE, fetch: modelFetch(model) });
    const inputSchema = jsonSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } } });
    const weather = tool({ inputSchema, execute: async ({ city }) => `rain in ${city}` });
    const options = { tools: { weather }, stopWhen: stepCountIs(2), prompt: "Hi" };
    expect((await generateText({ model: provider("m"), ...options })).text).toBe("Rain.");
    const [question, turn, result] = model.asked[1]!.messages;
    expect([question, turn]).toMatchObject([...QUESTION, { role: "assistant", toolCalls: [CALL.call] }]);
    expect(result).toMatchObject({ role: "tool", toolName: "weather", content: "rain in Ulm" });
  });
});
