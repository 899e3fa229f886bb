// An engine in the shape of the `ollama` package: models are loaded by name when they are asked for.

import { type ResponseFormat, constraintOf } from "./constraint.js";
import type { Engine } from "./engine.js";
import { RullamaError } from "./errors.js";
import { fromBase64 } from "./media-bytes.js";
import type { Medium } from "./encoded-media.js";
import type { Model } from "./model.js";
import type {
  OllamaChatRequest,
  OllamaChatResponse,
  OllamaEmbedRequest,
  OllamaEmbedResponse,
  OllamaFigures,
  OllamaGenerateRequest,
  OllamaGenerateResponse,
  OllamaMessage,
  OllamaModelDetails,
  OllamaModelResponse,
  OllamaShowResponse,
  OllamaStream,
} from "./ollama-types.js";
import type { AnswerRequest, EngineMessage } from "./protocol.js";
import { OLLAMA_REFUSED, RAW_REFUSED, refuse } from "./refuse.js";
import { adapterWords } from "./sampling.js";
import { budgetWords, thinkAt } from "./think.js";
import type { FitReport, GenerateEvent, LoadOptions, Usage } from "./types.js";

const NS_PER_MS = 1e6;

/** A model that is loaded or being loaded, and the calls that still need it. */
interface Loaded {
  name: string;
  model: Promise<Model>;
  users: number;
  /** Called when the last user is gone. */
  idle: () => void;
}

export class Ollama {
  /** The model of the last call; another name frees it. */
  private current: Loaded | undefined;
  /** Settles when the model that was unloaded last is gone. */
  private leaving: Promise<void> = Promise.resolve();

  constructor(
    private readonly engine: Engine,
    private readonly loading: LoadOptions = {},
  ) {}

  chat(request: OllamaChatRequest & { stream: true }): Promise<OllamaStream<OllamaChatResponse>>;
  chat(request: OllamaChatRequest & { stream?: false }): Promise<OllamaChatResponse>;
  async chat(request: OllamaChatRequest): Promise<OllamaChatResponse | OllamaStream<OllamaChatResponse>> {
    refuseUnknown(request);
    const given = request.messages ?? [];
    const parts = (controller: AbortController) =>
      this.parts(
        request.model,
        controller,
        () => given.flatMap(imagesOf),
        ({ info }) => {
          const messages = withSystem(given, info.system).map(engineMessage);
          return answerRequest({ messages, ...(request.tools ? { tools: request.tools } : {}) }, request);
        },
      );
    const response = ({ text, thinking, calls, figures }: Part): OllamaChatResponse => ({
      model: request.model,
      created_at: new Date(),
      message: {
        role: "assistant",
        content: text,
        ...(thinking === "" ? {} : { thinking }),
        ...(calls.length === 0 ? {} : { tool_calls: calls }),
      },
      ...figures,
    });
    return request.stream ? stream(parts, response) : response(await merged(parts(new AbortController())));
  }

  generate(request: OllamaGenerateRequest & { stream: true }): Promise<OllamaStream<OllamaGenerateResponse>>;
  generate(request: OllamaGenerateRequest & { stream?: false }): Promise<OllamaGenerateResponse>;
  async generate(
    request: OllamaGenerateRequest,
  ): Promise<OllamaGenerateResponse | OllamaStream<OllamaGenerateResponse>> {
    const { prompt, system, raw, images } = request;
    refuseUnknown(request);
    if (raw) refuse({ images, system }, RAW_REFUSED);
    const question: OllamaMessage = { role: "user", content: prompt, ...(images ? { images } : {}) };
    const parts = (controller: AbortController) =>
      this.parts(
        request.model,
        controller,
        () => imagesOf(question),
        ({ info }) => {
          if (raw) return answerRequest({ text: prompt }, request);
          const own: OllamaMessage[] = system === undefined ? [] : [{ role: "system", content: system }];
          const messages = withSystem([...own, question], info.system).map(engineMessage);
          return answerRequest({ messages }, request);
        },
      );
    const response = ({ text, thinking, figures }: Part): OllamaGenerateResponse => ({
      model: request.model,
      created_at: new Date(),
      response: text,
      ...(thinking === "" ? {} : { thinking }),
      ...figures,
    });
    return request.stream ? stream(parts, response) : response(await merged(parts(new AbortController())));
  }

  /** Vectors of texts, of a model that makes them. */
  async embed(request: OllamaEmbedRequest): Promise<OllamaEmbedResponse> {
    const { model: name, input, truncate = true, dimensions } = request;
    const start = performance.now();
    const { model, release } = await this.model(name);
    const loadMs = performance.now() - start;
    const made = await model.embed(input, dimensions === undefined ? {} : { dimensions }).finally(release);
    if (!truncate && made.cut > 0) {
      const { context } = model.info;
      throw new RullamaError(
        "context_full",
        `${made.cut} of the texts are longer than the ${context} tokens of ${name}`,
      );
    }
    return {
      model: name,
      embeddings: made.vectors.map((vector) => [...vector]),
      total_duration: Math.round((performance.now() - start) * NS_PER_MS),
      load_duration: Math.round(loadMs * NS_PER_MS),
      prompt_eval_count: made.tokens,
    };
  }

