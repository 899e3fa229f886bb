// The module of constrained replies by itself: a vocabulary of single bytes and one marker, no model.
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { beforeAll, describe, expect, it } from "vitest";
import type { PlainConstraint } from "../src/constraint.js";
import {
  Guidance,
  GuidanceInstance,
  type GuidanceModule,
  type TokenConstraint,
  startGuidance,
} from "../src/guidance.js";
import type { Tool } from "../src/types.js";

const END = 256;
const MARKERS = ["<|tool_call>", "<tool_call|>", '<|"|>'];

/** Every byte is a token; then come the end and the markers, as the engine packs them. */
function vocabulary(): Uint8Array {
  const markers = ["<end>", ...MARKERS].map((name) => [0xff, ...new TextEncoder().encode(name)]);
  const texts = [...Array.from({ length: 256 }, (_, byte) => [byte]), ...markers];
  const numbers = Uint32Array.of(texts.length, 1, END, ...texts.map(({ length }) => length));
  return new Uint8Array([...new Uint8Array(numbers.buffer), ...texts.flat()]);
}

/** The tokens of a text; markers are tokens. */
function tokens(text: string): number[] {
  const parts = text.split(/(<\|tool_call>|<tool_call\|>|<\|"\|>)/u);
  return parts.flatMap((part) =>
    MARKERS.includes(part) ? [END + 1 + MARKERS.indexOf(part)] : [...new TextEncoder().encode(part)],
  );
}

const allows = (mask: Uint32Array, id: number) => ((mask[id >> 5]! >>> (id & 31)) & 1) === 1;

/** Whether a reply may be this text and nothing more. */
function accepts(constraint: TokenConstraint, text: string): boolean {
  try {
    let complete = false;
    for (const id of tokens(text)) {
      if (complete || !allows(constraint.mask(), id)) return false;
      complete = constraint.commit(id);
    }
    return allows(constraint.mask(), END);
  } finally {
    constraint.free();
  }
}

const byteModel = (output = "gemma4") => new Guidance({ vocabulary, outputFormat: () => output });
const refused = (text: string) =>
  expect.objectContaining({ code: "bad_options", message: expect.stringContaining(text) });

// A busy machine takes seconds to compile the module and the first grammar.
const PATIENT = { timeout: 60_000 };

let guidance: Guidance;
beforeAll(async () => {
  await startGuidance();
  guidance = byteModel();
}, PATIENT.timeout);

const check = (constraint: PlainConstraint, right: string[], wrong: string[], tools: Tool[] = []) => {
  for (const text of right) expect([text, accepts(guidance.constraint(constraint, tools), text)]).toEqual([text, true]);
  for (const text of wrong)
    expect([text, accepts(guidance.constraint(constraint, tools), text)]).toEqual([text, false]);
};

describe("formats", PATIENT, () => {
  it("are any JSON object, or a schema", () => {
    check({ format: "json" }, ["{}", '{"a": [1, null]}'], ["[]", "{", '{"a" 1}', "x"]);
    const format = {
      type: "object",
      properties: { n: { type: "integer", minimum: 2, maximum: 11 }, s: { enum: ["é", "b"] } },
      required: ["n"],
      additionalProperties: false,
    };
    check({ format }, ['{"n":2}', '{ "n": 11, "s": "é" }'], ['{"n":1}', '{"n":2.5}', '{"s":"b"}', '{"n":3,"x":1}']);
  });

  it("have a space or an indented new line between values, no more", () => {
    const format = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const good = ['{\n  "n": 2\n}', '{\r\n\t"n":2\r\n}'];
    check({ format }, good, ['{  "n":2}', '{\n\n"n":2}', '{\n \n"n":2}']);
  });

  it("are regular expressions as JavaScript reads them", () => {
    const regex = (pattern: RegExp): PlainConstraint => ({
      format: { type: "grammar", syntax: "regex", definition: pattern.source, flags: pattern.flags },
    });
    check(regex(/^(\d{3}|[a-c]+)$/u), ["123", "abba"], ["12", "1234", "٣٣٣", "", "d"]);
    check(regex(/a.c/u), ["abc", "aéc"], ["a\nc", "a\rc", "xabc"]);
    check(regex(/a.c/isu), ["A\nc"], ["ac"]);
    check(regex(/[a&&b[-]+/), ["a&b", "[-"], ["c", "]"]);
    check(regex(/https?:\/\/\S+/u), ["http://a/b"], ["http://", "ftp://a"]);
  });

  it("are Lark grammars", () => {
    const lark = (definition: string): PlainConstraint => ({ format: { type: "grammar", syntax: "lark", definition } });
    check(lark('start: "yes" | "no" NUMBER\nNUMBER: /[0-9]+/'), ["yes", "no7"], ["no", "maybe", "yes7"]);
    check(lark('start: "(" start ")" | "x"'), ["x", "((x))"], ["((x)"]);
  });

  it("that are not supported are refused with the reason", () => {
    const bad = (format: PlainConstraint["format"], text: string) =>
      expect(() => guidance.constraint({ format: format! })).toThrow(refused(text));
    bad({ type: "object", properties: { a: { uniqueItems: true } } }, "uniqueItems");
    bad({ type: "objet" }, "objet");
    bad({ $ref: "#/$defs/nothing" }, "#/$defs/nothing");
    bad({ type: "string", format: "colour" }, "colour");
    bad({ $dynamicRef: "#x" }, "$dynamicRef");
    // The Prompt API tells this apart by the word.
    bad({ type: "integer", minimum: 3, maximum: 2 }, "nsatisfiable");
    bad({ type: "grammar", syntax: "regex", definition: "a(?=b)" }, "lookahead");
    bad({ type: "grammar", syntax: "regex", definition: "(" }, "regular expression");
    bad({ type: "grammar", syntax: "lark", definition: "start: nothing" }, "grammar");
    // It works on.
    check({ format: { type: "boolean" } }, ["true"], ["1"]);
  });
});

describe("calls", PATIENT, () => {
  const parameters = {
    type: "object",
    properties: {
      city: { type: "string", maxLength: 8 },
      days: { type: "integer", minimum: 1, maximum: 14 },
      units: { enum: ["C", "F"] },
      tags: { type: "array", items: { type: "string" }, maxItems: 2 },
      when: { type: "string", format: "date" },
    },
    required: ["city", "units"],
  };
  const tool = (name: string, schema?: object): Tool => ({
    type: "function",
    function: { name, ...(schema ? { parameters: schema as Record<string, unknown> } : {}) },
  });
  const tools = [tool("weather", parameters), tool("ping")];
  const call = (inside: string) => `<|tool_call>call:${inside}<tool_call|>`;
  const q = '<|"|>';

  it("are held to the tool's schema, in the family's syntax", () => {
    const right = [
      `weather{city:${q}Ulm${q},units:${q}C${q}}`,
      `weather{city:${q}${q},days:14,tags:[${q}a"b${q},${q}é\n${q}],units:${q}F${q}}`,
      `weather{city:${q}a${q},units:${q}C${q},when:${q}2026-11-18${q}}`,
      "ping{}",
    ].map(call);
    const wrong = [
      call(`weather{city:${q}Ulm${q}}`),
      call(`weather{city:${q}Neu-Ulm a.D.${q},units:${q}C${q}}`),
      call(`weather{city:${q}Ulm${q},days:15,units:${q}C${q}}`),
      call(`weather{city:${q}Ulm${q},units:${q}K${q}}`),
      call(`weather{city:${q}Ulm${q},tags:[${q}a${q},${q}b${q},${q}c${q}],units:${q}C${q}}`),
      call(`weather{city:${q}a${q},units:${q}C${q},when:${q}soon${q}}`),
      call("other{}"),
      "Hello",
      '{"name": "ping"}',
    ];
    check({ toolChoice: "required" }, right, wrong, tools);
    check({ toolChoice: { name: "ping" } }, [call("ping{}")], [right[0]!, ...wrong], tools);
  });

  it("may come in place of text of a format", () => {
    const right = ['{"a":1}', call("ping{}")];
    check({ format: "json" }, right, ["Hello", call("other{}"), `{}${call("ping{}")}`], tools);
    expect(guidance.constraint({ format: "json" }, tools).calls).toBe("maybe");
    expect(guidance.constraint({ toolChoice: "required" }, tools).calls).toBe("always");
    expect(guidance.constraint({ format: "json" }).calls).toBe("never");
  });

  it("are JSON where the family writes JSON", () => {
    const tagged = byteModel("tagged");
    const text = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>';
    expect(accepts(tagged.constraint({ toolChoice: "required" }, tools), text)).toBe(true);
    const cold = '{"name": "weather", "parameters": {"city": "Ulm", "units": "K"}}';
    const right = cold.replace("K", "C");
    const llama = byteModel("llama3");
    expect(accepts(llama.constraint({ toolChoice: "required" }, tools), right)).toBe(true);
    expect(accepts(llama.constraint({ toolChoice: "required" }, tools), cold)).toBe(false);
    expect(() => llama.constraint({ format: "json" }, tools)).toThrow(refused("cannot be told"));
    expect(() => byteModel("gemma3").constraint({ toolChoice: "required" }, tools)).toThrow(refused("no tool calls"));
  });

  it("of recursive, nested and free schemas work", () => {
    const tree = {
      type: "object",
      properties: { root: { $ref: "#/$defs/node" } },
      required: ["root"],
      $defs: {
        node: {
          type: "object",
          properties: { v: { type: ["integer", "null"] }, next: { $ref: "#/$defs/node" } },
          required: ["v"],
        },
      },
    };
    const free = { type: "object", properties: { x: {}, y: { anyOf: [{ const: 1 }, { type: "boolean" }] } } };
    const some = [tool("tree", tree), tool("free", free), tool("open", { type: "object" })];
    const right = [
      "tree{root:{next:{v:null},v:3}}",
      "free{}",
      `free{x:{a:[1,${q}b${q}]},y:1}`,
      "free{y:true}",
      `open{any:${q}thing${q},b:[]}`,
    ].map(call);
    const wrong = ["tree{}", "tree{root:{}}", "free{y:2}", "free{z:1}", "open{,}"].map(call);
    check({ toolChoice: "required" }, right, wrong, some);
  });

  it("that cannot be held to a schema are refused", () => {
    const bad = (schema: object, text: string) =>
      expect(() => guidance.constraint({ toolChoice: "required" }, [tool("f", schema)])).toThrow(refused(text));
    bad({ type: "object", properties: { a: { type: "array", uniqueItems: true } } }, "uniqueItems");
    bad({ type: "object", properties: { a: { not: {} } } }, "not is not supported");
    bad({ type: "object", properties: { a: { type: "strin" } } }, "strin");
    bad({ type: "object", properties: { a: { type: "string", pattern: "(?=a)" } } }, "lookahead");
    bad({ type: "object", properties: { "a:b": {} }, required: ["a:b"] }, "a:b");
    bad({ type: "object", properties: { a: { $ref: "#/nothing" } } }, "refers to nothing");
    bad({ type: "array" }, "must be an object");
    expect(() => guidance.constraint({ toolChoice: "required" }, [tool("a b")])).toThrow(refused("name"));
  });
});

describe("a prefix", PATIENT, () => {
  const schema = {
    type: "object",
    properties: { a: { type: "boolean" } },
    required: ["a"],
    additionalProperties: false,
  };
  const after = (prefix: string, text: string, tools: Tool[] = []) =>
    accepts(guidance.constraint({ format: schema }, tools, prefix), text);

  it("and the reply follow the format together", () => {
    expect(after('{"a": t', "rue}")).toBe(true);
    expect(after('{"a": t', "false}")).toBe(false);
    expect(after("", '{"a":true}')).toBe(true);
    expect(after('{"a":true}', "")).toBe(true);
    // Next to calls it is the text that has begun.
    const ping: Tool = { type: "function", function: { name: "ping" } };
    expect(after('{"a":', "false}", [ping])).toBe(true);
    expect(after('{"a":', "<|tool_call>call:ping{}<tool_call|>", [ping])).toBe(false);
  });

  it("that no reply begins with is refused, and so is one before a call that must be made", () => {
    expect(() => guidance.constraint({ format: schema }, [], "Hello")).toThrow(refused("begins with the prefix"));
    const ping: Tool = { type: "function", function: { name: "ping" } };
    expect(() => guidance.constraint({ toolChoice: "required" }, [ping], "Hello")).toThrow(refused("prefix"));
    check({ format: { type: "boolean" } }, ["true"], ["1"]);
  });
});

describe("a trap of the module", PATIENT, () => {
  let traps = 0;
  /** Browsers report a full stack as an error of JavaScript. */
  const trap = () => {
    throw traps++ % 2 === 0 ? new WebAssembly.RuntimeError("unreachable") : new RangeError("Maximum call stack size");
  };
  const started = expect.objectContaining({
    code: "internal",
    message: expect.stringContaining("simplify the format"),
  });

  /** A module that traps where it is told to; instances are numbered. */
  function fakeModule(told: { on?: "compile" | "mask" | "commit"; restart?: boolean }) {
    const freed: number[] = [];
    let instance = 0;
    const vocabularies: number[] = [];
    const module: GuidanceModule = {
      vocabulary() {
        const made = instance;
        vocabularies.push(made);
        const matcher = {
          fork: () => matcher,
          mask: () => (told.on === "mask" ? trap() : Uint32Array.of(made)),
          commit: () => (told.on === "commit" ? trap() : false),
          free: () => freed.push(made),
        };
        return { compile: () => (told.on === "compile" ? trap() : matcher), free: () => freed.push(made) } as never;
      },
      restart() {
        if (told.restart === false) throw new RangeError("no memory");
        instance++;
      },
    };
    return { module, freed, vocabularies };
  }

  const model = { vocabulary: () => new Uint8Array(8), outputFormat: () => "gemma4" };
  const JSON_FORMAT: PlainConstraint = { format: "json" };

  it.each(["compile", "mask", "commit"] as const)("in %s fails that reply alone", (on) => {
    const told: Parameters<typeof fakeModule>[0] = {};
    const { module, freed, vocabularies } = fakeModule(told);
    const instance = new GuidanceInstance(module);
    const [one, other] = [new Guidance(model, instance), new Guidance(model, instance)];
    const elsewhere = other.constraint(JSON_FORMAT);
    told.on = on;
    if (on === "compile") expect(() => one.constraint(JSON_FORMAT)).toThrow(started);
    else {
      const reply = one.constraint(JSON_FORMAT);
      expect(() => (on === "mask" ? reply.mask() : reply.commit(1))).toThrow(started);
      // The engine throws an error of its own, so that this one is kept.
      expect(reply.failure).toEqual(started);
      reply.free();
    }
    delete told.on;
    // A reply of the old instance cannot go on; what is of the old one is not freed in the new one.
    expect(() => elsewhere.mask()).toThrow(expect.objectContaining({ code: "internal" }));
    elsewhere.free();
    expect(freed).toEqual([]);
    for (const guided of [one, other]) expect(guided.constraint(JSON_FORMAT).mask()).toEqual(Uint32Array.of(1));
    expect(vocabularies.filter((made) => made === 1)).toHaveLength(2);
    one.free();
    expect(freed).toEqual([1, 1]);
  });

  it("that leaves no room for a new instance says to load the page again", () => {
    const { module } = fakeModule({ on: "mask", restart: false });
    const guided = new Guidance(model, new GuidanceInstance(module));
    const again = expect.objectContaining({
      code: "internal",
      message: expect.stringContaining("load the page again"),
    });
    const reply = guided.constraint(JSON_FORMAT);
    expect(() => reply.mask()).toThrow(again);
    expect(() => guided.constraint(JSON_FORMAT)).toThrow(again);
  });

  it("is followed by an instance that works", async () => {
    const guided = byteModel();
    const format: PlainConstraint = { format: { type: "boolean" } };
    const elsewhere = guided.constraint(format);
    const before = (await startGuidance()).memory;
    // An address that the module's memory does not have.
    const { compiled } = guided as unknown as { compiled: Map<string, { __wbg_ptr: number }> };
    for (const matcher of compiled.values()) matcher.__wbg_ptr = 0xffff_0000;
    expect(() => guided.constraint(format)).toThrow(started);
    expect((await startGuidance()).memory).not.toBe(before);
    expect(() => elsewhere.mask()).toThrow(expect.objectContaining({ code: "internal" }));
    elsewhere.free();
    expect(accepts(guided.constraint(format), "true")).toBe(true);
    check(format, ["false"], ["1"]);
  });
});

/** Cases of a keyword: decided right, valid values that cannot be written (such as properties in another order), refused schemas. */
interface Counts {
  right: number;
  missed: number;
  refused: number;
}

const SUITE = new URL("../../../goldens/json-schema/draft2020-12.json", import.meta.url);
const RATCHET = new URL("json-schema-suite.json", import.meta.url);

describe("the JSON-Schema test suite", () => {
  it(
    "has as many right cases as before, and no value that a schema forbids is allowed",
    { timeout: 240_000 },
    async () => {
      type Group = {
        description: string;
        schema: unknown;
        tests: { description: string; data: unknown; valid: boolean }[];
      };
      const suite = JSON.parse(await readFile(SUITE, "utf8")) as Record<string, Group[]>;
      const wrong: string[] = [];
      const counts: Record<string, Counts> = {};
      for (const [keyword, groups] of Object.entries(suite)) {
        const count = (counts[keyword] = { right: 0, missed: 0, refused: 0 });
        for (const { description, schema, tests } of groups) {
          let format: TokenConstraint | undefined;
          try {
            format = guidance.constraint({ format: schema as Record<string, unknown> });
          } catch (error) {
            expect(error, `${keyword}: ${description}`).toMatchObject({ code: "bad_options" });
          }
          format?.free();
          for (const { description: what, data, valid } of tests) {
            if (!format) count.refused++;
            else {
              const constraint = guidance.constraint({ format: schema as Record<string, unknown> });
              const accepted = accepts(constraint, JSON.stringify(data));
              if (accepted === valid) count.right++;
              else if (valid) count.missed++;
              else wrong.push(`${keyword}: ${description}: ${what}`);
            }
          }
        }
      }
      expect(wrong).toEqual([]);
      if (process.env["UPDATE_JSON_SCHEMA_SUITE"]) {
        const line = ([keyword, { right, missed, refused: no }]: [string, Counts]) =>
          `  "${keyword}": { "right": ${right}, "missed": ${missed}, "refused": ${no} }`;
        const lines = Object.entries(counts).map(line);
        await writeFile(RATCHET, `{\n${lines.join(",\n")}\n}\n`);
      }
      const before = JSON.parse(await readFile(RATCHET, "utf8")) as Record<string, Counts>;
      const fewer = Object.entries(before).filter(([keyword, { right }]) => (counts[keyword]?.right ?? 0) < right);
      expect(fewer.map(([keyword]) => keyword)).toEqual([]);
    },
  );
});
