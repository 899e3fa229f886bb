// Constrained replies in a browser: a random model, which follows a format only because it must, and the demo model, which also makes
// sense.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { GenerateOptions, Tool } from "../../client/src/types.ts";
import { bytesBody } from "../support/body.ts";
import { expect, test } from "./fixtures.ts";

type Model = Awaited<ReturnType<typeof rullama.load>>;

/** The file is in two, as registries limit the size of a package. */
const DEMO = ["demo/demo-1.bin", "demo-tail/demo-2.bin"].map((piece) =>
  fileURLToPath(new URL(`../../../crates/${piece}`, import.meta.url)),
);

const FORMAT = {
  type: "object",
  properties: { kind: { enum: ["cat", "dog"] }, age: { type: "integer", minimum: 0, maximum: 30 } },
  required: ["kind", "age"],
  additionalProperties: false,
  // Random models would spend their tokens on white space.
  "x-guidance": { whitespace_flexible: false },
};

const TOOLS: Tool[] = [
  {
    type: "function",
    function: {
      name: "add",
      description: "Adds two numbers.",
      parameters: {
        type: "object",
        properties: {
          a: { type: "integer", minimum: 0, maximum: 999 },
          b: { type: "integer", minimum: 0, maximum: 999 },
          unit: { type: "string", maxLength: 3 },
        },
        required: ["a", "b"],
      },
    },
  },
  { type: "function", function: { name: "ping" } },
];

/** Runs in the page: what one reply is made of. */
function define(): void {
  globalThis.reply = async (model, options, prefix) => {
    const question = { role: "user" as const, content: "What is 23 + 45?" };
    const begun = { role: "assistant" as const, content: prefix ?? "", prefix: true };
    const messages = prefix === undefined ? [question] : [question, begun];
    const reply: Reply = { text: "", thinking: "", pieces: 0, calls: [], bad: 0, finish: "" };
    try {
      for await (const event of model.chat(messages, { maxTokens: 120, ...options })) {
        if (event.type === "text") {
          reply.text += event.text;
          reply.pieces++;
        } else if (event.type === "thinking") reply.thinking += event.text;
        else if (event.type === "tool_call") reply.calls.push(event.call);
        else if (event.type === "bad_call") reply.bad++;
        else if (event.type === "done") reply.finish = event.finish;
      }
    } catch (error) {
      reply.error = { code: (error as { code?: string }).code ?? "", message: (error as Error).message };
    }
    return reply;
  };
}

interface Reply {
  text: string;
  thinking: string;
  pieces: number;
  calls: { name: string; arguments: Record<string, unknown> }[];
  bad: number;
  finish: string;
  error?: { code: string; message: string };
}

declare global {
  var reply: (model: Model, options: GenerateOptions, prefix?: string) => Promise<Reply>;
}

function checkPet(text: string): void {
  const pet = JSON.parse(text) as { kind: string; age: number };
  expect(["cat", "dog"]).toContain(pet.kind);
  expect(Number.isInteger(pet.age) && pet.age >= 0 && pet.age <= 30).toBe(true);
  expect(Object.keys(pet)).toEqual(["kind", "age"]);
}