  /** Models that the host serves and those in this browser's storage. */
  async list(): Promise<{ models: OllamaModelResponse[] }> {
    const [served, stored] = await Promise.all([this.engine.served().catch(() => []), this.engine.storage()]);
    const models = new Map<string, OllamaModelResponse>();
    for (const { name, size, modified, layers } of served) {
      const digest = layers.find(({ kind }) => kind === "model")?.digest ?? "";
      models.set(name, entry(name, size, new Date(modified ?? 0), digest));
    }
    for (const { names, source, id, bytes, added, complete } of stored.models) {
      // What came from an address is loaded by it: its file name is no name that a host vouched for.
      const [name = source] = names;
      if (complete && !models.has(name)) models.set(name, entry(name, bytes, new Date(added), id));
    }
    return { models: [...models.values()] };
  }

  async show({ model }: { model: string }): Promise<OllamaShowResponse> {
    const { info } = await this.engine.inspect(model, this.loading);
    return {
      license: "",
      modelfile: "",
      parameters: parameterLines(info.defaults),
      template: "",
      system: info.system ?? "",
      details: detailsOf(info),
      model_info: {
        "general.architecture": info.architecture,
        "general.parameter_count": info.parameters,
        [`${info.architecture}.context_length`]: info.trainedContext,
        [`${info.architecture}.block_count`]: info.layers,
        [`${info.architecture}.vocab_size`]: info.vocabulary,
      },
      capabilities: capabilities(info),
    };
  }

  /** Frees the model that is loaded, if one is, after the calls that began with it. */
  async unload(): Promise<void> {
    const { current } = this;
    this.current = undefined;
    this.leaving = freed(current);
    await this.leaving;
  }

