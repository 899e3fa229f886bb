// A made-up engine for tests of the app: the same interface, no GPU, and failures on demand. Never shipped.

import type {
  ContentPart,
  DeviceReport,
  Embedded,
  EngineApi,
  FitReport,
  GenerateEvent,
  GenerateOptions,
  LoadOptions,
  Message,
  ModelApi,
  ModelInfo,
  ModelSource,
  OpResult,
  ServedModel,
  StoredModel,
  TrainingData,
  TrainingOptions,
  Usage,
} from "rullama";
import { Queue } from "../../client/src/queue.js";
import { hasExecutables, withTools } from "../../client/src/tool-loop.js";
import { FakeError, pause, settings } from "./fake.js";
import { describe, nameOf, sees } from "./fake-models.js";
import {
  FakeAdapters,
  FakeTraining,
  report,
  saveTrainings,
  savedTrainings,
  storeAdapters,
  storedAdapters,
} from "./fake-training.js";

export type { Fake } from "./fake.js";

const STORED = "fake-stored-models";

/** A message's words, with what is attached in brackets. */
function said({ content }: Message): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join(" ");
}

/** Models that are loaded: their files cannot be deleted. */
const inUse = new Map<string, number>();
const stored = (): StoredModel[] => JSON.parse(localStorage.getItem(STORED) ?? "[]") as StoredModel[];
const store = (models: StoredModel[]) => localStorage.setItem(STORED, JSON.stringify(models));

/** Texts with words in common have something in common. */
function vectorOf(text: string): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(64);
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    const place = [...word].reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 64, 7);
    vector[place] = (vector[place] ?? 0) + 1;
  }
  const length = Math.hypot(...vector) || 1;
  return vector.map((x) => x / length);
}

/** Waits as long as a test wants, until it no longer does, or until the answer is stopped. */
async function encoded(signal: AbortSignal | undefined): Promise<void> {
  const begun = performance.now();
  while (performance.now() - begun < (settings().encode ?? 0) && !signal?.aborted) await pause(20);
}

/** Waits while a test holds what comes after so many words or cases. */
async function released(done: number): Promise<void> {
  while (done >= (settings().held ?? Infinity)) await pause(20);
}

type Medium = Extract<ContentPart, { type: "image" | "audio" | "video" }>;
const isMedia = (part: ContentPart): part is Medium => ["image", "audio", "video"].includes(part.type);

/** Sampling settings that the real engine refuses. */
function refuse({ temperature, topP, minP, maxTokens }: GenerateOptions): void {
  const share = (value = 0) => value >= 0 && value <= 1;
  if (!(share(topP) && share(minP) && (temperature ?? 0) >= 0 && (maxTokens ?? 1) >= 1))
    throw new FakeError("bad_options");
}

class FakeModel implements ModelApi {
  readonly verified: Promise<void>;
  readonly lost: Promise<Error>;
  readonly adapters: FakeAdapters;
  #lose: (error: Error) => void = () => {};
  #freed = false;
  #dead = false;
  /** Answers come one after the other, as from the real engine. */
  readonly #queue = new Queue();

