// The interface `LanguageModel` of the Prompt API, around a model of this package.

import { Context, measure, measureTools } from "./context.js";
import { checkActive, hasActivation, isDenied } from "./document.js";
import { createError, domError, quotaExceeded } from "./errors.js";
import {
  type ConvertedMessage,
  type CoreOptions,
  checkedOptions,
  coreOptions,
  dictionary,
  isSupported,
  list,
  messageOf,
  promptOf,
  signalOf,
} from "./idl.js";
import { HandlerAttribute, asInterface } from "./interface.js";
import { ProgressReporter, newMonitor } from "./monitor.js";
import { capture, validate } from "./prompts.js";
import { type ModelProvider, untilAborted } from "./provider.js";
import { type LanguageModelParams, PARAMS, isExtension, params } from "./raw-sampling.js";
import { type Chunk, type Request, Session, toolOf, withoutPrefix } from "./session.js";
import type {
  Availability,
  LanguageModelCreateCoreOptions,
  LanguageModelCreateOptions,
  LanguageModelPrompt,
  LanguageModelPromptOptions,
  PromptPart,
  PromptResult,
  SamplingMode,
} from "./types.js";

type Handler = ((event: Event) => unknown) | null;

/** A session: what `LanguageModel.create()` resolves to. */
export interface LanguageModelSession extends EventTarget {
  prompt(input: LanguageModelPrompt, options?: LanguageModelPromptOptions): Promise<PromptResult>;
  promptStreaming(
    input: LanguageModelPrompt,
    options?: LanguageModelPromptOptions,
  ): ReadableStream<string | PromptPart>;
  append(input: LanguageModelPrompt, options?: { signal?: AbortSignal }): Promise<undefined>;
  measureContextUsage(input: LanguageModelPrompt, options?: LanguageModelPromptOptions): Promise<number>;
  readonly contextUsage: number;
  readonly contextWindow: number;
  /** Null in extensions that chose `topK` and `temperature` instead. */
  readonly samplingMode: SamplingMode | null;
  /** In extensions. */
  readonly topK?: number;
  readonly temperature?: number;
  oncontextoverflow: Handler;
  /** The names of 2025. */
  measureInputUsage(input: LanguageModelPrompt, options?: LanguageModelPromptOptions): Promise<number>;
  readonly inputUsage: number;
  readonly inputQuota: number;
  onquotaoverflow: Handler;
  clone(options?: { signal?: AbortSignal }): Promise<LanguageModelSession>;
  destroy(): undefined;
}

/** The class itself, with its static members. */
export interface LanguageModelClass {
  readonly prototype: LanguageModelSession;
  create(options?: LanguageModelCreateOptions): Promise<LanguageModelSession>;
  availability(options?: LanguageModelCreateCoreOptions): Promise<Availability>;
  /** In extensions. */
  params?(): Promise<LanguageModelParams | null>;
}

/** Only this module makes sessions. */
const PRIVATE = Symbol("LanguageModel");

const NO_ENCODERS = "the model has no encoders for images and audio: load it with its projector";

