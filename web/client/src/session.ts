// A conversation, as pages see it.

import type { SessionApi } from "./api.js";
import { constraintOf } from "./constraint.js";
import { type EncodedMedia, mediaOf } from "./encoded-media.js";
import { untilFirstCall } from "./one-call.js";
import type { AnswerRequest, Transport } from "./protocol.js";
import { chatRequest, idsRequest, textRequest } from "./sampling.js";
import { answerEvents } from "./stream.js";
import { hasExecutables, withTools } from "./tool-loop.js";
import type { GenerateEvent, GenerateOptions, Message } from "./types.js";

export class Session implements SessionApi {
  constructor(
    private readonly transport: Transport,
    private readonly at: { model: number; session: number },
    private readonly encodedMedia: EncodedMedia,
    private readonly system?: string,
    private readonly constrain: typeof constraintOf = constraintOf,
  ) {}

  chat(messages: Message[], options: GenerateOptions = {}): AsyncIterableIterator<GenerateEvent> {
    if (hasExecutables(options)) return withTools((all, more) => this.reply(all, more), messages, options);
    return this.reply(messages, options);
  }

  private reply(messages: Message[], options: GenerateOptions): AsyncIterableIterator<GenerateEvent> {
    const request = chatRequest(messages, options, this.system, this.constrain);
    const reply = (signal?: AbortSignal) => this.answer(request, signal, messages);
    return options.parallelToolCalls === false ? untilFirstCall(reply, options.signal) : reply(options.signal);
  }

  complete(text: string, options: GenerateOptions = {}): AsyncIterableIterator<GenerateEvent> {
    return this.answer(textRequest(text, options, this.constrain), options.signal);
  }

  completeIds(ids: Iterable<number>, options: GenerateOptions = {}): AsyncIterableIterator<GenerateEvent> {
    return this.answer(idsRequest(ids, options), options.signal);
  }

  tokens(): Promise<Uint32Array> {
    return this.transport.call("tokens", this.at);
  }

  save(): Promise<Uint8Array> {
    return this.transport.call("save", this.at);
  }

  restore(saved: Uint8Array): Promise<void> {
    return this.transport.call("restore", { ...this.at, saved });
  }

  free(): Promise<void> {
    return this.transport.call("freeSession", this.at);
  }

  private answer(
    request: AnswerRequest,
    signal: AbortSignal | undefined,
    messages: Message[] = [],
  ): AsyncIterableIterator<GenerateEvent> {
    const filled = (onEvent: (event: GenerateEvent) => void) =>
      this.encodedMedia.fill(request, mediaOf(messages), signal, onEvent);
    return answerEvents(this.transport, async (onEvent) => ({ ...this.at, request: await filled(onEvent) }), signal);
  }
}
