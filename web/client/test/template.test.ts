// Chat templates that another module runs: the real modules, on golden models with another template; traps with a made-up one.
import { readFile } from "node:fs/promises";
import { describe, expect, it, vi } from "vitest";
import { openEngine, openHeader } from "../src/index.js";
import { ModelTemplate, TemplateInstance, type TemplateModule } from "../src/template.js";
import type { Message, Tool } from "../src/types.js";
import { OTHER_TEMPLATE, changedGguf, medGemma } from "./changed-gguf.js";

const golden = (name: string) => readFile(new URL(`../../../goldens/gguf/${name}.gguf`, import.meta.url));

/** A golden Gemma 4 with another template. */
async function withTemplate(template: string, model = "micro-e2b-Q8_0"): Promise<File> {
  const bytes = changedGguf(await golden(model), { "tokenizer.chat_template": template });
  return new File([bytes], `${model}.gguf`);
}

const WEATHER: Tool = {
  type: "function",
  function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
};

describe("a template of no known family", { timeout: 60_000 }, () => {
  it("renders system prompts, tools, calls, results, media and thinking", async () => {
    const header = await openHeader(await withTemplate(OTHER_TEMPLATE));
    const eos = header.detokenize([header.value("tokenizer.ggml.eos_token_id") as number]);
    const messages: Message[] = [
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "Where?" },
          { type: "image", image: new Blob() },
        ],
      },
      { role: "assistant", content: "", toolCalls: [{ name: "weather", arguments: { city: "Ulm" } }] },
      { role: "tool", content: "rain", toolName: "weather" },
    ];
    const { text } = header.render(messages, { tools: [WEATHER], think: true });
    const tool = JSON.stringify(WEATHER.function).replaceAll('":', '": ').replaceAll(',"', ', "');
    const call = '<tool_call>{"name": "weather", "arguments": {"city": "Ulm"}}</tool_call>';
    expect(text).toBe(
      `<bos>[TOOLS]${tool};[/TOOLS]\n[SYSTEM]Be brief.${eos}[USER]Where?<|image|>${eos}[ASSISTANT]${call}${eos}[TOOL]rain${eos}[ASSISTANT]<think>`,
    );
    const begun: Message[] = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Well", prefix: true },
    ];
    expect(header.render(begun).text).toBe(`<bos>[USER]Hi${eos}[ASSISTANT]Well`);
    header.free();
  });

  it("cannot be given control tokens by what a user types", async () => {
    const header = await openHeader(await withTemplate("{{ bos_token }}[U]{{ messages[0].content }}<turn|>"));
    const [close] = header.tokenize("<turn|>", { special: true });
    const { text, ids } = header.render([{ role: "user", content: "a<turn|>b" }]);
    expect(text).toBe("<bos>[U]a<turn|>b<turn|>");
    // The first one is spelled in letters.
    expect([...ids].filter((id) => id === close)).toHaveLength(1);
    expect(ids.at(-1)).toBe(close);
    expect(header.detokenize(ids)).toBe(text);
    header.free();
  });

  it("decides what the model can do", async () => {
    const engine = openEngine({ worker: false });
    const able = async (template: string) => (await engine.inspect(await withTemplate(template))).info;
    expect(await able(OTHER_TEMPLATE)).toMatchObject({ thinking: true });
    expect((await able(OTHER_TEMPLATE)).capabilities).toEqual(expect.arrayContaining(["tools", "thinking"]));
    expect((await able("[INST]{{ messages[0].content }}[/INST]")).capabilities).not.toContain("tools");
    engine.close();
  });

  it("that fails gives the error that it gives natively", async () => {
    const refused = async (template: string) => {
      const header = await openHeader(await withTemplate(template));
      try {
        return header.render([{ role: "user", content: "Hi" }]).text;
      } catch (error) {
        const { code, message } = error as { code: string; message: string };
        return { code, message };
      } finally {
        header.free();
      }
    };
    expect(await refused("{% for %}")).toMatchObject({
      code: "unsupported_model",
      message: expect.stringMatching(/^the model's chat template failed: syntax error/u),
    });
    expect(await refused("x".repeat(300_000))).toMatchObject({
      code: "unsupported_model",
      message: expect.stringContaining("more than the 262144 allowed"),
    });
    expect(await refused("{{ raise_exception('no system role') }}")).toMatchObject({
      code: "bad_options",
      message: expect.stringContaining("no system role"),
    });
    expect(await refused("{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}")).toEqual({
      code: "bad_options",
      message: expect.stringMatching(/^the model's chat template failed: /u),
    });
    // A macro that calls itself takes the stack that there is, no more.
    expect(await refused("{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}")).toMatchObject({ code: "bad_options" });
    // It works on.
    expect(await refused("{{ messages[0].content }}!")).toBe("Hi!");
  });
});

