import { describe, expect, it } from "vitest";
import { fit } from "../src/fit.js";
import { tablePlace } from "../src/table-place.js";
import { messagesOf, optionsOf } from "../src/openai.js";
import { ProgressMeter } from "../src/progress.js";
import { chatRequest, samplingWords, textRequest } from "../src/sampling.js";
import type { DeviceReport, MemoryUse, Progress } from "../src/types.js";

describe("options", () => {
  it("are the engine's words, and only those that were given", () => {
    expect(samplingWords({})).toEqual({});
    expect(
      samplingWords({ temperature: 0, topK: 1, maxTokens: 5, stop: "x", logitBias: { 3: -1 }, logprobs: 2, seed: 9 }),
    ).toEqual({
      temperature: 0,
      top_k: 1,
      num_predict: 5,
      stop: ["x"],
      logit_bias: { 3: -1 },
      logprobs: true,
      top_logprobs: 2,
      seed: 9,
    });
    expect(samplingWords({ temperature: NaN })).toEqual({ temperature: "NaN" });
  });

  it("of OpenAI become ours", () => {
    const given = {
      messages: [],
      max_tokens: 3,
      top_p: 0.5,
      stop: null,
      logprobs: true,
      reasoning_effort: "low" as const,
    };
    expect(optionsOf(given)).toEqual({ maxTokens: 3, topP: 0.5, logprobs: 0, think: true, thinkBudget: 2048 });
    expect(optionsOf({ messages: [], max_tokens: 3, max_completion_tokens: 4 })).toEqual({ maxTokens: 4 });
    const others = { messages: [], top_k: 5, min_p: 0.1, xtc_probability: 0.5, parallel_tool_calls: false };
    expect(optionsOf(others)).toEqual({ topK: 5, minP: 0.1, xtcProbability: 0.5, parallelToolCalls: false });
    expect(() => optionsOf({ messages: [], n: 2 as 1 })).toThrow("n must be 1");
  });

  it("of OpenAI that cannot be kept are refused, not dropped", () => {
    const refused = (params: object, text: RegExp) =>
      expect(() => chatRequest([], optionsOf({ messages: [], ...params }))).toThrow(
        expect.objectContaining({ code: "bad_options", message: expect.stringMatching(text) }),
      );
    refused({ response_format: { type: "json_schema", json_schema: {} } }, /has no schema/u);
    refused({ response_format: { type: "grammar", syntax: "gbnf", definition: "x" } }, /syntax regex or lark/u);
    refused({ tool_choice: "required" }, /there are no tools/u);
    refused({ tool_choice: { type: "function", function: { name: "f" } } }, /no tool f/u);
    refused({ tool_choice: "sometimes" }, /tool_choice must be/u);
    refused({ functions: [{ name: "f" }] }, /use tools/u);
    refused({ guided_json: { type: "object" } }, /guided_json is not supported: use response_format/u);
    refused({ modalities: ["text", "audio"] }, /only text/u);
    const tools = [{ type: "function" as const, function: { name: "f" } }];
    const free = optionsOf({ messages: [], response_format: { type: "text" }, tool_choice: "none", tools });
    expect(chatRequest([], free).tools).toBe(undefined);
    expect(chatRequest([], optionsOf({ messages: [], tool_choice: "auto", tools })).tools).toEqual(tools);
  });

  it("that constrain the reply are passed on as plain data", () => {
    const tools = [{ type: "function" as const, function: { name: "f" } }];
    const constraint = (params: object) => chatRequest([], optionsOf({ messages: [], ...params })).constraint;
    const schema = { type: "object" };
    expect(constraint({ response_format: { type: "json_object" } })).toEqual({ format: "json" });
    expect(constraint({ response_format: { type: "json_schema", json_schema: { schema } } })).toEqual({
      format: schema,
    });
    const grammar = { type: "grammar", syntax: "lark", definition: 'start: "a"' };
    expect(constraint({ response_format: grammar })).toEqual({ format: grammar });
    expect(constraint({ tool_choice: "required", tools })).toEqual({ toolChoice: "required" });
    const named = { type: "function", function: { name: "f" } };
    expect(constraint({ tool_choice: named, tools })).toEqual({ toolChoice: { name: "f" } });
    expect(constraint({ tool_choice: "auto", tools })).toBe(undefined);
    const regex = { type: "grammar", syntax: "regex", definition: "a+", flags: "iu" };
    expect(chatRequest([], { format: /a+/iu }).constraint).toEqual({ format: regex });
    expect(textRequest("x", { format: /a+/iu }).constraint).toEqual({ format: regex });
    for (const options of [{ toolChoice: "required" as const, tools }, { tools }, { think: true }]) {
      expect(() => textRequest("x", options)).toThrow("use `chat`");
    }
    expect(textRequest("x", { toolChoice: "none", tools, think: false })).toEqual({ text: "x", options: {} });
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    for (const format of [cyclic, [], "xml", 5]) {
      expect(() => chatRequest([], { format: format as never })).toThrow(
        expect.objectContaining({ code: "bad_options" }),
      );
    }
  });
});

