// The Prompt API's interface, member by member: what an IDL harness asserts.
import { afterEach, describe, expect, it, vi } from "vitest";
import { Monitor, newMonitor } from "../src/prompt-api/monitor.js";
import { RullamaError } from "../src/errors.js";
import {
  LanguageModelToolCall,
  LanguageModelToolError,
  LanguageModelToolSuccess,
  languageModelOf,
} from "../src/prompt-api/index.js";
import type { ModelProvider } from "../src/prompt-api/provider.js";
import { fakeModel } from "./fake-model.js";

interface Member {
  name: string;
  kind: "operation" | "readonly" | "attribute";
  /** Required arguments. */
  length?: number;
  /** Whether it rejects where others throw. */
  promise?: boolean;
  isStatic?: boolean;
}

const MEMBERS: Member[] = [
  { name: "create", kind: "operation", length: 0, promise: true, isStatic: true },
  { name: "availability", kind: "operation", length: 0, promise: true, isStatic: true },
  { name: "prompt", kind: "operation", length: 1, promise: true },
  { name: "promptStreaming", kind: "operation", length: 1 },
  { name: "append", kind: "operation", length: 1, promise: true },
  { name: "measureContextUsage", kind: "operation", length: 1, promise: true },
  { name: "clone", kind: "operation", length: 0, promise: true },
  { name: "destroy", kind: "operation", length: 0 },
  { name: "contextUsage", kind: "readonly" },
  { name: "contextWindow", kind: "readonly" },
  { name: "samplingMode", kind: "readonly" },
  { name: "oncontextoverflow", kind: "attribute" },
  // The names of 2025.
  { name: "measureInputUsage", kind: "operation", length: 1, promise: true },
  { name: "inputUsage", kind: "readonly" },
  { name: "inputQuota", kind: "readonly" },
  { name: "onquotaoverflow", kind: "attribute" },
];
/** Of extensions. */
const RAW: Member[] = [
  { name: "params", kind: "operation", length: 0, promise: true, isStatic: true },
  { name: "topK", kind: "readonly" },
  { name: "temperature", kind: "readonly" },
];

const provider = (more: Partial<ModelProvider> = {}): ModelProvider => ({
  availability: async () => "available",
  load: async () => fakeModel(),
  ...more,
});

type AnyClass = Record<string, unknown> & { prototype: Record<string, unknown> };
const classOf = (hasRaw = false, more: Partial<ModelProvider> = {}) =>
  languageModelOf(provider(more), hasRaw) as unknown as AnyClass;

afterEach(() => vi.unstubAllGlobals());

describe.each([
  ["on a page", false, MEMBERS],
  ["in an extension", true, [...MEMBERS, ...RAW]],
] as const)("LanguageModel %s", (_where, hasRaw, members) => {
  it("has the members of the interface and no others", () => {
    const Class = classOf(hasRaw);
    const names = (isStatic: boolean) =>
      members.filter((one) => Boolean(one.isStatic) === isStatic).map((one) => one.name);
    expect(Object.keys(Class).sort()).toEqual(names(true).sort());
    expect(Object.keys(Class.prototype).sort()).toEqual(names(false).sort());
  });

  it.each(members)("$name is as Web IDL has it", async ({ name, kind, length, promise, isStatic }) => {
    const Class = classOf(hasRaw);
    const found = Object.getOwnPropertyDescriptor(isStatic ? Class : Class.prototype, name)!;
    expect(found).toMatchObject({ enumerable: true, configurable: true });
    if (kind === "operation") {
      expect(found.writable).toBe(true);
      const operation = found.value as { (this: unknown, ...all: unknown[]): unknown; length: number; name: string };
      expect([operation.length, operation.name]).toEqual([length, name]);
      expect(() => Reflect.construct(operation, [])).toThrow(TypeError);
      if (isStatic) return;
      const call = () => operation.call({}, "x");
      if (promise) await expect(call()).rejects.toThrow(TypeError);
      else expect(call).toThrow(TypeError);
      return;
    }
    expect(found.get!.name).toBe(`get ${name}`);
    expect(() => found.get!.call({}) as unknown).toThrow(TypeError);
    expect(typeof found.set).toBe(kind === "attribute" ? "function" : "undefined");
    if (found.set) expect(() => found.set!.call({}, null)).toThrow(TypeError);
  });
});