  constructor(readonly info: ModelInfo) {
    this.lost = new Promise((resolve) => (this.#lose = resolve));
    this.adapters = new FakeAdapters(info.name);
    const code = settings().verifyFailure;
    this.verified = code ? Promise.reject(new FakeError(code)) : Promise.resolve();
    this.verified.catch(() => {});
  }

  /** Tools are run by the package's own loop. */
  chat(messages: Message[], options: GenerateOptions = {}): AsyncIterableIterator<GenerateEvent> {
    if (hasExecutables(options)) return withTools((all, more) => this.#reply(all, more), messages, options);
    return this.#reply(messages, options);
  }

  async *#reply(messages: Message[], options: GenerateOptions): AsyncIterableIterator<GenerateEvent> {
    let leave = () => {};
    const left = new Promise<void>((resolve) => (leave = resolve));
    try {
      await new Promise<void>((enter, refused) => {
        this.#queue
          .run(() => {
            enter();
            return left;
          }, options.signal)
          .catch(() => refused(new FakeError("cancelled")));
      });
      yield* this.#answer(messages, options);
    } finally {
      leave();
    }
  }

  async *#answer(given: Message[], options: GenerateOptions): AsyncIterableIterator<GenerateEvent> {
    if (this.#freed) throw new FakeError("freed");
    if (this.#dead) throw new FakeError("device_lost");
    if (this.info.kind === "embedding") throw new FakeError("unsupported_model");
    refuse(options);
    const fake = settings();
    const { signal, confirmToolCall: _confirm, ...rest } = options;
    const own: Message[] = this.info.system ? [{ role: "system", content: this.info.system }] : [];
    const messages = given.some(({ role }) => role === "system") ? given : [...own, ...given];
    fake.asked = { messages: structuredClone(given), seen: structuredClone(messages), options: structuredClone(rest) };
    const prefix = messages.at(-1)?.prefix ? said(messages.at(-1)!) : undefined;
    if (messages.slice(0, -1).some((message) => message.prefix)) throw new FakeError("bad_options");
    const media = messages.flatMap(({ content }) => (typeof content === "string" ? [] : content)).filter(isMedia);
    // As the real engine: continued tokens are neither parsed nor do they hold media.
    if (
      prefix !== undefined &&
      (options.think || options.tools?.length || media.length || this.info.kind !== "decoder")
    )
      throw new FakeError("bad_options");
    if (media.length > 0 && (!sees(this.info.name) || fake.badMedia)) throw new FakeError("bad_media");
    for (const [index, { type }] of media.entries()) {
      for (const phase of ["decode", "encode"] as const) {
        yield { type: "media", kind: type, phase, index, total: media.length };
        await encoded(signal);
        while (settings().heldPhase === phase && !signal?.aborted) await pause(20);
      }
    }
    const context = fake.context ?? this.info.context;
    const promptTokens = messages.reduce((sum, message) => sum + said(message).split(/\s+/u).length, 0);
    if (promptTokens >= context) throw new FakeError("context_full");
    const begun = performance.now();
    const usage = (answerTokens: number): Usage => ({
      promptTokens,
      cachedTokens: 0,
      answerTokens,
      timeToFirstToken: 40,
      prefillTokensPerSecond: 500,
      decodeTokensPerSecond: answerTokens / Math.max(0.001, (performance.now() - begun) / 1000),
      seed: options.seed ?? 7,
      contextUsed: Math.min(context, promptTokens + answerTokens),
      context,
      ...(this.info.draft ? { drafts: { runs: 4, drafted: 11, accepted: 9 } } : {}),
      ...(this.info.kind === "diffusion" ? { blocks: 1, steps: CANVAS_STEPS } : {}),
    });
    yield { type: "prefill", done: promptTokens, total: promptTokens };
    const last = messages.findLast((message) => !message.prefix);
    const question = last ? said(last) : "";
    // A call is made once, unless a test wants it again and again.
    const calls = last?.role !== "tool" || fake.callsAgain;
    const adapted = options.adapters?.length ? "With an adapter: " : "";
    const whole = adapted + (fake.answers?.[this.info.name] ?? fake.answer ?? `You said: ${question}`);
    const answer = prefix !== undefined && whole.startsWith(prefix) ? whole.slice(prefix.length) : whole;
    let made = 0;
    const words: GenerateEvent[] = [];
    if (options.think) words.push(...split(fake.thinking ?? "Let me see.", "thinking"));
    if (fake.toolCall && calls) words.push({ type: "tool_call", index: 0, call: fake.toolCall });
    if (fake.badCall) words.push({ type: "bad_call", raw: fake.badCall });
    words.push(...(this.info.kind === "diffusion" ? settling(answer, options) : split(answer, "text")));
    for (const event of words) {
      await pause(settings().word ?? 2);
      await released(made);
      if (signal?.aborted) return yield { type: "done", finish: "cancelled", usage: usage(made) };
      // A test may have changed the settings since this answer began.
      const { failAfter } = settings();
      if (failAfter && made >= failAfter.words) {
        const { code } = failAfter;
        delete settings().failAfter;
        if (code === "device_lost") {
          this.#dead = true;
          this.#lose(new FakeError(code));
        }
        throw new FakeError(code);
      }
      if (options.maxTokens !== undefined && made >= options.maxTokens)
        return yield { type: "done", finish: "length", usage: usage(made) };
      if (promptTokens + made >= context) return yield { type: "done", finish: "context", usage: usage(made) };
      made++;
      yield event;
    }
    yield { type: "done", finish: "stop", usage: usage(made) };
  }

  async embed(input: string | string[]): Promise<Embedded> {
    if (this.#freed) throw new FakeError("freed");
    const texts = typeof input === "string" ? [input] : input;
    await pause(settings().word ?? 2);
    return { vectors: texts.map(vectorOf), tokens: texts.length, cut: 0 };
  }

  complete = (text: string, options?: GenerateOptions) => this.chat([{ role: "user", content: text }], options);
  inspectTraining = (data: TrainingData, options?: TrainingOptions) => report(data, options);

  async train(data: TrainingData, options: TrainingOptions = {}) {
    const { steps = 1 } = await report(data, options);
    const [id, begun] = [crypto.randomUUID(), Date.now()];
    const { name = "trained" } = options;
    return new FakeTraining(this.adapters, {
      id,
      name,
      model: this.info.name,
      options,
      step: 0,
      steps,
      begun,
      saved: begun,
    });
  }

  async continueTraining(id: string) {
    const saved = savedTrainings().find((one) => one.id === id);
    if (!saved) throw new FakeError("not_found");
    return new FakeTraining(this.adapters, saved);
  }

  session = () => Promise.reject(new FakeError("internal"));
  tokenize = (text: string) => Promise.resolve(new Uint32Array(text.split(/\s+/u).length));
  detokenize = () => Promise.resolve("");
  memory = () => Promise.resolve({ gpu: this.info.memory.gpu, wasmHeap: 30e6, sessions: 1 });

  async bench(options: { prompt?: number; answer?: number } = {}) {
    await pause(5);
    return {
      device: "Fake GPU",
      promptTokens: options.prompt ?? 64,
      prefillTokensPerSecond: 1000,
      answerTokens: options.answer ?? 32,
      decodeTokensPerSecond: 50,
      timeToFirstToken: 64,
      dispatchesPerToken: 400,
      memory: await this.memory(),
    };
  }

  async benchEncoders() {
    return {};
  }
  async freeEncoders() {}

  async free() {
    if (!this.#freed) {
      const count = (inUse.get(this.info.name) ?? 1) - 1;
      if (count > 0) inUse.set(this.info.name, count);
      else inUse.delete(this.info.name);
    }
    this.#freed = true;
  }
}

function split(text: string, type: "text" | "thinking"): GenerateEvent[] {
  return (text.match(/\S+\s*|\s+/gu) ?? []).map((word) => ({ type, text: word }));
}

const CANVAS_STEPS = 4;

/** Steps in which the words of an answer settle, and then the answer. */
function settling(answer: string, { canvas, steps = 48 }: GenerateOptions): GenerateEvent[] {
  const words = answer.match(/\S+\s*|\s+/gu) ?? [];
  const step = (number: number): GenerateEvent => {
    const accepted = Math.floor((words.length * number) / CANVAS_STEPS);
    const report = { block: 0, step: number, steps, entropy: 1 / number, accepted };
    if (!canvas) return { type: "step", ...report };
    const tokens = words.map((text, place) => ({ text, settled: place < accepted }));
    return { type: "canvas", tokens, ...report };
  };
  return [...Array.from({ length: CANVAS_STEPS }, (_, at) => step(at + 1)), { type: "text", text: answer }];
}

class FakeEngine implements EngineApi {
  async device(): Promise<DeviceReport> {
    if (settings().webgpu === false) {
      return { webgpu: false, reason: "navigator.gpu is missing.", why: "unsupported", features: [], limits: {} };
    }
    return {
      webgpu: true,
      vendor: "fake",
      architecture: "paper",
      description: "Fake GPU",
      fallback: settings().fallback ?? false,
      features: ["shader-f16", "subgroups"],
      limits: { maxBufferSize: 4294967296, maxStorageBufferBindingSize: 2147483644 },
      subgroups: { min: 32, max: 32 },
    };
  }

  async inspect(source: ModelSource): Promise<FitReport> {
    await pause(5);
    return describe(source);
  }

  async load(source: ModelSource, options: LoadOptions = {}): Promise<ModelApi> {
    const fake = settings();
    const { info, memory, runsOn } = describe(source);
    const step = fake.loadStep ?? 5;
    fake.loads = (fake.loads ?? 0) + 1;
    const { context, cache, keep, draft, projector } = options;
    fake.loadedWith = {
      context,
      cache,
      keep,
      ...(draft === undefined ? {} : { draft: nameOf(draft) }),
      ...(projector ? { projector: nameOf(projector) } : {}),
    };
    options.onProgress?.({ phase: "open", loaded: 0, total: 0, speed: 0, waited: 0 });
    for (let done = 0; done <= 10; done++) {
      await pause(step);
      if (options.signal?.aborted) throw new FakeError("cancelled");
      if (done === 5 && fake.loadFailure) throw new FakeError(fake.loadFailure);
      const loaded = (memory.weights * done) / 10;
      options.onProgress?.({
        phase: "load",
        loaded,
        total: memory.weights,
        downloaded: loaded,
        downloadTotal: info.fileBytes,
        speed: 90e6,
        waited: 0,
        eta: (memory.weights - loaded) / 90e6,
      });
    }
    if (
      typeof source === "string" &&
      options.keep !== false &&
      !stored().some((model) => model.source === source || model.names.includes(source))
    ) {
      store([
        ...stored(),
        {
          id: `sha256-${source}`,
          name: source,
          names: [source],
          source,
          bytes: info.fileBytes,
          have: info.fileBytes,
          complete: true,
          added: Date.now(),
          used: Date.now(),
        },
      ]);
    }
    const drafts =
      draft === undefined || draft === "off"
        ? {}
        : { draft: draft === "ngram" ? { from: "ngram" as const } : { from: "drafter" as const, name: nameOf(draft) } };
    const name = nameOf(source);
    inUse.set(name, (inUse.get(name) ?? 0) + 1);
    return new FakeModel({
      ...info,
      ...drafts,
      memory,
      device: runsOn === "cpu" ? "CPU" : "Fake GPU",
      runsOn,
      context: options.context ?? fake.context ?? 4096,
    });
  }

  async served(): Promise<ServedModel[]> {
    const { served = [], servedFailure } = settings();
    if (servedFailure) throw new FakeError(servedFailure);
    return served.map((model) => ({ ...model, layers: [] }));
  }

  async storage() {
    const { storageFailure } = settings();
    if (storageFailure) throw new FakeError(storageFailure);
    const models = stored();
    const usage = models.reduce((sum, model) => sum + model.have, 0);
    return {
      models,
      usage,
      quota: settings().quota ?? 10e9,
      persisted: await navigator.storage.persisted(),
    };
  }

  /** The browser decides, as with the real one: nothing is granted here. */
  persist = () => navigator.storage.persist();

  async keepFile(
    file: Blob | FileSystemFileHandle,
    options: { onProgress?: (done: number, total: number) => void; signal?: AbortSignal } = {},
  ): Promise<StoredModel> {
    const { size: bytes = 0, name } = file as File;
    if (bytes > (settings().quota ?? Infinity)) throw new FakeError("quota");
    for (let step = 1; step <= 4; step++) {
      await pause(settings().loadStep ?? 5);
      if (options.signal?.aborted) throw new FakeError("cancelled");
      options.onProgress?.((bytes * step) / 4, bytes);
    }
    const times = { added: Date.now(), used: Date.now() };
    const source = `file:${name}`;
    const kept = { id: source, name, names: [name], source, bytes, have: bytes, complete: true, ...times };
    store([...stored().filter(({ id }) => id !== source), kept]);
    return kept;
  }

  async remove(id: string) {
    const one = stored().find((model) => model.id === id);
    if (one && inUse.has(one.source)) throw new FakeError("storage");
    store(stored().filter((model) => model.id !== id));
  }

  storedAdapters = async () => storedAdapters();
  savedTrainings = async () => savedTrainings();

  async renameAdapter(id: string, name: string) {
    storeAdapters(storedAdapters().map((one) => (one.id === id ? { ...one, name } : one)));
  }

  async deleteAdapter(id: string) {
    storeAdapters(storedAdapters().filter((one) => one.id !== id));
  }

  async discardTraining(id: string) {
    saveTrainings(savedTrainings().filter((one) => one.id !== id));
  }

  async selfTest(options: { onResult?: (result: OpResult) => void; signal?: AbortSignal } = {}) {
    const results: OpResult[] = [];
    const ops = ["linear", "norm", "rope", "attention"];
    for (const op of ops) {
      await pause(settings().word ?? 5);
      await released(results.length);
      if (options.signal?.aborted) throw new FakeError("cancelled");
      const total = ops.length;
      const broken = op === settings().brokenOp;
      const told = broken ? "0.5 at 3, but the CPU has 0.25" : "";
      const verdict = broken ? "failed" : "passed";
      const result: OpResult = { op, name: "case 1", featureLevel: "f32", verdict, message: told, total };
      results.push(result);
      options.onResult?.(result);
    }
    return results;
  }

  close() {}
}

export { SearchIndex } from "../../client/src/search.js";
export { browserReport, reportText } from "../../client/src/browser-report.js";
export const openEngine = (): EngineApi => new FakeEngine();