/** A class `LanguageModel` whose sessions use the provider's model; with `params()`, `topK` and `temperature` in extensions alone. */
export function languageModelOf(provider: ModelProvider, hasRaw = isExtension()): LanguageModelClass {
  class LanguageModel extends EventTarget {
    readonly #session: Session;
    readonly #overflow = new HandlerAttribute<Event>(this, "contextoverflow");
    readonly #oldOverflow = new HandlerAttribute<Event>(this, "quotaoverflow");

    constructor(key: unknown, make: (onOverflow: () => void) => Session) {
      if (key !== PRIVATE) throw new TypeError("Illegal constructor");
      super();
      this.#session = make(() => {
        for (const name of ["contextoverflow", "quotaoverflow"]) this.dispatchEvent(new Event(name));
      });
    }

    static async create(options: LanguageModelCreateOptions = {}): Promise<LanguageModel> {
      const { core, initial, signal, monitor } = createOptions(options, hasRaw);
      signal?.throwIfAborted();
      if (isDenied()) throw domError("NotAllowedError", "the permissions policy does not allow language models");
      const target = newMonitor();
      monitor?.(target);
      const captured = capture(initial);
      captured.catch(() => {});
      const found = await availability(core);
      signal?.throwIfAborted();
      if (found === "unavailable") throw domError("NotSupportedError", "no model can do this here");
      if (found === "downloadable" && !hasActivation()) {
        throw domError(
          "NotAllowedError",
          "the model must be downloaded: create the session after a click or a key press",
        );
      }
      const reporter = new ProgressReporter(target);
      const end = () => reporter.end();
      signal?.addEventListener("abort", end);
      try {
        reporter.report(0);
        const loading = provider.load((fraction) => reporter.report(Math.min(fraction, 0.99999)), signal);
        const model = await untilAborted(loading, signal);
        if (!(await canEncode(core))) throw domError("NotSupportedError", NO_ENCODERS);
        const messages = (await captured).map(withoutPrefix);
        const tools = await measureTools(model, core.tools.map(toolOf));
        const tokens = (await measure(model, messages)) + tools;
        signal?.throwIfAborted();
        reporter.report(1);
        // A page may abort when it is told that everything is here.
        await untilAborted(nextTask(), signal);
        const { context: window } = model.info;
        if (tokens > window) throw quotaExceeded(tokens, window);
        const context = new Context(window, { messages, tokens });
        return made((onOverflow) => new Session(model, core, context, onOverflow, signal));
      } catch (error) {
        signal?.throwIfAborted();
        throw createError(error);
      } finally {
        end();
        signal?.removeEventListener("abort", end);
      }
    }

    static async availability(options: LanguageModelCreateCoreOptions = {}): Promise<Availability> {
      checkActive();
      const core = checkedOptions(coreOptions(dictionary(options, "options"), hasRaw));
      return isDenied() ? "unavailable" : availability(core);
    }

    static async params(): Promise<LanguageModelParams | null> {
      checkActive();
      return isDenied() || (await availability()) === "unavailable" ? null : params();
    }

    async prompt(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): Promise<PromptResult> {
      const session = this.#session;
      needs(arguments.length, "prompt");
      const converted = convertedRequest(input, options);
      const signal = session.signalOf(converted.signal);
      const request = requestOf(converted);
      session.check(request.messages);
      let text = "";
      const calls: Extract<Chunk, object>[] = [];
      await session.prompt(request, signal, (chunk) => {
        if (typeof chunk === "string") text += chunk;
        else calls.push(chunk);
      });
      if (!session.hasParts) return text;
      return text === "" && calls.length > 0 ? calls : [{ type: "text", value: text }, ...calls];
    }

    promptStreaming(
      input: LanguageModelPrompt,
      options: LanguageModelPromptOptions = {},
    ): ReadableStream<string | PromptPart> {
      const session = this.#session;
      needs(arguments.length, "promptStreaming");
      const converted = convertedRequest(input, options);
      const outer = session.signalOf(converted.signal);
      const request = requestOf(converted);
      const cancel = new AbortController();
      const partOf = (chunk: Chunk): string | PromptPart =>
        session.hasParts && typeof chunk === "string" ? { type: "text", value: chunk } : chunk;
      return new ReadableStream<string | PromptPart>({
        start(controller) {
          try {
            session.check(request.messages);
          } catch (error) {
            controller.error(error);
            return;
          }
          const signal = AbortSignal.any([outer, cancel.signal]);
          session
            .prompt(request, signal, (chunk) => controller.enqueue(partOf(chunk)))
            .then(
              () => {
                if (!cancel.signal.aborted) controller.close();
              },
              (error: unknown) => {
                if (!cancel.signal.aborted) controller.error(error);
              },
            );
        },
        cancel: () => cancel.abort(),
      });
    }

    async append(input: LanguageModelPrompt, options: { signal?: AbortSignal } = {}): Promise<undefined> {
      const session = this.#session;
      needs(arguments.length, "append");
      const messages = promptOf(input);
      const signal = session.signalOf(signalOf(dictionary(options, "options")));
      session.check(messages);
      await session.append({ messages }, signal);
      return undefined;
    }

    async measureContextUsage(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): Promise<number> {
      const session = this.#session;
      needs(arguments.length, "measureContextUsage");
      return measured(session, input, options);
    }

    get contextUsage(): number {
      return this.#session.context.usage;
    }

    get contextWindow(): number {
      return this.#session.context.window;
    }

    get samplingMode(): SamplingMode | null {
      return this.#session.options.samplingMode;
    }

    get oncontextoverflow(): Handler {
      return this.#overflow.value;
    }

    set oncontextoverflow(value: unknown) {
      this.#overflow.value = value;
    }

    async measureInputUsage(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): Promise<number> {
      const session = this.#session;
      needs(arguments.length, "measureInputUsage");
      return measured(session, input, options);
    }

    get inputUsage(): number {
      return this.#session.context.usage;
    }

    get inputQuota(): number {
      return this.#session.context.window;
    }

    get onquotaoverflow(): Handler {
      return this.#oldOverflow.value;
    }

    set onquotaoverflow(value: unknown) {
      this.#oldOverflow.value = value;
    }

    get topK(): number {
      return this.#session.options.raw?.topK ?? PARAMS.defaultTopK;
    }

    get temperature(): number {
      return this.#session.options.raw?.temperature ?? PARAMS.defaultTemperature;
    }

    async clone(options: { signal?: AbortSignal } = {}): Promise<LanguageModel> {
      const session = this.#session;
      const given = signalOf(dictionary(options, "options"));
      const signal = session.signalOf(given);
      const { model, options: core } = session;
      const context = session.context.copy();
      await untilAborted(nextTask(), signal);
      return made((onOverflow) => new Session(model, core, context, onOverflow, given));
    }

    destroy(): undefined {
      this.#session.destroy();
    }
  }

  const made = (make: (onOverflow: () => void) => Session) => new LanguageModel(PRIVATE, make);

  async function availability(core?: CoreOptions): Promise<Availability> {
    if (core && !isSupported(core)) return "unavailable";
    try {
      const found = await provider.availability();
      return core && !(await canEncode(core)) ? "unavailable" : found;
    } catch {
      throw domError("UnknownError", "it could not be found out whether a model is available");
    }
  }

  /** False where the page expects images or audio, and the model is known to have no encoders for them. */
  async function canEncode({ expectedInputs }: CoreOptions): Promise<boolean> {
    const isMedia = expectedInputs.some(({ type }) => type === "image" || type === "audio");
    return !isMedia || (await provider.hasEncoders?.()) !== false;
  }

  if (!hasRaw) {
    Reflect.deleteProperty(LanguageModel, "params");
    for (const name of ["topK", "temperature"]) Reflect.deleteProperty(LanguageModel.prototype, name);
  }
  return asInterface(LanguageModel, "LanguageModel") as unknown as LanguageModelClass;
}