describe("LanguageModel", () => {
  it("is an interface object without a constructor that inherits from EventTarget", async () => {
    const Class = classOf();
    expect([Class["name"], Class["length"]]).toEqual(["LanguageModel", 0]);
    expect(Object.getPrototypeOf(Class)).toBe(EventTarget);
    expect(Object.getPrototypeOf(Class.prototype)).toBe(EventTarget.prototype);
    expect(Object.getOwnPropertyDescriptor(Class, "prototype")).toMatchObject({ writable: false, enumerable: false });
    expect(Object.getOwnPropertyDescriptor(Class.prototype, "constructor")).toMatchObject({ enumerable: false });
    expect(Object.getOwnPropertyDescriptor(Class.prototype, Symbol.toStringTag)).toEqual({
      value: "LanguageModel",
      writable: false,
      enumerable: false,
      configurable: true,
    });
    expect(() => Reflect.construct(Class as never, [])).toThrow(TypeError);
    expect(() => (Class as unknown as () => void)()).toThrow(TypeError);
    const session = await languageModelOf(provider()).create();
    expect(session).toBeInstanceOf(EventTarget);
    // Read-only attributes cannot be written in strict code.
    expect(() => Object.assign(session, { contextUsage: 5 })).toThrow(TypeError);
  });

  it("calls its handler in the order in which it was first set", async () => {
    const session = await languageModelOf(provider()).create();
    expect(session.oncontextoverflow).toBe(null);
    const seen: string[] = [];
    session.addEventListener("contextoverflow", () => seen.push("first"));
    session.oncontextoverflow = () => seen.push("replaced");
    session.addEventListener("contextoverflow", () => seen.push("third"));
    session.oncontextoverflow = function (this: unknown, event) {
      seen.push(`second ${this === session} ${event.type}`);
    };
    session.dispatchEvent(new Event("contextoverflow"));
    expect(seen).toEqual(["first", "second true contextoverflow", "third"]);
    for (const value of [5, "x", {}, undefined]) {
      session.oncontextoverflow = value as never;
      expect(session.oncontextoverflow).toBe(null);
    }
    session.dispatchEvent(new Event("contextoverflow"));
    expect(seen.slice(3)).toEqual(["first", "third"]);
    // Since it was null it comes last.
    session.oncontextoverflow = () => seen.push("again");
    session.dispatchEvent(new Event("contextoverflow"));
    expect(seen.slice(5)).toEqual(["first", "third", "again"]);
  });

  it("still has the names of 2025", async () => {
    const session = await languageModelOf(provider(), false).create({
      initialPrompts: [{ role: "user", content: "one two" }],
    });
    expect([session.inputUsage, session.inputQuota]).toEqual([session.contextUsage, session.contextWindow]);
    expect(session.inputUsage).toBeGreaterThan(0);
    expect(await session.measureInputUsage("one")).toBe(await session.measureContextUsage("one"));
    const seen: string[] = [];
    session.onquotaoverflow = ({ type }) => seen.push(type);
    session.oncontextoverflow = ({ type }) => seen.push(type);
    await session.append("word ".repeat(60));
    await session.append("word ".repeat(60));
    expect(seen).toEqual(["contextoverflow", "quotaoverflow"]);
  });

  it("converts its arguments in the order of Web IDL, before anything is checked", async () => {
    const LanguageModel = languageModelOf(provider(), true);
    const seen: string[] = [];
    const logged = (members: Record<string, unknown>) => {
      const entries = Object.keys(members).map((name) => [
        name,
        {
          get: () => {
            seen.push(name);
            return members[name];
          },
          enumerable: true,
        },
      ]);
      return Object.defineProperties({}, Object.fromEntries(entries)) as object;
    };
    const tool = logged({ name: "f", description: "d", inputSchema: { type: "object" }, execute: () => "x" });
    const message = logged({ role: "user", prefix: false, content: "x" });
    await LanguageModel.create(
      logged({
        signal: undefined,
        monitor: undefined,
        initialPrompts: [message],
        topK: undefined,
        temperature: undefined,
        tools: [tool],
        samplingMode: undefined,
        expectedOutputs: [{ type: "tool-call" }],
        expectedInputs: [],
      }),
    );
    const core = "expectedInputs expectedOutputs samplingMode temperature tools";
    const order = `${core} description execute inputSchema name topK initialPrompts content prefix role monitor signal`;
    expect(seen.join(" ")).toBe(order);
    // Malformed tags and messages in the wrong place are found after the members were converted.
    const languages = ["not a tag"];
    const made = (more: object) => LanguageModel.create({ expectedInputs: [{ type: "text", languages }], ...more });
    await expect(made({})).rejects.toThrow(RangeError);
    for (const more of [
      { tools: 5 },
      { monitor: 5 },
      { signal: 5 },
      { initialPrompts: "" },
      { initialPrompts: [{}] },
    ]) {
      await expect(made(more)).rejects.toThrow(TypeError);
    }
    const misplaced = { role: "user", content: "x", prefix: true };
    await expect(LanguageModel.create({ initialPrompts: [misplaced], signal: null } as never)).rejects.toThrow(
      TypeError,
    );
  });

  it("has an abort go before what is wrong with a constraint or a prompt", async () => {
    const session = await languageModelOf(provider()).create();
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    const reason = new Error("mine");
    const options = { responseConstraint: cyclic, signal: AbortSignal.abort(reason) };
    const misplaced = [{ role: "user" as const, content: "x", prefix: true }];
    await expect(session.prompt(misplaced, options)).rejects.toBe(reason);
    await expect(session.measureContextUsage(misplaced, options)).rejects.toBe(reason);
    await expect(session.append(misplaced, options)).rejects.toBe(reason);
    expect(() => session.promptStreaming(misplaced, options)).toThrow(reason);
    // Conversions go first.
    await expect(session.prompt([{ role: "smell" }] as never, options)).rejects.toThrow(TypeError);
    session.destroy();
    const destroyed = expect.objectContaining({ name: "InvalidStateError" });
    expect(() => session.promptStreaming("x")).toThrow(destroyed);
    await expect(session.clone()).rejects.toEqual(destroyed);
    await expect(session.measureContextUsage("x")).rejects.toEqual(destroyed);
    await expect(session.append("x")).rejects.toEqual(destroyed);
    await expect(session.prompt([{ role: "smell" }] as never)).rejects.toThrow(TypeError);
    expect([session.contextUsage, session.samplingMode]).toEqual([0, "balanced"]);
    session.destroy();
  });

  it("refuses to work in a document that is not active", async () => {
    const LanguageModel = languageModelOf(provider(), true);
    vi.stubGlobal("document", { defaultView: null });
    const named = expect.objectContaining({ name: "InvalidStateError" });
    await expect(LanguageModel.create()).rejects.toEqual(named);
    await expect(LanguageModel.availability()).rejects.toEqual(named);
    await expect(LanguageModel.params!()).rejects.toEqual(named);
  });

  it("refuses images and audio where the model has no encoders", async () => {
    const options = { expectedInputs: [{ type: "image" as const }] };
    const named = expect.objectContaining({ name: "NotSupportedError" });
    const without = languageModelOf(provider({ hasEncoders: async () => false }));
    expect(await without.availability(options)).toBe("unavailable");
    expect(await without.availability({ expectedInputs: [{ type: "text" }] })).toBe("available");
    await expect(without.create(options)).rejects.toEqual(named);
    let isLoaded = false;
    const late = languageModelOf(
      provider({
        availability: async () => "downloadable",
        load: async () => {
          isLoaded = true;
          return fakeModel();
        },
        hasEncoders: async () => (isLoaded ? false : undefined),
      }),
    );
    expect(await late.availability(options)).toBe("downloadable");
    await expect(late.create(options)).rejects.toEqual(named);
    await languageModelOf(provider({ hasEncoders: async () => true })).create(options);
  });

  it("ignores raw parameters on pages, and checks them in extensions", async () => {
    const model = fakeModel();
    const load = async () => model;
    const page = languageModelOf(provider({ load }), false);
    await (await page.create({ topK: 0, temperature: -1, samplingMode: "predictable" })).prompt("x");
    expect(model.asked[0]!.options).toMatchObject({ temperature: 0.4 });
    const extension = languageModelOf(provider({ load }), true);
    const params = await extension.params!();
    expect(String(params)).toBe("[object LanguageModelParams]");
    const { defaultTopK, maxTopK, defaultTemperature, maxTemperature } = params!;
    expect({ defaultTopK, maxTopK, defaultTemperature, maxTemperature }).toEqual({
      defaultTopK: 64,
      maxTopK: 128,
      defaultTemperature: 1,
      maxTemperature: 2,
    });
    const session = await extension.create({ topK: 500, temperature: 9 });
    expect([session.topK, session.temperature, session.samplingMode]).toEqual([128, 2, null]);
    await session.prompt("x");
    expect(model.asked[1]!.options).toMatchObject({ topK: 128, temperature: 2 });
    const copy = await session.clone();
    expect([copy.topK, copy.temperature]).toEqual([128, 2]);
    const plain = await extension.create();
    expect([plain.topK, plain.temperature]).toEqual([64, 1]);
    await expect(extension.create({ topK: 0 })).rejects.toThrow(RangeError);
    await expect(extension.create({ temperature: -0.1 })).rejects.toThrow(RangeError);
    await expect(extension.create({ temperature: NaN })).rejects.toThrow(TypeError);
    await expect(extension.availability({ topK: 3, samplingMode: "creative" })).rejects.toThrow(TypeError);
    const none = languageModelOf(provider({ availability: async () => "unavailable" }), true);
    expect(await none.params!()).toBe(null);
  });

  it("knows pages of extensions by their addresses", () => {
    for (const [protocol, hasParams] of [
      ["https:", false],
      ["chrome-extension:", true],
      ["moz-extension:", true],
    ] as const) {
      vi.stubGlobal("location", { protocol });
      expect("params" in languageModelOf(provider())).toBe(hasParams);
    }
  });
});