describe("messages", () => {
  it("get the model's own system prompt where they have none", () => {
    const hello = { role: "user" as const, content: "hi" };
    expect(chatRequest([hello], {}, "Be brief.").messages).toEqual([{ role: "system", content: "Be brief." }, hello]);
    const own = { role: "system" as const, content: "Shout." };
    expect(chatRequest([own, hello], {}, "Be brief.").messages).toEqual([own, hello]);
  });

  it("clear the model's own system prompt with an empty one", () => {
    const hello = { role: "user" as const, content: "hi" };
    const none = { role: "system" as const, content: "" };
    expect(chatRequest([none, hello], {}, "Be brief.").messages).toEqual([hello]);
  });

  it("of OpenAI become ours: tools are known by their calls", () => {
    const call = { id: "call_1", type: "function" as const, function: { name: "add", arguments: '{"a":1}' } };
    const messages = messagesOf([
      { role: "developer", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "1+" },
          { type: "text", text: "1" },
        ],
      },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", content: "2", tool_call_id: "call_1" },
    ]);
    expect(messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "1+1" },
      { role: "assistant", content: "", toolCalls: [{ name: "add", arguments: { a: 1 } }] },
      { role: "tool", content: "2", toolName: "add" },
    ]);
    expect(chatRequest(messages, {}).messages?.[2]).toMatchObject({
      tool_calls: [{ name: "add", arguments: { a: 1 } }],
    });
    const broken = { ...call, function: { name: "add", arguments: "{" } };
    expect(() => messagesOf([{ role: "assistant", tool_calls: [broken] }])).toThrow("no JSON");
  });
});

describe("progress", () => {
  it("has a speed and an end, and is not told too often", () => {
    const told: Progress[] = [];
    let now = 0;
    const meter = new ProgressMeter(
      (progress) => told.push(progress),
      () => now,
    );
    meter.phase("open");
    for (let i = 1; i <= 100; i++) {
      now += 10;
      meter.loaded(i * 1000, 200_000);
    }
    expect(told.length).toBeLessThan(15);
    const last = told.at(-1)!;
    expect(last.speed).toBeCloseTo(100_000, -3);
    expect(last.eta).toBeCloseTo((200_000 - last.loaded) / last.speed, 5);
    meter.loaded(200_000, 200_000);
    expect(told.at(-1)).toMatchObject({ phase: "load", loaded: 200_000, eta: 0 });
  });
});

describe("fit", () => {
  it.each([
    ["Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0.0.0 Safari/537.36", { deviceMemory: 32 }, "fits"],
    ["Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0.0.0 Safari/537.36", { deviceMemory: 4 }, "file"],
    [
      "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0",
      { maxTouchPoints: 10 },
      "fits",
    ],
    ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/26.0 Safari/605.1.15", { maxTouchPoints: 0 }, "fits"],
    ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/26.0 Safari/605.1.15", { maxTouchPoints: 5 }, "file"],
    ["Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) Version/26.0 Mobile/15E148 Safari/604.1", {}, "file"],
    ["Mozilla/5.0 (Linux; Android 10; K) Chrome/156.0.0.0 Safari/537.36", { deviceMemory: 8 }, "file"],
  ] as const)("places the table: %s %o", (userAgent, machine, place) => {
    expect(tablePlace(undefined, { userAgent, ...machine })).toBe(place);
    expect(tablePlace(4e9, { userAgent, ...machine })).toBe("fits");
  });

  const device: DeviceReport = { webgpu: true, features: [], limits: {} };
  const memory = (gpu: number): MemoryUse => ({ weights: gpu, caches: 0, work: 0, gpu, tableOnGpu: false });

  it.each([
    [1e8, device, {}, 8, "fits"],
    [5e9, device, {}, 8, "tight"],
    [5e9, device, {}, 4, "too-large"],
    [5e9, device, { gpuMemory: 1e10 }, undefined, "fits"],
    [5e9, device, { gpuMemory: 1e9 }, 8, "too-large"],
    [1e8, { ...device, webgpu: false, reason: "no" }, { device: "gpu" }, 8, "too-large"],
    [1e8, { ...device, fallback: true }, {}, 8, "tight"],
  ] as const)("%d bytes", (bytes, gpu, options, deviceMemory, verdict) => {
    const report = fit(memory(bytes), gpu, options, deviceMemory);
    expect(report.verdict).toBe(verdict);
    expect(report.warnings.length > 0).toBe(verdict !== "fits");
  });

  it.each([
    [3e8, {}, "fits"],
    [2e9, {}, "tight"],
    [4e9, {}, "too-large"],
    [3e8, { gpuMemory: 1e8 }, "too-large"],
  ] as const)("%d bytes on the CPU with %o", (bytes, options, verdict) => {
    const none = { ...device, webgpu: false, reason: "No GPU." };
    const report = fit(memory(bytes), none, options, 8);
    expect(report.verdict).toBe(verdict);
    expect(report.warnings.includes("No GPU.")).toBe(verdict === "too-large");
    expect(report.warnings.at(-1)).toContain("CPU");
    const asked = fit(memory(bytes), device, { ...options, device: "cpu" }, 8);
    expect(asked).toEqual({ verdict, warnings: report.warnings.slice(-1) });
  });

  it("has less room on the CPU of a small device", () => {
    expect(fit(memory(2e9), device, { device: "cpu" }, 2).verdict).toBe("too-large");
  });
});
