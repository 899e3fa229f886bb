import { afterEach, describe, expect, it, vi } from "vitest";
import { RullamaError } from "../src/errors.js";
import { install, languageModelOf } from "../src/prompt-api/index.js";
import { ProgressReporter } from "../src/prompt-api/monitor.js";
import type { ModelProvider } from "../src/prompt-api/provider.js";
import type { LanguageModelTool } from "../src/prompt-api/types.js";
import { type FakeModel, drained, fakeModel } from "./fake-model.js";

const api = (model: FakeModel = fakeModel(), provider: Partial<ModelProvider> = {}) =>
  languageModelOf({ availability: async () => "available", load: async () => model, ...provider });

const tool = (more: Partial<LanguageModelTool> = {}): LanguageModelTool => ({
  name: "weather",
  description: "The weather.",
  inputSchema: { type: "object", properties: { city: { type: "string" } } },
  ...more,
});
const WITH_TOOLS = { expectedOutputs: [{ type: "text" as const }, { type: "tool-call" as const }] };
const named = (name: string) => expect.objectContaining({ name });

afterEach(() => vi.unstubAllGlobals());

describe("the interface", () => {
  it("looks as Web IDL has it", async () => {
    const LanguageModel = api();
    expect(() => Reflect.construct(LanguageModel as never, [])).toThrow(TypeError);
    expect(Object.keys(LanguageModel).sort()).toEqual(["availability", "create"]);
    const methods = ["append", "clone", "destroy", "measureContextUsage", "prompt", "promptStreaming"];
    for (const name of methods) {
      const { enumerable } = Object.getOwnPropertyDescriptor(LanguageModel.prototype, name)!;
      expect({ name, enumerable }).toEqual({ name, enumerable: true });
    }
    const { prompt, promptStreaming, append, clone } = LanguageModel.prototype;
    expect([prompt.length, promptStreaming.length, append.length, clone.length, LanguageModel.create.length]).toEqual([
      1, 1, 1, 0, 0,
    ]);
    const { create } = LanguageModel;
    const session = await create();
    expect(Object.prototype.toString.call(session)).toBe("[object LanguageModel]");
    await expect(prompt.call({} as never, "x")).rejects.toThrow(TypeError);
    await expect((session.prompt as () => Promise<unknown>)()).rejects.toThrow(TypeError);
    expect(() => (session.promptStreaming as () => unknown)()).toThrow(TypeError);
    session.oncontextoverflow = 5 as never;
    expect(session.oncontextoverflow).toBe(null);
  });

  it("is installed only where there is none", () => {
    vi.stubGlobal("LanguageModel", "the browser's");
    expect(install()).toBe(false);
    vi.stubGlobal("LanguageModelToolSuccess", undefined);
    vi.stubGlobal("LanguageModelToolError", undefined);
    expect(install({ force: true })).toBe(true);
    expect(Object.getOwnPropertyDescriptor(globalThis, "LanguageModel")).toMatchObject({ enumerable: false });
  });

  it("is installed in windows of secure contexts", () => {
    vi.stubGlobal("LanguageModel", undefined);
    Reflect.deleteProperty(globalThis, "LanguageModel");
    vi.stubGlobal("isSecureContext", false);
    expect(install()).toBe(false);
    vi.stubGlobal("isSecureContext", true);
    // Everything is an instance of it: this is a worker.
    vi.stubGlobal("WorkerGlobalScope", Object);
    expect(install()).toBe(false);
    vi.stubGlobal("WorkerGlobalScope", undefined);
    expect(install()).toBe(true);
  });
});

describe("what is over at once", () => {
  it("can still be aborted: a creation that has everything, and a clone", async () => {
    const controller = new AbortController();
    const reason = new Error("mine");
    const monitor = (target: EventTarget) =>
      target.addEventListener("downloadprogress", (event) => {
        if ((event as ProgressEvent).loaded === 1) queueMicrotask(() => controller.abort(reason));
      });
    await expect(api().create({ monitor, signal: controller.signal })).rejects.toBe(reason);
    const session = await api().create();
    const late = new AbortController();
    const copy = session.clone({ signal: late.signal });
    late.abort(reason);
    await expect(copy).rejects.toBe(reason);
    const other = session.clone();
    session.destroy();
    await expect(other).rejects.toEqual(named("InvalidStateError"));
  });
});

