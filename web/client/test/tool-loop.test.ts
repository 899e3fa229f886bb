import { describe, expect, it } from "vitest";
import { withTools } from "../src/tool-loop.js";
import type { GenerateOptions, Tool, ToolCall } from "../src/types.js";
import { drained, fakeModel } from "./fake-model.js";

const CALL = { type: "tool_call" as const, index: 0, call: { name: "add", arguments: { a: 1, b: 2 } } };
const add = (execute: Tool["execute"]): Tool => ({ type: "function", function: { name: "add" }, execute });
const plus = add(({ a, b }) => ({ sum: Number(a) + Number(b) }));

const run = async (model: ReturnType<typeof fakeModel>, options: GenerateOptions) =>
  drained(withTools((all, more) => model.chat(all, more), [{ role: "user", content: "1 + 2?" }], options));

describe("the tool loop", () => {
  it("runs calls and goes on until there is none, with one end", async () => {
    const model = fakeModel((_m, _o, number) => (number < 2 ? ["Wait.", CALL] : ["3"]));
    const events = await run(model, { tools: [plus] });
    expect(events.map(({ type }) => type)).toEqual([
      "text",
      "tool_call",
      "tool_result",
      "text",
      "tool_call",
      "tool_result",
      "text",
      "done",
    ]);
    expect(events.at(-1)).toMatchObject({ finish: "stop", usage: { answerTokens: 9, promptTokens: 15 } });
    expect(model.asked[2]!.messages.slice(1)).toEqual(
      [1, 2].flatMap(() => [
        { role: "assistant", content: "Wait.", toolCalls: [CALL.call] },
        { role: "tool", toolName: "add", content: '{"sum":3}' },
      ]),
    );
    expect(model.asked[0]!.options.tools![0]).not.toHaveProperty("execute");
  });

  it("requires the first call alone", async () => {
    const model = fakeModel((_m, _o, number) => (number < 2 ? [CALL] : ["3"]));
    await run(model, { tools: [plus], toolChoice: "required" });
    expect(model.asked.map(({ options }) => options.toolChoice)).toEqual(["required", "auto", "auto"]);
  });

  it("stops at the limit, and at tools that the caller runs", async () => {
    const model = fakeModel(() => [CALL]);
    const events = await run(model, { tools: [plus], maxToolRounds: 2 });
    expect(model.asked).toHaveLength(3);
    expect(events.at(-1)).toMatchObject({ type: "done" });
    const other = fakeModel(() => [{ ...CALL, call: { name: "mail", arguments: {} } }]);
    await run(other, { tools: [plus, { type: "function", function: { name: "mail" } }] });
    expect(other.asked).toHaveLength(1);
    await expect(run(model, { tools: [plus], maxToolRounds: 0 })).rejects.toMatchObject({ code: "bad_options" });
  });

  it("asks before it runs, and tells the model of refusals and failures", async () => {
    const ran: unknown[] = [];
    const asked: ToolCall[] = [];
    const model = fakeModel((_m, _o, number) => (number === 0 ? [CALL] : ["Sorry."]));
    const confirmToolCall = (call: ToolCall) => {
      asked.push(call);
      return false;
    };
    const refused = await run(model, { tools: [add((input) => ran.push(input))], confirmToolCall });
    expect([ran, asked]).toEqual([[], [CALL.call]]);
    expect(refused[1]).toMatchObject({
      type: "tool_result",
      isError: true,
      content: expect.stringContaining("not allow"),
    });
    const failing = fakeModel((_m, _o, number) => (number === 0 ? [CALL] : ["Sorry."]));
    const throwing = add(() => {
      throw new Error("no network");
    });
    await run(failing, { tools: [throwing] });
    expect(failing.asked[1]!.messages.at(-1)).toMatchObject({ content: '{"error":"no network"}' });
    const unknown = fakeModel((_m, _o, number) =>
      number === 0 ? [{ ...CALL, call: { name: "sub", arguments: {} } }] : ["Sorry."],
    );
    await run(unknown, { tools: [plus] });
    expect(unknown.asked[1]!.messages.at(-1)).toMatchObject({
      toolName: "sub",
      content: expect.stringContaining("no tool"),
    });
  });
});
