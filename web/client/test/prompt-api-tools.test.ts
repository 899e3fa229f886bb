// Tools of the Prompt API: run by the session, or by the page, which passes calls and results as messages.
import { describe, expect, it } from "vitest";
import {
  LanguageModelToolCall,
  LanguageModelToolError,
  LanguageModelToolSuccess,
  type ToolResultContent,
  languageModelOf,
} from "../src/prompt-api/index.js";
import type { LanguageModelTool } from "../src/prompt-api/types.js";
import { type FakeModel, drained, fakeModel } from "./fake-model.js";

const api = (model: FakeModel = fakeModel()) =>
  languageModelOf({ availability: async () => "available", load: async () => model });

const tool = (more: Partial<LanguageModelTool> = {}): LanguageModelTool => ({
  name: "weather",
  description: "The weather.",
  inputSchema: { type: "object", properties: { city: { type: "string" } } },
  ...more,
});
const WITH_TOOLS = { expectedOutputs: [{ type: "text" as const }, { type: "tool-call" as const }] };
const named = (name: string) => expect.objectContaining({ name });

describe("tools", () => {
  const call = { type: "tool_call" as const, index: 0, call: { name: "weather", arguments: { city: "Ulm" } } };

  it("with execute are called, all of a turn at once, and the reply goes on", async () => {
    const model = fakeModel((_m, _o, number) => (number === 0 ? ["Wait. ", call, call] : ["Sunny."]));
    let most = 0;
    let now = 0;
    const execute = async (input: object) => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 5));
      now -= 1;
      return `sun in ${(input as { city: string }).city}`;
    };
    const session = await api(model).create({ ...WITH_TOOLS, tools: [tool({ execute })] });
    expect(await session.prompt("Weather?")).toBe("Wait. Sunny.");
    expect(most).toBe(2);
    const { messages, options } = model.asked[1]!;
    expect(messages.slice(1)).toEqual([
      { role: "assistant", content: "Wait. ", toolCalls: [call.call, call.call] },
      { role: "tool", toolName: "weather", content: "sun in Ulm" },
      { role: "tool", toolName: "weather", content: "sun in Ulm" },
    ]);
    expect(options.tools![0]!.function).toMatchObject({ name: "weather", parameters: { type: "object" } });
  });

  it("without execute are answered by the page", async () => {
    const model = fakeModel((_m, _o, number) => (number === 0 ? ["Wait.", call] : ["Sunny."]));
    const session = await api(model).create({ ...WITH_TOOLS, tools: [tool()] });
    const reply = (await session.prompt("Weather?")) as { type: string; value: LanguageModelToolCall }[];
    expect(reply.map(({ type }) => type)).toEqual(["text", "tool-call"]);
    const { value: made } = reply[1]!;
    expect(made).toBeInstanceOf(LanguageModelToolCall);
    expect([made.name, made.arguments]).toEqual(["weather", { city: "Ulm" }]);
    const { callID } = made;
    expect(callID).toMatch(/^[-0-9a-f]{36}$/u);
    const response = new LanguageModelToolSuccess({
      callID,
      name: "weather",
      result: [{ type: "text", value: { sun: 1 } }],
    });
    const value = [{ type: "tool-response" as const, value: response }];
    expect(await session.prompt([{ role: "user", content: value }])).toEqual([{ type: "text", value: "Sunny." }]);
    expect(model.asked[1]!.messages.at(-1)).toEqual({ role: "tool", toolName: "weather", content: '{"sun":1}' });
  });

  it("that fail are told to the model, and results that cannot be shown are refused", async () => {
    const model = fakeModel((_m, _o, number) => (number === 0 ? [call] : ["Sorry."]));
    const execute = () => Promise.reject(new Error("no network"));
    const session = await api(model).create({ ...WITH_TOOLS, tools: [tool({ execute })] });
    expect(await session.prompt("Weather?")).toBe("Sorry.");
    expect(model.asked[1]!.messages.at(-1)!.content).toBe('{"error":"no network"}');
    const answer = (value: unknown) => session.prompt([{ role: "user", content: [{ type: "tool-response", value }] }]);
    const success = (result: ToolResultContent) =>
      new LanguageModelToolSuccess({ callID: "1", name: "weather", result: [result] });
    await expect(answer(success({ type: "image", value: 1 }))).rejects.toEqual(named("NotSupportedError"));
    await expect(answer(success({ type: "text", value: 1n }))).rejects.toEqual(named("DataError"));
    // It would be written as {}.
    await expect(answer(success({ type: "object", value: new Blob(["x"]) }))).rejects.toEqual(named("DataError"));
    expect(await answer(success({ type: "object", value: { sun: [1] } }))).toBe("Sorry.");
    expect(model.asked.at(-1)!.messages.at(-1)!.content).toBe('{"sun":[1]}');
    const error = new LanguageModelToolError({ callID: "1", name: "weather", errorMessage: "late" });
    expect(await answer(error)).toBe("Sorry.");
  });

  it("that the page answers make replies lists of parts, also where there is nothing but text", async () => {
    const made = (more: object) => api(fakeModel(() => ["Hel", "lo"])).create({ ...WITH_TOOLS, ...more });
    const parts = [
      { type: "text", value: "Hel" },
      { type: "text", value: "lo" },
    ];
    const execute = () => "";
    for (const tools of [undefined, [], [tool()], [tool(), tool({ name: "run", execute })]]) {
      const session = await made({ tools });
      expect(await session.prompt("x")).toEqual([{ type: "text", value: "Hello" }]);
      expect(await drained(session.promptStreaming("x"))).toEqual(parts);
    }
    for (const more of [{ tools: [tool({ execute })] }, { expectedOutputs: [{ type: "text" }] }]) {
      const session = await made(more);
      expect(await session.prompt("x")).toBe("Hello");
      expect(await drained(session.promptStreaming("x"))).toEqual(["Hel", "lo"]);
    }
  });
});