/** Lets the page abort what would be over at once. */
const nextTask = () => new Promise<void>((resolve) => setTimeout(resolve));

function createOptions(options: unknown, hasRaw: boolean) {
  checkActive();
  const from = dictionary(options, "options");
  const converted = coreOptions(from, hasRaw);
  const { initialPrompts } = from;
  const initial: ConvertedMessage[] =
    initialPrompts === undefined ? [] : list(initialPrompts, "initialPrompts").map(messageOf);
  const { monitor } = from;
  if (monitor !== undefined && typeof monitor !== "function") throw new TypeError("monitor is not a function");
  const signal = signalOf(from);
  const core = checkedOptions(converted);
  validate(initial, { inputs: new Set(core.expectedInputs.map(({ type }) => type)), mayStart: true });
  return { core, initial, signal, monitor: monitor as LanguageModelCreateOptions["monitor"] };
}

/** The arguments of a prompt as Web IDL converts them, in its order. */
interface ConvertedRequest {
  messages: ConvertedMessage[];
  constraint?: object;
  omit: boolean;
  signal?: AbortSignal;
}

function convertedRequest(input: unknown, options: unknown): ConvertedRequest {
  const messages = promptOf(input);
  const from = dictionary(options, "options");
  const omit = Boolean(from["omitResponseConstraintInput"]);
  const { responseConstraint: constraint } = from;
  if (constraint !== undefined && (typeof constraint !== "object" || constraint === null)) {
    throw new TypeError("responseConstraint is neither an object nor a RegExp");
  }
  const signal = signalOf(from);
  return { messages, omit, ...(constraint ? { constraint } : {}), ...(signal ? { signal } : {}) };
}

/** A request that was converted; refuses what is wrong with it. */
function requestOf({ messages, constraint, omit }: ConvertedRequest): Request {
  if (constraint === undefined && omit) throw new TypeError("omitResponseConstraintInput needs a responseConstraint");
  return { messages, ...(constraint === undefined ? {} : { format: formatOf(constraint) }) };
}

function measured(session: Session, input: unknown, options: unknown): Promise<number> {
  const converted = convertedRequest(input, options);
  const signal = session.signalOf(converted.signal);
  const { messages } = requestOf(converted);
  session.check(messages, true);
  return session.measure(messages, signal);
}

function formatOf(constraint: object): NonNullable<Request["format"]> {
  if (constraint instanceof RegExp) return constraint;
  try {
    return JSON.parse(JSON.stringify(constraint)) as Record<string, unknown>;
  } catch {
    throw domError("NotSupportedError", "responseConstraint cannot be written as JSON");
  }
}

function needs(given: number, method: string): void {
  if (given === 0) throw new TypeError(`${method} needs an argument`);
}
