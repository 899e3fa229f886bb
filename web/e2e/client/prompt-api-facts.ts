// What pages rely on, as the web-platform tests of the Prompt API check it. Runs in the page.
import type * as Api from "../../client/src/prompt-api/index.js";
import { type Facts, drained, rejects, rejectsWith, same } from "./prompt-api-check.ts";
import { mediaFacts } from "./prompt-api-media.ts";

type Session = Api.LanguageModelSession;

const VALID = ["unavailable", "downloadable", "downloading", "available"];
const TEXT = "Please repeat this sentence.";
const tool = (more: object = {}) => ({ name: "one", description: "A tool.", inputSchema: { type: "object" }, ...more });
const CALLS = {
  expectedInputs: [{ type: "tool-response" as const }],
  expectedOutputs: [{ type: "tool-call" as const }],
};
const answered = (value: unknown) => [{ role: "user" as const, content: [{ type: "tool-response" as const, value }] }];

/** All inputs that become text. */
const COERCED: [unknown, string][] = [
  [null, "null."],
  [undefined, "undefined."],
  [{}, "[object Object]."],
  ["", "."],
  [[], "."],
  [[{ role: "user", content: [] }], "."],
  [[{ role: "user", content: [{ type: "text", value: "" }] }], "."],
];

const availability: Facts = {
  "availability() knows four words, whatever the options": async () => {
    const texts = [
      undefined,
      [],
      [{ type: "text" }],
      [{ type: "text", languages: ["en", "ja"] }],
      [{ type: "audio", languages: ["es"] }],
    ];
    const prompts = [
      undefined,
      [
        { role: "system", content: "a" },
        { role: "system", content: "b" },
      ],
    ];
    for (const topK of [undefined, -2, 1.5]) {
      for (const expectedInputs of texts) {
        for (const expectedOutputs of texts) {
          for (const initialPrompts of prompts) {
            const options = { topK, temperature: -0.5, expectedInputs, expectedOutputs, initialPrompts };
            same(VALID.includes(await LanguageModel.availability(options as never)), true);
          }
        }
      }
    }
    const modes = [
      "most-predictable",
      "predictable",
      "slightly-predictable",
      "balanced",
      "slightly-creative",
      "creative",
      "most-creative",
    ];
    for (const samplingMode of modes) {
      same(await LanguageModel.availability({ samplingMode, temperature: 0.8, topK: 10 } as never), "available");
      const session = await LanguageModel.create({ samplingMode } as never);
      same([session.samplingMode, (await session.clone()).samplingMode], [samplingMode, samplingMode]);
    }
  },
  "what is not supported is unavailable, and create() rejects": async () => {
    const languages = ["unk"];
    for (const options of [
      { expectedInputs: [{ type: "text" as const, languages }] },
      { expectedInputs: [{ type: "image" as const, languages }] },
      { expectedOutputs: [{ type: "text" as const, languages }] },
      { expectedOutputs: [{ type: "image" as const }] },
      { expectedOutputs: [{ type: "audio" as const }] },
    ]) {
      same(await LanguageModel.availability(options), "unavailable");
      await rejects(LanguageModel.create(options), "NotSupportedError");
    }
    for (const method of [LanguageModel.availability, LanguageModel.create]) {
      await rejects(method({ expectedInputs: [{ type: "text", languages: ["en-abc-invalid"] }] }), "RangeError");
      await rejects(method({ expectedInputs: [{ type: "soup" }] } as never), "TypeError");
      await rejects(method({ samplingMode: "wild" } as never), "TypeError");
      await method({ expectedInputs: [{ type: "text", languages: ["EN"] }] });
    }
  },
};

