// A model, as pages see it.

import { Adapters } from "./adapters.js";
import type { ModelApi } from "./api.js";
import { constraintOf, remoteConstraint } from "./constraint.js";
import type { Embeddings } from "./embeddings.js";
import { RullamaError, unpack } from "./errors.js";
import { type Medium, EncodedMedia, mediaOf } from "./encoded-media.js";
import { untilFirstCall } from "./one-call.js";
import { OpenAi } from "./openai.js";
import type { AnswerRequest, EmbedRequest, Transport } from "./protocol.js";
import { chatRequest, textRequest } from "./sampling.js";
import { Session } from "./session.js";
import { answerEvents } from "./stream.js";
import { hasExecutables, withTools } from "./tool-loop.js";
import { TrainingSession, plainTraining, textOf } from "./training.js";
import type { TrainingData, TrainingOptions, TrainingReport } from "./training-types.js";
import type {
  BenchResult,
  EmbedOptions,
  Embedded,
  GenerateEvent,
  GenerateOptions,
  MemoryReport,
  Message,
  ModelInfo,
  ImageTokens,
  SessionOptions,
  EncoderBench,
} from "./types.js";

export class Model implements ModelApi {
  readonly verified: Promise<void>;
  readonly lost: Promise<Error>;
  /** The same model in the shape of OpenAI's interface. */
  readonly openai: OpenAi;
  /** Vectors in OpenAI's shape, of an EmbeddingGemma. */
  readonly embeddings: Embeddings;
  /** Adapters that requests may name. */
  readonly adapters: Adapters;
  private readonly encodedMedia: EncodedMedia;

  constructor(
    private readonly transport: Transport,
    private readonly id: number,
    readonly info: ModelInfo,
  ) {
    this.verified = transport.call("verified", { model: id });
    // Only callers that await it get the failure.
    this.verified.catch(() => {});
    // When the engine itself is closed there is nothing to tell.
    this.lost = transport.call("lost", { model: id }).then(unpack, () => new Promise<never>(() => {}));
    this.openai = new OpenAi(this);
    this.embeddings = this.openai.embeddings;
    this.adapters = new Adapters(transport, id);
    this.encodedMedia = new EncodedMedia(transport, id);
  }

  async session(options: SessionOptions = {}): Promise<Session> {
    const session = await this.transport.call("session", { model: this.id, options });
    const at = { model: this.id, session };
    return new Session(this.transport, at, this.encodedMedia, this.info.system, this.constrain);
  }

  chat(messages: Message[], options: GenerateOptions = {}): AsyncIterableIterator<GenerateEvent> {
    if (hasExecutables(options)) return withTools((all, more) => this.reply(all, more), messages, options);
    return this.reply(messages, options);
  }

  /** Servers enforce constraints by themselves. */
  private get constrain(): typeof constraintOf {
    return this.info.remote ? remoteConstraint : constraintOf;
  }

  private reply(messages: Message[], options: GenerateOptions): AsyncIterableIterator<GenerateEvent> {
    const request = chatRequest(messages, options, this.info.system, this.constrain);
    const reply = (signal?: AbortSignal) => this.answer(request, signal, () => mediaOf(messages));
    return options.parallelToolCalls === false ? untilFirstCall(reply, options.signal) : reply(options.signal);
  }

  complete(text: string, options: GenerateOptions = {}): AsyncIterableIterator<GenerateEvent> {
    return this.answer(textRequest(text, options, this.constrain), options.signal);
  }

  /** @internal An answer to a request in the engine's own words. */
  answer(
    request: AnswerRequest,
    signal?: AbortSignal,
    media: () => Medium[] = () => [],
  ): AsyncIterableIterator<GenerateEvent> {
    const filled = (onEvent: (event: GenerateEvent) => void) =>
      this.encodedMedia.fill(request, media(), signal, onEvent);
    return answerEvents(
      this.transport,
      async (onEvent) => ({ model: this.id, request: await filled(onEvent) }),
      signal,
    );
  }

  async embed(input: string | string[], options: EmbedOptions = {}): Promise<Embedded> {
    const { signal, purpose, dimensions } = options;
    const texts = typeof input === "string" ? [input] : input;
    if (!Array.isArray(texts) || texts.some((text) => typeof text !== "string")) {
      throw new RullamaError("bad_options", "input must be a text or a list of texts");
    }
    return this.vectors({ texts, purpose, dimensions }, signal);
  }

  /** @internal The same for texts that are token ids already. For tests and tools. */
  embedIds(ids: number[][], options: Pick<EmbedOptions, "dimensions"> = {}): Promise<Embedded> {
    return this.vectors({ ids, ...options });
  }

  private async vectors(request: EmbedRequest, signal?: AbortSignal): Promise<Embedded> {
    const params = { model: this.id, request };
    const { values, count, tokens, cut } = await this.transport.call("embed", params, signal ? { signal } : {});
    const each = count === 0 ? 0 : values.length / count;
    const vectors = Array.from({ length: count }, (_, i) => values.slice(i * each, (i + 1) * each));
    return { vectors, tokens, cut };
  }

  tokenize(text: string, options: { special?: boolean; bos?: boolean } = {}): Promise<Uint32Array> {
    const { special = false, bos = false } = options;
    return this.transport.call("tokenize", { model: this.id, text, special, bos });
  }

  detokenize(ids: Iterable<number>): Promise<string> {
    return this.transport.call("detokenize", { model: this.id, ids: Uint32Array.from(ids) });
  }

  memory(): Promise<MemoryReport> {
    return this.transport.call("memory", { model: this.id });
  }

  bench(
    options: { prompt?: number; answer?: number; depth?: number; signal?: AbortSignal } = {},
  ): Promise<BenchResult> {
    const { prompt = 512, answer = 128, depth = 0, signal } = options;
    return this.transport.call("bench", { model: this.id, prompt, answer, depth }, signal ? { signal } : {});
  }

  benchEncoders(
    options: { imageTokens?: ImageTokens | 0; seconds?: number; repeat?: number; signal?: AbortSignal } = {},
  ): Promise<EncoderBench> {
    const { imageTokens = 280, seconds = 30, repeat = 10, signal } = options;
    const params = { model: this.id, imageTokens, seconds, repeat };
    return this.transport.call("benchEncoders", params, signal ? { signal } : {});
  }

  freeEncoders(): Promise<void> {
    return this.transport.call("freeEncoders", { model: this.id });
  }

  async inspectTraining(data: TrainingData, options: TrainingOptions = {}): Promise<TrainingReport> {
    const text = await textOf(data);
    return this.transport.call("inspectTraining", { model: this.id, data: text, options: plainTraining(options) });
  }

  async train(data: TrainingData, options: TrainingOptions = {}): Promise<TrainingSession> {
    const begin = { data: await textOf(data), options: plainTraining(options) };
    return TrainingSession.begin(this.transport, { model: this.id, id: crypto.randomUUID(), begin });
  }

  continueTraining(id: string): Promise<TrainingSession> {
    return TrainingSession.begin(this.transport, { model: this.id, id });
  }

  free(): Promise<void> {
    return this.transport.call("freeModel", { model: this.id });
  }
}
