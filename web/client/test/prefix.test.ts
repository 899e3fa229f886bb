import { describe, expect, it } from "vitest";
import { connect } from "../src/connect/index.js";
import { modelFetch } from "../src/http/index.js";
import { continuePrefix, withReply } from "../src/prefix.js";
import type { AnswerRequest } from "../src/protocol.js";
import { chatRequest } from "../src/sampling.js";
import { withTools } from "../src/tool-loop.js";
import type { GenerateEvent, Message } from "../src/types.js";
import { drained, fakeModel } from "./fake-model.js";

const QUESTION: Message = { role: "user", content: "Name a colour." };
const BEGUN: Message = { role: "assistant", content: "The colour is", prefix: true };
const PROMPT = [2, 10, 11];

/** A session of the engine that writes token 99 or 7; it tells how requests look. */
function fakeSession(finish = "length") {
  const asked: AnswerRequest[] = [];
  let tokens = Uint32Array.of();
  return {
    asked,
    tokens: () => tokens,
    async generate(text: string, each: (event: string) => boolean) {
      const request = JSON.parse(text) as AnswerRequest;
      asked.push(request);
      const prompt = request.ids ?? PROMPT;
      tokens = Uint32Array.from([...prompt, request.ids ? 7 : 99]);
      each(JSON.stringify({ type: "prefill", done: prompt.length, total: prompt.length }));
      each(JSON.stringify({ type: "text", text: request.ids ? " red" : "Red" }));
      each(JSON.stringify({ type: "done", finish, usage: { promptTokens: prompt.length } }));
    },
  };
}

describe("a prefix", () => {
  it("travels apart from the messages, and is refused where it cannot be continued", () => {
    const request = chatRequest([QUESTION, BEGUN], {}, "Be brief.");
    expect(request.prefix).toBe("The colour is");
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
    expect(chatRequest([QUESTION, parts], {}).prefix).toBe("It is");
    const image: Message = { ...BEGUN, content: [{ type: "image", image: "x.png" }] };
    const call = { ...BEGUN, toolCalls: [{ name: "f", arguments: {} }] };
    for (const bad of [[BEGUN, QUESTION], [{ ...QUESTION, prefix: true }], [QUESTION, image], [QUESTION, call]]) {
      expect(() => chatRequest(bad, {})).toThrow(expect.objectContaining({ code: "bad_options" }));
    }
  });

  it("is continued after the tokens of the prompt, with the caller's options", async () => {
    const session = fakeSession();
    const events: GenerateEvent[] = [];
    const request = { messages: [], prefix: "ab", adapters: [{ id: "x", weight: 1 }], options: { num_predict: 5 } };
    const tokenize = (text: string) => Uint32Array.from(text, (letter) => letter.charCodeAt(0));
    await continuePrefix(session, request, tokenize, (event) => {
      events.push(JSON.parse(event) as GenerateEvent);
      return false;
    });
    expect(session.asked[1]).toEqual({
      ids: [...PROMPT, 97, 98],
      adapters: request.adapters,
      options: { num_predict: 5 },
    });
    expect(session.asked[0]).toMatchObject({ adapters: request.adapters, options: { num_predict: 1 } });
    // What the first pass writes is not part of the reply.
    expect(events.filter(({ type }) => type === "text")).toEqual([{ type: "text", text: " red" }]);
    expect(events.filter(({ type }) => type === "done")).toHaveLength(1);
  });

  it("is not continued once the reply was cancelled", async () => {
    const session = fakeSession("cancelled");
    const events: string[] = [];
    const request = { messages: [], prefix: "ab", options: {} };
    await continuePrefix(
      session,
      request,
      () => Uint32Array.of(1),
      (event) => events.push(event) > 0,
    );
    expect(session.asked).toHaveLength(1);
    expect(events.at(-1)).toContain("cancelled");
  });

  it("is refused with what continued tokens cannot have", async () => {
    const wrong: Partial<AnswerRequest>[] = [{ tools: [{}] }, { think: true }, { media: [1] }, { constraint: {} }];
    for (const more of wrong) {
      const session = fakeSession();
      const request = { messages: [], prefix: "x", options: {}, ...more };
      const made = continuePrefix(
        session,
        request,
        () => Uint32Array.of(),
        () => false,
      );
      await expect(made).rejects.toMatchObject({ code: "bad_options" });
      expect(session.asked).toEqual([]);
    }
  });

  it("and its reply become one message", async () => {
    const reply: Message = { role: "assistant", content: " red." };
    expect(withReply([QUESTION, BEGUN], reply)).toEqual([
      QUESTION,
      { role: "assistant", content: "The colour is red." },
    ]);
    expect(withReply([QUESTION], reply)).toEqual([QUESTION, reply]);
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