const creation: Facts = {
  "create() tells of its progress": async () => {
    const events: ProgressEvent[] = [];
    let isMade = false;
    await LanguageModel.create({
      monitor: (target) =>
        target.addEventListener("downloadprogress", (event) => {
          if (isMade) throw new Error("an event after the end");
          events.push(event as ProgressEvent);
        }),
    });
    isMade = true;
    const loaded = events.map((event) => event.loaded);
    same([loaded[0], loaded.at(-1)], [0, 1]);
    same(
      loaded.toSorted((left, right) => left - right),
      loaded,
    );
    same(new Set(loaded).size, loaded.length);
    for (const event of events) {
      same(
        [event instanceof ProgressEvent, event.lengthComputable, event.total, (event.loaded * 65536) % 1],
        [true, true, 1, 0],
      );
    }
  },
  "create() is aborted at its first and last event": async () => {
    for (const at of [0, 1]) {
      const controller = new AbortController();
      const reason = new Error("test");
      let count = 0;
      let tell = () => {};
      const told = new Promise<void>((resolve) => (tell = resolve));
      const made = LanguageModel.create({
        signal: controller.signal,
        monitor: (target) =>
          target.addEventListener("downloadprogress", (event) => {
            if ((event as ProgressEvent).loaded !== at) return;
            count += 1;
            tell();
          }),
      });
      await told;
      controller.abort(reason);
      await rejectsWith(made, reason);
      same(count, 1);
    }
  },
  "what a monitor throws rejects create()": async () => {
    const error = new Error("mine");
    await rejectsWith(
      LanguageModel.create({
        monitor: () => {
          throw error;
        },
      }),
      error,
    );
  },
  "initial prompts have their order": async () => {
    const [system, user] = [
      { role: "system" as const, content: "a" },
      { role: "user" as const, content: "b" },
    ];
    for (const initialPrompts of [[], [system, user], [user]]) await LanguageModel.create({ initialPrompts });
    for (const initialPrompts of [
      [user, system],
      [system, system, user],
    ]) {
      await rejects(LanguageModel.create({ initialPrompts }), "TypeError");
    }
    const session = await LanguageModel.create({ initialPrompts: [system, user] });
    same(session.contextUsage, await session.measureContextUsage([system, user]));
    await rejects(session.prompt([system]), "TypeError");
    const content = "word ".repeat(2000);
    const failed = LanguageModel.create({ initialPrompts: [{ role: "system", content }] });
    const error = await failed.catch((one: unknown) => one as QuotaError);
    const requested = await session.measureContextUsage(content);
    same(
      [(error as QuotaError).name, (error as QuotaError).requested, (error as QuotaError).quota],
      ["QuotaExceededError", requested, session.contextWindow],
    );
  },
};

interface QuotaError extends DOMException {
  requested: number;
  quota: number;
}

/** Aborts of methods that return promises. */
async function aborts(method: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  for (const reason of [undefined, new Error("test")]) {
    const controller = new AbortController();
    const running = method(controller.signal);
    running.catch(() => {});
    controller.abort(reason);
    await rejectsWith(running, controller.signal.reason);
    await rejectsWith(method(controller.signal), controller.signal.reason);
    if (!reason) same((controller.signal.reason as Error).name, "AbortError");
  }
}

const ends: Facts = {
  "create(), clone(), prompt(), append() and measures abort": async () => {
    const session = await LanguageModel.create();
    await aborts((signal) => LanguageModel.create({ signal }));
    await aborts((signal) => session.clone({ signal }));
    await aborts((signal) => session.prompt(TEXT, { signal }));
    await aborts((signal) => session.append(TEXT, { signal }));
    await aborts((signal) => session.measureContextUsage(TEXT, { signal }));
    same([session.contextUsage, await session.prompt(TEXT)], [0, `${TEXT}.`]);
  },
  "promptStreaming() aborts": async () => {
    const session = await LanguageModel.create();
    const reason = new DOMException("test", "VersionError");
    const controller = new AbortController();
    const stream = session.promptStreaming(TEXT, { signal: controller.signal });
    controller.abort(reason);
    await rejectsWith(stream.pipeTo(new WritableStream()), reason);
    await rejectsWith(new Promise(() => session.promptStreaming(TEXT, { signal: controller.signal })), reason);
    same((await drained(session.promptStreaming(TEXT))).join(""), `${TEXT}.`);
  },
  "destroy() and the signal of create() end a session": async () => {
    const session = await LanguageModel.create();
    const running = session.prompt(TEXT);
    running.catch(() => {});
    session.destroy();
    await rejects(running, "InvalidStateError");
    await rejects(session.prompt(TEXT), "InvalidStateError");
    same([typeof session.contextWindow, typeof session.contextUsage], ["number", "number"]);
    const controller = new AbortController();
    const other = await LanguageModel.create({ signal: controller.signal });
    const reason = new Error("test");
    const [prompt, later] = [other.prompt(TEXT), () => other.append(TEXT)];
    prompt.catch(() => {});
    controller.abort(reason);
    await rejectsWith(prompt, reason);
    await rejectsWith(later(), reason);
  },
  "a clone goes its own way": async () => {
    const session = await LanguageModel.create();
    await session.prompt(TEXT);
    const copy = await session.clone();
    same(
      [copy instanceof (LanguageModel as never), copy.contextUsage, copy.contextWindow],
      [true, session.contextUsage, session.contextWindow],
    );
    await copy.prompt(TEXT);
    same(copy.contextUsage > session.contextUsage, true);
  },
};