describe("calls that a page supplies", () => {
  const expecting = { ...WITH_TOOLS, expectedInputs: [{ type: "tool-call" as const }], tools: [tool()] };
  const message = (value: unknown, role: "assistant" | "user" = "assistant") => [
    { role, content: [{ type: "tool-call" as const, value }] },
  ];
  const call = (given?: object) =>
    new LanguageModelToolCall({ callId: "1", name: "weather", ...(given ? { arguments: given } : {}) });

  it("are shown to the model, from the beginning and later, as they were then", async () => {
    const model = fakeModel();
    const city = { city: "Ulm", days: [1, { of: "May" }] };
    const copy = structuredClone(city);
    const session = await api(model).create({ ...expecting, initialPrompts: message(call(city)) });
    const appended = session.append(message({ callID: "2", name: "weather" }));
    const { days } = city;
    days.length = 0;
    await appended;
    await session.prompt("Go on");
    expect(model.asked[0]!.messages.slice(0, 2)).toEqual([
      { role: "assistant", content: "", toolCalls: [{ name: "weather", arguments: copy }] },
      { role: "assistant", content: "", toolCalls: [{ name: "weather", arguments: {} }] },
    ]);
  });

  it("are refused where they are malformed, misplaced or not expected", async () => {
    const session = await api().create(expecting);
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    for (const given of [[], cyclic, { of: 1n }, new Blob(["x"])]) {
      for (const prompts of [message(call(given)), message({ callID: "1", name: "weather", arguments: given })]) {
        await expect(session.prompt(prompts)).rejects.toEqual(named("DataError"));
        await expect(session.append(prompts)).rejects.toEqual(named("DataError"));
        await expect(session.measureContextUsage(prompts)).rejects.toEqual(named("DataError"));
        await expect(api().create({ ...expecting, initialPrompts: prompts })).rejects.toEqual(named("DataError"));
      }
    }
    for (const wrong of [null, "weather", {}, { callID: "1", name: 5 }]) {
      await expect(session.prompt(message(wrong))).rejects.toThrow(TypeError);
    }
    await expect(session.prompt(message(call(), "user"))).rejects.toThrow(TypeError);
    const value = new LanguageModelToolError({ callId: "1", name: "weather", errorMessage: "no" });
    const response = [{ role: "assistant" as const, content: [{ type: "tool-response" as const, value }] }];
    await expect(session.prompt(response)).rejects.toThrow(TypeError);
    const other = await api().create({ ...WITH_TOOLS, tools: [tool()] });
    await expect(other.prompt(message(call()))).rejects.toEqual(named("NotSupportedError"));
  });
});