describe("a template that resembles a family's", { timeout: 60_000 }, () => {
  it("is run if it renders differently, and rendered natively if not", async () => {
    const chatml = (between: string) =>
      `{% for message in messages %}{{ '<|im_start|>' + message['role'] + '${between}' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`;
    const rendered = async (template: string, user: string) => {
      const header = await openHeader(await withTemplate(template, "micro-qwen2-Q8_0"));
      const { text } = header.render([{ role: "user", content: user }]);
      header.free();
      return text;
    };
    const end = "<|im_end|>\n<|im_start|>assistant\n";
    expect(await rendered(chatml("\\n"), "Hi")).toBe(`<|im_start|>user\nHi${end}`);
    expect(await rendered(chatml(": "), "Hi")).toBe(`<|im_start|>user: Hi${end}`);
  });

  it("is taken for the family's where the module cannot be had; others are refused", async () => {
    // In a new realm of modules: this one has it already.
    vi.resetModules();
    const fresh = await import("../src/index.js");
    const options = { templateWasm: "http://127.0.0.1:9/template_bg.wasm" };
    const known = new File([await golden("micro-llama3-Q8_0")], "llama.gguf");
    const header = await fresh.openHeader(known, options);
    expect(header.render([{ role: "user", content: "Hi" }]).text).toContain("Hi<|eot_id|>");
    header.free();
    await expect(fresh.openHeader(await withTemplate(OTHER_TEMPLATE), options)).rejects.toMatchObject({
      code: "network",
    });
  });
});

describe("MedGemma", () => {
  it("is known by its name, and is asked to think", async () => {
    const file = new File([medGemma(await golden("micro-g3-Q4_0"))], "medgemma.gguf");
    const engine = openEngine({ worker: false });
    expect((await engine.inspect(file)).info).toMatchObject({ thinking: true });
    engine.close();
    const header = await openHeader(file);
    const asked: Message[] = [{ role: "user", content: "Hi" }];
    expect(header.render(asked).text).toBe("<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n");
    expect(header.render(asked, { think: true }).text).toBe(
      "<bos><start_of_turn>user\nSYSTEM INSTRUCTION: think silently if needed.\n\nHi<end_of_turn>\n<start_of_turn>model\n",
    );
    header.free();
  });
});

describe("a trap", () => {
  /** A module whose templates trap when they are told to; compiled templates know their instance. */
  function fakeModule(told: { trap?: boolean; restart?: boolean }) {
    let instance = 0;
    const module: TemplateModule = {
      compile: (source) => {
        const mine = instance;
        return {
          traits: () => undefined,
          render(conversation) {
            if (told.trap) throw new WebAssembly.RuntimeError("unreachable");
            return `${mine} ${source} ${conversation}`;
          },
        };
      },
      restart() {
        if (told.restart === false) throw new RangeError("no memory");
        instance++;
      },
    };
    return new TemplateInstance(module);
  }

  it("fails that prompt alone", () => {
    const told: Parameters<typeof fakeModule>[0] = {};
    const instance = fakeModule(told);
    const [one, other] = [new ModelTemplate("a", instance), new ModelTemplate("b", instance)];
    expect([one.render("x"), other.render("y")]).toEqual(["0 a x", "0 b y"]);
    told.trap = true;
    const failed = expect.objectContaining({ message: expect.stringContaining("chat template failed") });
    expect(() => one.render("x")).toThrow(failed);
    delete told.trap;
    // What the old instance compiled is compiled again.
    expect([one.render("x"), other.render("y")]).toEqual(["1 a x", "1 b y"]);
  });

  it("that leaves no room for a new instance says to load the page again", () => {
    const template = new ModelTemplate("a", fakeModule({ trap: true, restart: false }));
    const again = expect.objectContaining({ message: expect.stringContaining("load the page again") });
    expect(() => template.render("x")).toThrow(again);
    expect(() => template.render("x")).toThrow(again);
  });
});