const prompts: Facts = {
  "everything that is no list of messages becomes text": async () => {
    for (const [input, reply] of COERCED) {
      const session = await LanguageModel.create();
      same(await session.prompt(input as never), reply);
      same((await drained(session.promptStreaming(input as never))).join(""), reply);
      same(await session.append(input as never), undefined);
    }
  },
  "system messages come first": async () => {
    for (const method of ["prompt", "append"] as const) {
      const session: Session = await LanguageModel.create();
      const system = { role: "system" as const, content: "a" };
      await rejects(session[method]([{ role: "user", content: "b" }, system]), "TypeError");
      await rejects(session[method]([system, system]), "TypeError");
      const first = session[method](system as never);
      await rejects(session[method]([system]), "TypeError");
      await first;
    }
  },
  "prompts wait for each other": async () => {
    const session = await LanguageModel.create();
    same(await Promise.all([session.prompt("a"), session.prompt("a"), session.prompt("b")]), ["a.", "a.", "b."]);
    const streams = [session.promptStreaming("a"), session.promptStreaming("b")];
    same(
      streams.map((one) => one instanceof ReadableStream),
      [true, true],
    );
    same(
      (await Promise.all(streams.map(drained))).map((chunks) => chunks.join("")),
      ["a.", "b."],
    );
  },
  "usage is exact": async () => {
    const session = await LanguageModel.create();
    same(session.contextUsage, 0);
    const cost = await session.measureContextUsage(TEXT);
    await session.append(TEXT);
    same([cost > 0, session.contextUsage], [true, cost]);
    const before = session.contextUsage;
    const reply = await session.prompt(TEXT);
    const both = (await session.measureContextUsage(TEXT)) + (await session.measureContextUsage(reply as string));
    same(Math.abs(session.contextUsage - before - both) <= 5, true);
    same(await session.measureInputUsage(TEXT), cost);
    const roles = ["system", "user", "assistant"] as const;
    same((await session.measureContextUsage(roles.map((role) => ({ role, content: role })))) > 0, true);
  },
  "a context that is full forgets, or refuses": async () => {
    const session = await LanguageModel.create();
    const overflow = new Promise<Event>((resolve) => session.addEventListener("contextoverflow", resolve));
    const text = `${TEXT} `.repeat(10);
    await session.append(text);
    const much = text.repeat(session.contextWindow / session.contextUsage);
    const [event] = await Promise.all([overflow, session.prompt(much)]);
    same([event.type, event.target === session], ["contextoverflow", true]);
    for (const method of ["prompt", "append"] as const) {
      const fresh: Session = await LanguageModel.create();
      const long = `${TEXT} `.repeat(fresh.contextWindow);
      const error = (await fresh[method](long).then(
        () => ({}),
        (one: unknown) => one,
      )) as QuotaError;
      const requested = await fresh.measureContextUsage(long);
      same(
        [error.name, error.requested, error.quota, error.code],
        ["QuotaExceededError", requested, fresh.contextWindow, 22],
      );
      same(error instanceof DOMException, true);
    }
  },
  "constraints that cannot be written are refused": async () => {
    const session = await LanguageModel.create();
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    await rejects(session.prompt(TEXT, { responseConstraint: cyclic }), "NotSupportedError");
    await rejects(session.prompt(TEXT, { responseConstraint: "x" as never }), "TypeError");
    await rejects(session.prompt(TEXT, { omitResponseConstraintInput: true }), "TypeError");
  },
};