describe("failures", () => {
  it("of a provider or a model that has errors of its own have the names of the specification", async () => {
    const broken = languageModelOf(provider({ load: () => Promise.reject(new Error("mine")) }));
    await expect(broken.create()).rejects.toMatchObject({ name: "OperationError", message: "mine" });
    const model = fakeModel(() => [new TypeError("its own")]);
    const session = await languageModelOf(provider({ load: async () => model })).create();
    await expect(session.prompt("x")).rejects.toMatchObject({ name: "UnknownError", message: "its own" });
    expect(session.contextUsage).toBe(0);
  });

  it("of schemas that nothing satisfies are syntax errors", async () => {
    const message = "this JSON schema is not supported: Unsatisfiable schema: minimum (3) is greater than maximum (2)";
    const model = fakeModel(() => [new RullamaError("bad_options", message)]);
    const session = await languageModelOf(provider({ load: async () => model })).create();
    const asked = session.prompt("x", { responseConstraint: { type: "integer", minimum: 3, maximum: 2 } });
    await expect(asked).rejects.toEqual(expect.objectContaining({ name: "SyntaxError" }));
  });

  it("end a creation at once when it is aborted, and nothing more is told", async () => {
    const controller = new AbortController();
    let tell: (fraction: number) => void = () => {};
    const load: ModelProvider["load"] = (onProgress) => {
      tell = onProgress;
      return new Promise(() => {});
    };
    const seen: number[] = [];
    const made = languageModelOf(provider({ load })).create({
      signal: controller.signal,
      monitor: (monitor) => monitor.addEventListener("downloadprogress", () => seen.push(1)),
    });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const reason = new Error("mine");
    controller.abort(reason);
    tell(1);
    await expect(made).rejects.toBe(reason);
    expect(seen).toHaveLength(1);
  });

  it("of tools need all members", () => {
    const soup = { callId: "1", name: "f", result: [{ type: "soup", value: 1 }] };
    for (const wrong of [undefined, {}, { callID: "1", name: "f" }, { callID: "1", result: [] }, soup, 5]) {
      expect(() => new LanguageModelToolSuccess(wrong as never)).toThrow(TypeError);
      expect(() => new LanguageModelToolError(wrong as never)).toThrow(TypeError);
    }
  });

  it("of a schema that writes itself as nothing are type errors", async () => {
    const nothing = { name: "f", description: "d", inputSchema: { toJSON: () => undefined } };
    const options = { expectedOutputs: [{ type: "tool-call" as const }], tools: [nothing] };
    await expect(languageModelOf(provider()).create(options)).rejects.toThrow(TypeError);
  });

  it("of a schema are read before it is written, also those that would not be written", async () => {
    const made = (inputSchema: object) =>
      languageModelOf(provider()).create({
        expectedOutputs: [{ type: "tool-call" }],
        tools: [{ name: "f", description: "d", inputSchema }],
      });
    const read: PropertyKey[] = [];
    const logged = new Proxy({ type: "object" }, { get: (target, key) => (read.push(key), Reflect.get(target, key)) });
    await made(logged);
    expect(read).toEqual(["type", "properties", "required", "toJSON", "type"]);
    for (const member of ["type", "properties", "required"]) {
      const error = new Error(member);
      const throwing = new Proxy(
        { type: "object" },
        {
          get: (target, key) => {
            if (key === member) throw error;
            return Reflect.get(target, key) as unknown;
          },
        },
      );
      await expect(made(throwing)).rejects.toBe(error);
    }
    // What is written must be a schema, too.
    for (const written of [[], "object", {}, { type: "string" }, { type: "object", required: 5 }]) {
      await expect(made({ type: "object", toJSON: () => written })).rejects.toThrow(TypeError);
    }
    await made({ type: "object", toJSON: () => ({ type: "object", properties: {} }) });
  });
});

