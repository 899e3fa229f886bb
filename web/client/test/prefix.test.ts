import { describe, expect, it } from "vitest";
import { connect } from "../src/connect/index.js";
import { modelFetch } from "../src/http/index.js";
import { withReply } from "../src/prefix.js";
import { chatRequest } from "../src/sampling.js";
import { withTools } from "../src/tool-loop.js";
import type { Message } from "../src/types.js";
import { drained, fakeModel } from "./fake-model.js";

const QUESTION: Message = { role: "user", content: "Name a colour." };
const BEGUN: Message = { role: "assistant", content: "The colour is", prefix: true };

describe("a prefix", () => {
  it("travels apart from the messages, and is refused where it cannot be continued", () => {
    const request = chatRequest([QUESTION, BEGUN], {}, "Be brief.");
    expect(request.prefix).toEqual({ text: "The colour is" });
    expect(request.messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Name a colour." },
    ]);
    expect(chatRequest([QUESTION, { ...BEGUN, prefix: false }], {})).not.toHaveProperty("prefix");
    const parts: Message = {
      ...BEGUN,
      content: [
        { type: "text", text: "It " },
        { type: "text", text: "is" },
      ],
    };
    expect(chatRequest([QUESTION, parts], {}).prefix).toEqual({ text: "It is" });
    const image: Message = { ...BEGUN, content: [{ type: "image", image: "x.png" }] };
    const call = { ...BEGUN, toolCalls: [{ name: "f", arguments: {} }] };
    for (const bad of [[BEGUN, QUESTION], [{ ...QUESTION, prefix: true }], [QUESTION, image], [QUESTION, call]]) {
      expect(() => chatRequest(bad, {})).toThrow(expect.objectContaining({ code: "bad_options" }));
    }
  });

  it("goes with tools, thinking, images and formats", () => {
    const tool = { type: "function" as const, function: { name: "f" } };
    const image: Message = { role: "user", content: [{ type: "image", image: "x.png" }] };
    const options = { tools: [tool], think: true, format: "json" as const };
    const request = chatRequest([image, { ...BEGUN, thinking: "Hm." }], options);
    expect(request).toMatchObject({
      messages: [{ role: "user", content: [{ type: "image" }] }],
      prefix: { text: "The colour is", thinking: "Hm." },
      tools: [tool],
      think: true,
      constraint: { format: "json" },
    });
  });

  it("and its reply become one message", async () => {
    const reply: Message = { role: "assistant", content: " red." };
    expect(withReply([QUESTION, BEGUN], reply)).toEqual([
      QUESTION,
      { role: "assistant", content: "The colour is red." },
    ]);
    expect(withReply([QUESTION], reply)).toEqual([QUESTION, reply]);
    expect(withReply([{ ...BEGUN, thinking: "Hm." }], reply)[0]).toEqual({
      role: "assistant",
      content: "The colour is red.",
      thinking: "Hm.",
    });
    const call = { type: "tool_call" as const, index: 0, call: { name: "f", arguments: {} } };
    const model = fakeModel((_m, _o, number) => (number === 0 ? [" red", call] : ["Done"]));
    const tool = { type: "function" as const, function: { name: "f" }, execute: () => "ok" };
    await drained(withTools((all, options) => model.chat(all, options), [QUESTION, BEGUN], { tools: [tool] }));
    expect(model.asked[1]!.messages[1]).toEqual({
      role: "assistant",
      content: "The colour is red",
      toolCalls: [call.call],
    });
  });

  it("is the last message of a request to a server", async () => {
    for (const [dialect, path] of [
      ["ollama", ""],
      ["openai", "/v1"],
    ] as const) {
      const bodies: Record<string, unknown>[] = [];
      const server = modelFetch(fakeModel(() => [" red"]));
      const spy: typeof fetch = (input, init) => {
        if (typeof init?.body === "string") bodies.push(JSON.parse(init.body) as Record<string, unknown>);
        return server(input, init);
      };
      const model = await connect(`http://server.invalid${path}`, { fetch: spy, dialect });
      await drained(model.chat([QUESTION, BEGUN]));
      const { messages, ...body } = bodies.at(-1)! as { messages: unknown[]; continue_final_message?: boolean };
      expect(messages.at(-1)).toEqual({ role: "assistant", content: "The colour is" });
      expect(body.continue_final_message).toBe(dialect === "openai" ? true : undefined);
    }
  });
});