const tools: Facts = {
  "create() refuses tools that are malformed": async () => {
    const circular: Record<string, unknown> = { type: "object" };
    circular["circular"] = circular;
    const schemas = [
      null,
      "text",
      {},
      { properties: {} },
      { type: "string" },
      { type: "object", properties: "x" },
      { type: "object", required: "x" },
      circular,
    ];
    const wrong = [
      ...schemas.map((inputSchema) => [tool({ inputSchema })]),
      [tool(), tool()],
      [tool({ name: "" })],
      [tool({ description: "" })],
      [{ name: "x", description: "x" }],
      [tool(), tool({ name: "two", inputSchema: circular })],
    ];
    for (const list of wrong) await rejects(LanguageModel.create({ ...CALLS, tools: list } as never), "TypeError");
    for (const expectedOutputs of [undefined, [], [{ type: "text" }]]) {
      await rejects(LanguageModel.create({ tools: [tool()], expectedOutputs } as never), "TypeError");
    }
    const error = new Error("mine");
    const fail = () => {
      throw error;
    };
    const proxy = new Proxy(
      { type: "object" },
      { get: (target, key) => (key === "properties" ? fail() : Reflect.get(target, key)) },
    );
    const getter = Object.defineProperty({ type: "object" }, "x", { get: fail, enumerable: true });
    for (const inputSchema of [{ type: "object", toJSON: fail }, getter, proxy]) {
      await rejectsWith(LanguageModel.create({ ...CALLS, tools: [tool({ inputSchema })] } as never), error);
    }
    await LanguageModel.create({ tools: [] });
    const without = await LanguageModel.create({ expectedOutputs: [{ type: "tool-call" }] });
    same(await without.prompt("call tools"), [{ type: "text", value: "call tools." }]);
  },
  "calls of tools come after the text, and the page answers them": async () => {
    const options = { ...CALLS, tools: [tool(), tool({ name: "two" })] } as never;
    const session = await LanguageModel.create(options);
    for (const one of [session, await session.clone()]) {
      const reply = (await one.prompt("call tools")) as { type: string; value: Api.ToolCallValue }[];
      same(
        reply.map(({ type }) => type),
        ["text", "tool-call", "tool-call"],
      );
      same(reply[0]!.value, "call tools.");
      for (const { value } of reply.slice(1)) {
        same([typeof value.callID, value.callID === value.callId, value.callID.length > 0], ["string", true, true]);
        same(value.arguments, { of: value.name });
      }
      const result = [
        { type: "text" as const, value: "4" },
        { type: "text" as const, value: { sum: [4] } },
        { type: "object" as const, value: { sum: 4 } },
      ];
      const success = new LanguageModelToolSuccess({ callID: reply[1]!.value.callID, name: "one", result });
      same(((await one.prompt(answered(success))) as Api.PromptPart[]).length, 1);
      const error = new LanguageModelToolError({ callId: reply[2]!.value.callId, name: "two", errorMessage: "no" });
      same(((await one.prompt(answered(error))) as Api.PromptPart[]).length, 1);
    }
    const chunks = (await drained(session.promptStreaming("call tools"))) as { type?: string }[];
    same(chunks.filter(({ type }) => type === "tool-call").length, 2);
  },
  "results that cannot be shown are refused": async () => {
    const session = await LanguageModel.create({ ...CALLS, tools: [tool()] } as never);
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    const bitmap = await createImageBitmap(new ImageData(4, 4));
    const response = (type: string, value: unknown) =>
      session.prompt(
        answered(new LanguageModelToolSuccess({ callID: "1", name: "one", result: [{ type, value }] as never })),
      );
    for (const value of [circular, () => {}, 12345678901234567890n])
      await rejects(response("text", value), "DataError");
    await rejects(response("object", bitmap), "DataError");
    await rejects(response("image", bitmap), "NotSupportedError");
    await rejects(response("audio", new AudioBuffer({ length: 10, sampleRate: 16000 })), "NotSupportedError");
  },
};

const FACTS: Facts = { ...availability, ...creation, ...ends, ...prompts, ...tools, ...mediaFacts };

const LIMIT_MS = 20_000;

/** Names and messages of the facts that do not hold. */
export async function failedFacts(): Promise<string[]> {
  const failed: string[] = [];
  for (const [name, check] of Object.entries(FACTS)) {
    const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error("it does not end")), LIMIT_MS));
    await Promise.race([check(), late]).catch((error: Error) => failed.push(`${name}: ${error.message}`));
  }
  return failed;
}