  /**
   * The model of this name, and a way to say that it is no longer needed. Calls that come together share one load, and a model is freed
   * for another only when nobody needs it any more.
   */
  private async model(name: string): Promise<{ model: Model; release: () => void }> {
    if (this.current?.name !== name) this.current = this.load(name, this.current);
    const loaded = this.current;
    loaded.users += 1;
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      loaded.users -= 1;
      if (loaded.users === 0) loaded.idle();
    };
    try {
      return { model: await loaded.model, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Begins to load a model; what was there before goes first, as both may not fit. */
  private load(name: string, before: Loaded | undefined): Loaded {
    const model = Promise.all([this.leaving, freed(before)]).then(() => this.engine.load(name, this.loading));
    const loaded: Loaded = { name, model, users: 0, idle: () => {} };
    // A load that failed is tried again next time, and so is a model whose device is lost.
    const forget = () => {
      if (this.current === loaded) this.current = undefined;
    };
    model.then(({ lost }) => void lost.then(forget), forget);
    return loaded;
  }

  private async *parts(
    name: string,
    controller: AbortController,
    media: () => Medium[],
    request: (model: Model) => AnswerRequest,
  ): AsyncGenerator<Part, void, void> {
    const start = performance.now();
    const { model, release } = await this.model(name);
    const loadMs = performance.now() - start;
    try {
      for await (const event of model.answer(request(model), controller.signal, media)) {
        // From here on the answer is in the model's own queue, and freeing waits for it.
        release();
        const part = partOf(event, loadMs);
        if (part) yield part;
      }
    } finally {
      release();
    }
  }
}

/** Frees a model when nobody needs it any more. */
async function freed(loaded: Loaded | undefined): Promise<void> {
  if (!loaded) return;
  if (loaded.users > 0) await new Promise<void>((resolve) => (loaded.idle = resolve));
  const model = await loaded.model.catch(() => undefined);
  await model?.free();
}

/** A piece of an answer. */
interface Part {
  text: string;
  thinking: string;
  calls: { function: { name: string; arguments: Record<string, unknown> } }[];
  figures: OllamaFigures;
}

const NO_FIGURES: OllamaFigures = {
  done: false,
  done_reason: "",
  total_duration: 0,
  load_duration: 0,
  prompt_eval_count: 0,
  prompt_eval_duration: 0,
  eval_count: 0,
  eval_duration: 0,
};
const EMPTY: Part = { text: "", thinking: "", calls: [], figures: NO_FIGURES };

function partOf(event: GenerateEvent, loadMs: number): Part | undefined {
  switch (event.type) {
    case "text":
      return { ...EMPTY, text: event.text };
    case "bad_call":
      return { ...EMPTY, text: event.raw };
    case "thinking":
      return { ...EMPTY, thinking: event.text };
    case "tool_call":
      return { ...EMPTY, calls: [{ function: event.call }] };
    case "done":
      return {
        ...EMPTY,
        figures: figuresOf(event.usage, event.finish === "context" ? "length" : event.finish, loadMs),
      };
    default:
      return undefined;
  }
}

function figuresOf(usage: Usage, reason: string, loadMs: number): OllamaFigures {
  const { decodeTokensPerSecond: rate, answerTokens, timeToFirstToken } = usage;
  const evalMs = rate > 0 ? ((answerTokens - 1) * 1000) / rate : 0;
  const ns = (ms: number) => Math.round(ms * NS_PER_MS);
  return {
    done: true,
    done_reason: reason,
    total_duration: ns(loadMs + timeToFirstToken + evalMs),
    load_duration: ns(loadMs),
    prompt_eval_count: usage.promptTokens,
    prompt_eval_duration: ns(timeToFirstToken),
    eval_count: answerTokens,
    eval_duration: ns(evalMs),
  };
}

/** A whole answer from its parts. */
async function merged(parts: AsyncIterable<Part>): Promise<Part> {
  let all = EMPTY;
  for await (const { text, thinking, calls, figures } of parts) {
    all = { text: all.text + text, thinking: all.thinking + thinking, calls: [...all.calls, ...calls], figures };
  }
  return all;
}

function stream<T>(
  parts: (controller: AbortController) => AsyncIterable<Part>,
  response: (part: Part) => T,
): OllamaStream<T> {
  const controller = new AbortController();
  return {
    abort: () => controller.abort(),
    async *[Symbol.asyncIterator]() {
      for await (const part of parts(controller)) yield response(part);
    },
  };
}

function refuseUnknown(request: OllamaChatRequest | OllamaGenerateRequest): void {
  refuse(request, { ...OLLAMA_REFUSED, logprobs: "use a model's chat" });
  constraintOf(formatOf(request));
}

/** Ollama's `format`: `json`, a schema, or nothing. */
function formatOf({ format }: Pick<OllamaGenerateRequest, "format">): { format?: ResponseFormat } {
  if (format === undefined || format === null || format === "") return {};
  if (format === "json" || typeof format === "object") return { format };
  throw new RullamaError("bad_options", "format must be json or a JSON schema");
}

function answerRequest(
  request: Omit<AnswerRequest, "options">,
  { think, options, adapters, format }: Pick<OllamaGenerateRequest, "think" | "options" | "adapters" | "format">,
): AnswerRequest {
  const level = thinkAt(think, "think");
  return {
    ...request,
    ...(level.think === undefined ? {} : { think: level.think }),
    ...budgetWords(level),
    ...constraintOf(formatOf({ format })),
    ...adapterWords(adapters),
    options: options ?? {},
  };
}

/** With the model's own system prompt, unless there is one; an empty one clears it. */
function withSystem(messages: OllamaMessage[], system: string | undefined): OllamaMessage[] {
  if (messages.some(({ role }) => role === "system")) {
    return messages.filter(({ role, content }) => role !== "system" || content !== "");
  }
  if (system === undefined) return messages;
  return [{ role: "system", content: system }, ...messages];
}

function engineMessage({ role, content, thinking, images, tool_calls, tool_name }: OllamaMessage): EngineMessage {
  // As Ollama does: images stand before the text.
  const parts = (images ?? []).map(() => ({ type: "image" as const }));
  return {
    role,
    content: parts.length === 0 ? content : [...parts, { type: "text", text: content }],
    ...(thinking === undefined ? {} : { thinking }),
    ...(tool_calls === undefined ? {} : { tool_calls: tool_calls.map(({ function: call }) => call) }),
    ...(tool_name === undefined ? {} : { tool_name }),
  };
}

/** Ollama's images are files: bytes, or base64 of them. */
function imagesOf({ images = [] }: OllamaMessage): Medium[] {
  return images.map((image) => {
    const source = typeof image === "string" ? fromBase64(image) : image;
    return { kind: "image", source, tokens: 280 };
  });
}

function entry(name: string, size: number, modified: Date, digest: string): OllamaModelResponse {
  const details = {
    parent_model: "",
    format: "gguf",
    family: "gemma4",
    families: ["gemma4"],
    parameter_size: "",
    quantization_level: "",
  };
  return { name, model: name, modified_at: modified, size, digest: digest.replace(/^sha256[:-]/, ""), details };
}

function detailsOf(info: FitReport["info"]): OllamaModelDetails {
  return {
    parent_model: "",
    format: "gguf",
    family: info.architecture,
    families: [info.architecture],
    parameter_size: `${(info.parameters / 1e9).toFixed(1)}B`,
    quantization_level: info.quantization,
  };
}

function capabilities({ kind, thinking, capabilities: can }: FitReport["info"]): string[] {
  if (kind === "embedding") return ["embedding"];
  if (kind === "drafter") return [];
  // Tools were not tried with diffusion models.
  const tools = kind === "decoder" && (can?.includes("tools") ?? true);
  const vision = can?.includes("images") ?? false;
  return ["completion", ...(vision ? ["vision"] : []), ...(tools ? ["tools"] : []), ...(thinking ? ["thinking"] : [])];
}

function parameterLines(defaults: FitReport["info"]["defaults"]): string {
  const words = {
    temperature: "temperature",
    topK: "top_k",
    topP: "top_p",
    minP: "min_p",
    repeatPenalty: "repeat_penalty",
  } as const;
  const lines = Object.entries(words).map(([key, word]) => [word, defaults[key as keyof typeof words]] as const);
  return lines.flatMap(([word, value]) => (value === undefined ? [] : [`${word.padEnd(30)} ${value}`])).join("\n");
}