describe("values of tools", () => {
  const init = { callId: "1", name: "f", result: [{ type: "text" as const, value: "x" }], errorMessage: "no" };
  it.each([
    [LanguageModelToolCall, ["callId", "callID", "name", "arguments"]],
    [LanguageModelToolSuccess, ["callId", "callID", "name", "result"]],
    [LanguageModelToolError, ["callId", "callID", "name", "errorMessage"]],
  ] as const)("%o have attributes on their prototype", (Class, names) => {
    expect(Object.keys(Class.prototype)).toEqual(names);
    const value = new Class(init);
    expect(Object.getOwnPropertyNames(value)).toEqual([]);
    expect([String(value), Class.length]).toEqual([`[object ${Class.name}]`, 1]);
    for (const name of names) {
      const { get, set, enumerable } = Object.getOwnPropertyDescriptor(Class.prototype, name)!;
      expect({ set, enumerable }).toEqual({ set: undefined, enumerable: true });
      expect(() => get!.call({}) as unknown).toThrow(TypeError);
    }
    // Chrome spells it so.
    const { callId: callID, ...rest } = init;
    expect(new Class({ callID, ...rest }).callId).toBe("1");
    expect(() => (Class as unknown as () => void)()).toThrow(TypeError);
  });

  it("have frozen results and arguments that may be absent", () => {
    const { result } = new LanguageModelToolSuccess(init);
    expect([result, Object.isFrozen(result)]).toEqual([init.result, true]);
    expect(new LanguageModelToolCall(init).arguments).toBe(null);
    expect(() => new LanguageModelToolCall({ ...init, arguments: 5 as never })).toThrow(TypeError);
  });
});

describe("CreateMonitor", () => {
  it("has one handler and no other member", () => {
    expect(Object.keys(Monitor.prototype)).toEqual(["ondownloadprogress"]);
    const monitor = newMonitor();
    expect(Object.prototype.toString.call(monitor)).toBe("[object CreateMonitor]");
    expect([Monitor.name, Monitor.length, monitor.ondownloadprogress]).toEqual(["CreateMonitor", 0, null]);
    expect(() => Reflect.construct(Monitor, [])).toThrow(TypeError);
  });
});