describe("create", () => {
  it("reports progress from 0 to 1, rising, also without a download", async () => {
    const load: ModelProvider["load"] = async (onProgress) => {
      for (const part of [0.1, 0.05, 0.5]) onProgress(part);
      return fakeModel();
    };
    const seen: number[] = [];
    await api(fakeModel(), { load }).create({
      monitor: (monitor) => (monitor.ondownloadprogress = ({ loaded }) => seen.push(loaded)),
    });
    expect([seen[0], seen.at(-1)]).toEqual([0, 1]);
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
  });

  it("tells at most every 50 ms, in steps of 1/65536", () => {
    const target = new EventTarget();
    const seen: number[] = [];
    target.addEventListener("downloadprogress", (event) => seen.push((event as ProgressEvent).loaded));
    let now = 0;
    const reporter = new ProgressReporter(target, () => now);
    reporter.report(0);
    reporter.report(0.25);
    now = 60;
    reporter.report(0.300001);
    reporter.report(1);
    reporter.end();
    reporter.report(1);
    expect(seen).toEqual([0, Math.floor(0.300001 * 65536) / 65536, 1]);
  });

  it("fails with the errors of the specification", async () => {
    const made = (options: object, provider: Partial<ModelProvider> = {}) => api(fakeModel(), provider).create(options);
    await expect(made({ expectedInputs: [{ type: "smell" }] })).rejects.toThrow(TypeError);
    await expect(made({ samplingMode: "default" })).rejects.toThrow(TypeError);
    await expect(made({ expectedInputs: [{ type: "text", languages: ["en--x"] }] })).rejects.toThrow(RangeError);
    const reason = new Error("mine");
    await expect(made({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await expect(
      made({
        monitor: () => {
          throw reason;
        },
      }),
    ).rejects.toBe(reason);
    await expect(made({}, { availability: async () => "unavailable" })).rejects.toEqual(named("NotSupportedError"));
    await expect(made({ expectedOutputs: [{ type: "image" }] })).rejects.toEqual(named("NotSupportedError"));
    await expect(made({}, { availability: () => Promise.reject(new Error("x")) })).rejects.toEqual(
      named("UnknownError"),
    );
    vi.stubGlobal("navigator", { userActivation: { hasBeenActive: false } });
    await expect(made({}, { availability: async () => "downloadable" })).rejects.toEqual(named("NotAllowedError"));
    const broken = { load: () => Promise.reject(new RullamaError("network", "gone")) };
    await expect(made({}, broken)).rejects.toEqual(named("NetworkError"));
    const full = { load: () => Promise.reject(new RullamaError("out_of_memory", "no room")) };
    await expect(made({}, full)).rejects.toEqual(named("OperationError"));
    const long = { initialPrompts: [{ role: "user", content: "word ".repeat(120) }] };
    await expect(made(long)).rejects.toMatchObject({
      name: "QuotaExceededError",
      code: 22,
      requested: 125,
      quota: 100,
    });
  });

  it("checks tools", async () => {
    const made = (...tools: unknown[]) => api().create({ ...WITH_TOOLS, tools: tools as LanguageModelTool[] });
    const cyclic: Record<string, unknown> = { type: "object" };
    cyclic["self"] = cyclic;
    const bad = [tool({ name: "" }), tool({ description: "" }), tool({ inputSchema: cyclic })];
    for (const inputSchema of [
      undefined,
      5,
      {},
      { type: "object", properties: 5 },
      { type: "object", required: "x" },
    ]) {
      bad.push({ ...tool(), inputSchema } as LanguageModelTool);
    }
    for (const one of bad) await expect(made(one)).rejects.toThrow(TypeError);
    await expect(made(tool(), tool())).rejects.toThrow(TypeError);
    await expect(api().create({ tools: [tool()] })).rejects.toThrow(TypeError);
    await made(tool(), tool({ name: "other" }));
  });

  it("destroys the session when its signal aborts later", async () => {
    const controller = new AbortController();
    const session = await api().create({ signal: controller.signal });
    const reason = new Error("mine");
    controller.abort(reason);
    await expect(session.prompt("x")).rejects.toBe(reason);
  });
});

describe("availability", () => {
  it("is the worst of the model's, the types' and the languages'", async () => {
    const of = (options?: object) =>
      api(fakeModel(), { availability: async () => "downloadable" }).availability(options);
    expect(await of()).toBe("downloadable");
    expect(
      await of({ expectedInputs: [{ type: "image" }], expectedOutputs: [{ type: "text", languages: ["de"] }] }),
    ).toBe("downloadable");
    expect(await of({ expectedOutputs: [{ type: "text", languages: ["xyz-abcde"] }] })).toBe("unavailable");
    expect(await of({ expectedOutputs: [{ type: "audio" }] })).toBe("unavailable");
    await expect(of({ expectedInputs: [{}] })).rejects.toThrow(TypeError);
  });
});

describe("prompts", () => {
  it("are answered with what was said before", async () => {
    const model = fakeModel();
    const session = await api(model).create({ initialPrompts: [{ role: "system", content: "Be kind." }] });
    expect(await session.prompt("One")).toBe("Hello there");
    expect(
      await session.prompt([
        {
          role: "user",
          content: [
            { type: "text", value: "T" },
            { type: "text", value: "wo" },
          ],
        },
      ]),
    ).toBe("Hello there");
    expect(model.asked[1]!.messages).toEqual([
      { role: "system", content: "Be kind." },
      { role: "user", content: "One" },
      { role: "assistant", content: "Hello there" },
      { role: "user", content: "Two" },
    ]);
  });

  it("become text unless they are lists", async () => {
    const model = fakeModel();
    const session = await api(model).create();
    for (const [index, [input, text]] of [
      [null, "null"],
      [{}, "[object Object]"],
      [[], ""],
      [7, "7"],
    ].entries()) {
      await session.prompt(input as string);
      expect(model.asked[index]!.messages.at(-1)).toEqual({ role: "user", content: text });
    }
  });

  it("stream deltas, and failures of validation error the stream", async () => {
    const session = await api().create();
    expect(await drained(session.promptStreaming("x"))).toEqual(["Hello", " there"]);
    const stream = session.promptStreaming([{ role: "system", content: "late" }]);
    await expect(drained(stream)).rejects.toThrow(TypeError);
    const reason = new Error("mine");
    expect(() => session.promptStreaming("x", { signal: AbortSignal.abort(reason) })).toThrow(reason);
  });

  it("that the specification does not allow are refused", async () => {
    const session = await api().create({ expectedInputs: [{ type: "image" }] });
    const refused = (content: unknown, role = "user", more: object = {}) =>
      expect(session.prompt([{ role, content, ...more }] as never)).rejects;
    await refused([{ type: "text", value: new Blob() }]).toEqual(named("SyntaxError"));
    await refused([{ type: "text", value: Symbol("x") }]).toThrow(TypeError);
    await refused([{ type: "audio", value: new Blob() }]).toEqual(named("NotSupportedError"));
    await refused([{ type: "image", value: "x.png" }]).toThrow(TypeError);
    await refused([{ type: "image", value: new Blob() }], "assistant").toEqual(named("NotSupportedError"));
    await refused("x", "user", { prefix: true }).toEqual(named("SyntaxError"));
    await expect(
      session.prompt([
        { role: "assistant", content: "x", prefix: true },
        { role: "user", content: "y" },
      ]),
    ).rejects.toEqual(named("SyntaxError"));
    await refused("x", "robot").toThrow(TypeError);
    await expect(session.prompt([{ role: "user" }] as never)).rejects.toThrow(TypeError);
    await refused([{ type: "image", value: new Uint8Array(3) }]).toEqual(named("InvalidStateError"));
    await session.prompt("fine");
    await refused("late", "system").toThrow(TypeError);
  });

  it("with a prefix are continued: the answer excludes it, the session keeps both as one", async () => {
    const model = fakeModel(() => [" red", " one."]);
    const session = await api(model).create();
    const asked = [
      { role: "user" as const, content: "Which?" },
      { role: "assistant" as const, content: "The", prefix: true },
    ];
    expect(await drained(session.promptStreaming(asked))).toEqual([" red", " one."]);
    expect(model.asked[0]!.messages).toEqual(asked);
    const kept = [asked[0]!, { role: "assistant" as const, content: "The red one." }];
    expect(session.contextUsage).toBe(await session.measureContextUsage(kept));
    await session.append([{ role: "assistant", content: "More", prefix: true }]);
    await session.prompt("Thanks");
    expect(model.asked[1]!.messages).toEqual([
      ...kept,
      { role: "assistant", content: "More" },
      { role: "user", content: "Thanks" },
    ]);
    const other = await api(model).create({ initialPrompts: asked });
    await other.prompt("x");
    expect(model.asked[2]!.messages[1]).toEqual({ role: "assistant", content: "The" });
  });

  it("show captured images to the model", async () => {
    const bitmap = { close() {} };
    vi.stubGlobal("createImageBitmap", async (source: Blob) => Object.assign(bitmap, { size: source.size }));
    const model = fakeModel(undefined, { context: 1000 });
    const session = await api(model).create({ expectedInputs: [{ type: "image" }] });
    const bytes = new Uint8Array([1, 2, 3]).subarray(1);
    const value = [
      { type: "image" as const, value: bytes },
      { type: "text" as const, value: "What?" },
    ];
    await session.prompt([{ role: "user", content: value }]);
    expect(model.asked[0]!.messages[0]!.content).toEqual([
      { type: "image", image: expect.objectContaining({ size: 2 }) },
      { type: "text", text: "What?" },
    ]);
  });

  it("pass constraints on, and those the engine refuses are not supported", async () => {
    const model = fakeModel((_, { format }) =>
      format instanceof RegExp ? ["7"] : [new RullamaError("bad_options", "no")],
    );
    const session = await api(model).create();
    expect(await session.prompt("x", { responseConstraint: /\d/u })).toBe("7");
    await expect(session.prompt("x", { responseConstraint: { type: "object" } })).rejects.toEqual(
      named("NotSupportedError"),
    );
    expect(model.asked.map(({ options }) => options.format)).toEqual([/\d/u, { type: "object" }]);
    await expect(session.prompt("x", { responseConstraint: 5 as never })).rejects.toThrow(TypeError);
    await expect(session.prompt("x", { omitResponseConstraintInput: true })).rejects.toThrow(TypeError);
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    await expect(session.prompt("x", { responseConstraint: cyclic })).rejects.toEqual(named("NotSupportedError"));
  });
});

describe("aborting", () => {
  it("rejects with the reason and leaves the session as it was", async () => {
    const model = fakeModel(() => ["a", "b", "c"], { wait: 10 });
    const session = await api(model).create();
    const controller = new AbortController();
    const running = session.prompt("one", { signal: controller.signal });
    const queued = session.prompt("two", { signal: controller.signal });
    const reason = new Error("mine");
    setTimeout(() => controller.abort(reason), 15);
    await expect(running).rejects.toBe(reason);
    await expect(queued).rejects.toBe(reason);
    expect(session.contextUsage).toBe(0);
    expect(await session.prompt("three")).toBe("abc");
    expect(model.asked.at(-1)!.messages).toEqual([{ role: "user", content: "three" }]);
    expect(model.asked).toHaveLength(2);
  });

  it("ends a stream that is cancelled, without an error", async () => {
    const model = fakeModel(() => ["a", "b", "c"], { wait: 5 });
    const session = await api(model).create();
    const reader = session.promptStreaming("one").getReader();
    expect((await reader.read()).value).toBe("a");
    await reader.cancel();
    expect(await session.prompt("two")).toBe("abc");
    expect(model.running).toBe(0);
  });

  it("by destroy ends what runs and what comes", async () => {
    const session = await api(fakeModel(() => ["a"], { wait: 10 })).create();
    const running = session.prompt("x");
    session.destroy();
    await expect(running).rejects.toEqual(named("InvalidStateError"));
    await expect(session.prompt("x")).rejects.toEqual(named("InvalidStateError"));
    await expect(session.clone()).rejects.toEqual(named("InvalidStateError"));
    expect(session.contextWindow).toBe(100);
  });
});

describe("the context", () => {
  it("is counted exactly", async () => {
    const session = await api().create();
    expect(session.contextUsage).toBe(0);
    const cost = await session.measureContextUsage("one two three");
    await session.append("one two three");
    expect(session.contextUsage).toBe(cost);
    const prompts = [{ role: "system" as const, content: "a b" }];
    const other = await api().create({ initialPrompts: prompts });
    expect(other.contextUsage).toBe(await session.measureContextUsage(prompts));
    const before = session.contextUsage;
    const answer = (await session.prompt("x")) as string;
    const sum = (await session.measureContextUsage("x")) + (await session.measureContextUsage(answer));
    expect(session.contextUsage - before).toBe(sum);
  });

  it("drops the oldest exchanges, never initial prompts, and says so", async () => {
    const model = fakeModel(() => ["ok"]);
    const session = await api(model).create({ initialPrompts: [{ role: "system", content: "stay" }] });
    let overflows = 0;
    session.oncontextoverflow = () => (overflows += 1);
    await session.prompt(`first ${"a ".repeat(40)}`);
    await session.prompt(`second ${"b ".repeat(20)}`);
    expect(overflows).toBe(0);
    await session.prompt(`third ${"c ".repeat(25)}`);
    expect(overflows).toBe(1);
    const said = model.asked.at(-1)!.messages.map(({ content }) => String(content).split(" ")[0]);
    expect(said).toEqual(["stay", "second", "ok", "third"]);
    const usage = session.contextUsage;
    const long = session.prompt("d ".repeat(96));
    await expect(long).rejects.toMatchObject({ name: "QuotaExceededError", requested: 107, quota: 100 });
    expect([session.contextUsage, overflows]).toEqual([usage, 1]);
  });

  it("is copied by clone and independent afterwards", async () => {
    const model = fakeModel();
    const session = await api(model).create();
    await session.append("seen");
    const copy = await session.clone();
    expect(copy.contextUsage).toBe(session.contextUsage);
    await copy.prompt("only here");
    await session.prompt("there");
    expect(model.asked[1]!.messages.map(({ content }) => content)).toEqual(["seen", "there"]);
    session.destroy();
    expect(await copy.prompt("still works")).toBe("Hello there");
  });
});
