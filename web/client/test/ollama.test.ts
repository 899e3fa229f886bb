import { describe, expect, it } from "vitest";
import type { Engine } from "../src/engine.js";
import { Ollama } from "../src/ollama.js";
import type { OllamaChatRequest, OllamaGenerateRequest } from "../src/ollama-types.js";
import type { AnswerRequest } from "../src/protocol.js";
import type { GenerateEvent, Usage } from "../src/types.js";

const USAGE = { promptTokens: 1, answerTokens: 1, timeToFirstToken: 1, decodeTokensPerSecond: 1 } as Usage;
const tick = () => new Promise((resolve) => setTimeout(resolve, 1));

/** An engine that notes what is loaded, asked and freed. */
function engine() {
  const log: string[] = [];
  const requests: AnswerRequest[] = [];
  const load = async (name: string) => {
    log.push(`load ${name}`);
    await tick();
    let gone = false;
    return {
      info: { system: "Be brief.", context: 8 },
      lost: new Promise<never>(() => {}),
      async *answer(request: AnswerRequest): AsyncGenerator<GenerateEvent> {
        await tick();
        if (gone) throw new Error("freed");
        requests.push(request);
        yield { type: "text", text: name };
        await tick();
        yield { type: "done", finish: "stop", usage: USAGE };
      },
      async embed() {
        await tick();
        if (gone) throw new Error("freed");
        return { vectors: [], tokens: 0, cut: 0 };
      },
      async free() {
        gone = true;
        log.push(`free ${name}`);
      },
    };
  };
  return { log, requests, ollama: new Ollama({ load } as unknown as Engine) };
}

const hello = (model: string, more: object = {}): OllamaChatRequest & { stream?: false } => ({
  model,
  messages: [{ role: "user", content: "hi" }],
  ...more,
});

describe("models by name", () => {
  it("are loaded once for calls that come together", async () => {
    const { log, ollama } = engine();
    const answers = await Promise.all([
      ollama.chat(hello("a")),
      ollama.chat(hello("a")),
      ollama.embed({ model: "a", input: "x" }),
    ]);
    expect(log).toEqual(["load a"]);
    expect(answers[1]).toMatchObject({ message: { content: "a" }, done: true });
    await ollama.unload();
    expect(log).toEqual(["load a", "free a"]);
  });

  it("are freed for another only when their calls have begun, and no copy is left over", async () => {
    const { log, ollama } = engine();
    const answers = await Promise.all([
      ollama.chat(hello("a")),
      ollama.chat(hello("b")),
      ollama.embed({ model: "b", input: "x" }),
      ollama.chat(hello("a")),
    ]);
    expect([answers[0], answers[1], answers[3]].map(({ message }) => message.content)).toEqual(["a", "b", "a"]);
    expect(log).toEqual(["load a", "free a", "load b", "free b", "load a"]);
  });

  it("are tried again when a load failed", async () => {
    let tries = 0;
    const load = async () => {
      tries += 1;
      throw new Error("no");
    };
    const ollama = new Ollama({ load } as unknown as Engine);
    await expect(ollama.chat(hello("a"))).rejects.toThrow("no");
    await expect(ollama.chat(hello("a"))).rejects.toThrow("no");
    expect(tries).toBe(2);
  });
});

describe("requests", () => {
  it("that would be answered otherwise than asked are refused", async () => {
    const { log, ollama } = engine();
    for (const more of [{ template: "x" }, { context: [1] }]) {
      const refused = { code: "bad_options", message: expect.stringContaining("not supported") };
      await expect(ollama.chat(hello("a", more))).rejects.toMatchObject(refused);
      const generate = { model: "a", prompt: "hi", ...more } as OllamaGenerateRequest & { stream?: false };
      await expect(ollama.generate(generate)).rejects.toMatchObject(refused);
    }
    expect(log).toEqual([]);
    await expect(ollama.chat(hello("a", { format: "xml" as "json" }))).rejects.toMatchObject({ code: "bad_options" });
  });

  it("have a format", async () => {
    const { requests, ollama } = engine();
    await ollama.chat(hello("a", { format: "" }));
    await ollama.chat(hello("a", { format: "json" }));
    const schema = { type: "object" };
    await ollama.generate({ model: "a", prompt: "hi", format: schema });
    const formats = requests.map(({ constraint }) => constraint?.format);
    expect(formats).toEqual([undefined, "json", schema]);
  });

  it("get the model's own system prompt, unless theirs is empty", async () => {
    const { requests, ollama } = engine();
    await ollama.generate({ model: "a", prompt: "hi" });
    await ollama.generate({ model: "a", prompt: "hi", system: "" });
    const question = { role: "user", content: "hi" };
    expect(requests.map(({ messages }) => messages)).toEqual([
      [{ role: "system", content: "Be brief." }, question],
      [question],
    ]);
  });
});