for (const thread of ["worker", "page"] as const) {
  test(`replies follow formats and forced calls, in a ${thread}`, async ({ client }) => {
    // Two dozen replies, and every token waits for a mask and for logits.
    test.setTimeout(900_000);
    await client.evaluate(define);
    const all = await client.evaluate(
      async ({ thread, format, tools }) => {
        const model = await sharedModel(thread);
        const id = async (marker: string) => (await model.tokenize(marker, { special: true, bos: false }))[0]!;
        const [open, close, call] = await Promise.all(["<|channel>", "<channel|>", "<|tool_call>"].map(id));
        const forced = { tools, toolChoice: { name: "add" } };
        const before = (await model.memory()).wasmHeap;
        return {
          before,
          schema: await reply(model, { format, seed: 1 }),
          again: await reply(model, { format, seed: 1 }),
          other: await reply(model, { format, seed: 2, temperature: 1.5, topK: 0, repeatPenalty: 1.2 }),
          after: (await model.memory()).wasmHeap,
          regex: await reply(model, { format: /[a-f]{3}-\d{2}/u, seed: 3 }),
          lark: await reply(model, { format: { type: "grammar", syntax: "lark", definition: 'start: "yes" | "no"' } }),
          stopped: await reply(model, { format: /(ab){40}/u, stop: "bab" }),
          cut: await reply(model, { format: /(ab){40}/u, maxTokens: 3 }),
          named: await reply(model, { ...forced, seed: 4 }),
          required: await reply(model, { tools, toolChoice: "required", seed: 5 }),
          // The model opens a thought, closes it, and only then the format holds.
          thought: await reply(model, { format, think: true, logitBias: { [open!]: 50, [close!]: 100 } }),
          called: await reply(model, { format, tools, logitBias: { [call!]: 100 } }),
          uncalled: await reply(model, { format, tools, logitBias: { [call!]: -100 } }),
          openai: (
            await model.openai.chat.completions.create({
              messages: [{ role: "user", content: "Hi" }],
              response_format: { type: "json_schema", json_schema: { name: "pet", schema: format } },
              max_tokens: 120,
            })
          ).choices[0]!.message.content,
          // A reply that has begun: the text before it and the reply have the format together.
          begun: await reply(model, { format, tools, think: true }, '{"kind":"dog","age":1'),
          badPrefix: await reply(model, { format }, "Well,"),
          badForced: await reply(model, forced, "Well,"),
          badSchema: await reply(model, { format: { type: "object", properties: { a: { uniqueItems: true } } } }),
          badRegex: await reply(model, { format: /a(?=b)/u }),
          badTool: await reply(model, {
            tools: [{ type: "function", function: { name: "f", parameters: { type: "object", minProperties: 1 } } }],
            toolChoice: "required",
          }),
          free: await reply(model, { maxTokens: 4 }),
        };
      },
      { thread, format: FORMAT, tools: TOOLS },
    );
    for (const text of [all.schema, all.other, all.thought, all.uncalled].map(({ text }) => text)) checkPet(text);
    checkPet(all.openai!);
    expect(all.again).toEqual(all.schema);
    expect(all.schema.pieces).toBeGreaterThan(1);
    // The grammars' module has memory of its own, from the first constrained reply on.
    expect(all.after).toBeGreaterThan(all.before);
    expect(all.regex.text).toMatch(/^[a-f]{3}-\d{2}$/u);
    expect(["yes", "no"]).toContain(all.lark.text);
    expect([all.stopped.text, all.stopped.finish]).toEqual(["a", "stop"]);
    expect(all.cut.finish).toBe("length");
    for (const { calls, bad, text } of [all.named, all.required, all.called]) {
      expect([calls.length, bad, text]).toEqual([1, 0, ""]);
      const { name, arguments: given } = calls[0]!;
      if (name === "ping") expect(given).toEqual({});
      else {
        expect(name).toBe("add");
        expect(Number.isInteger(given["a"]) && Number.isInteger(given["b"])).toBe(true);
        expect([...String(given["unit"] ?? "")].length).toBeLessThanOrEqual(3);
      }
    }
    expect(all.named.calls[0]!.name).toBe("add");
    expect(all.begun.error).toBe(undefined);
    checkPet(`{"kind":"dog","age":1${all.begun.text}`);
    expect([all.begun.thinking, all.begun.calls]).toEqual(["", []]);
    const refused = (what: string) => ({ code: "bad_options", message: expect.stringContaining(what) });
    expect(all.badPrefix.error).toEqual(refused("begins with the prefix"));
    expect(all.badForced.error).toEqual(refused("prefix"));
    expect(all.badSchema.error).toEqual(refused("uniqueItems"));
    expect(all.badRegex.error).toEqual(refused("lookahead"));
    expect(all.badTool.error).toEqual(refused("minProperties"));
    expect(all.free.error).toBe(undefined);
    expect(["length", "stop"]).toContain(all.free.finish);
  });
}

test("the demo model answers in a format, thinks first, and calls", { tag: "@slow" }, async ({ client, server }) => {
  test.setTimeout(900_000);
  server.file("/demo.gguf", bytesBody(Buffer.concat(await Promise.all(DEMO.map((piece) => readFile(piece))))));
  await client.evaluate(define);
  const all = await client.evaluate(async (tools) => {
    const model = await rullama.load("/demo.gguf", { keep: false });
    const properties = { sum: { type: "integer" } };
    // Without thinking the model would go on with properties of its own.
    const sum = { type: "object", properties, required: ["sum"], additionalProperties: false };
    const options = { temperature: 0 };
    const answers = {
      schema: await reply(model, { ...options, format: sum }),
      thought: await reply(model, { ...options, format: sum, think: true }),
      regex: await reply(model, { ...options, format: /23 \+ 45 = \d+/u }),
      call: await reply(model, { ...options, tools, toolChoice: { name: "add" } }),
      bad: await reply(model, { format: { not: {} } }),
    };
    await model.free();
    return answers;
  }, TOOLS);
  console.log(JSON.stringify(all));
  for (const { text } of [all.schema, all.thought])
    expect(typeof (JSON.parse(text) as { sum: unknown }).sum).toBe("number");
  expect(all.thought.thinking).not.toBe("");
  expect(all.regex.text).toBe("23 + 45 = 68");
  expect(all.call.calls).toHaveLength(1);
  expect(all.call.calls[0]!.name).toBe("add");
  expect(all.bad.error?.code).toBe("bad_options");
});
