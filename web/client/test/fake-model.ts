// A model that says what a test tells it to, and keeps what it was asked.

import type { ChatModel } from "../src/chat-model.js";
import type { EmbedOptions, GenerateEvent, GenerateOptions, Message, Usage } from "../src/types.js";

export const USAGE: Usage = {
  promptTokens: 5,
  cachedTokens: 2,
  answerTokens: 3,
  timeToFirstToken: 1,
  prefillTokensPerSecond: 10,
  decodeTokensPerSecond: 10,
  seed: 1,
  contextUsed: 8,
  context: 100,
};

type Said = Exclude<GenerateEvent, { type: "done" }>;
type Script = (messages: Message[], options: GenerateOptions, call: number) => (Said | string | Error)[];

export interface FakeModel extends ChatModel {
  asked: { messages: Message[]; options: GenerateOptions }[];
  /** Replies that are under way. */
  running: number;
}

export interface FakeOptions {
  context?: number;
  /** Milliseconds between two events. */
  wait?: number;
  finish?: "stop" | "length";
}

/** Replies with the events of `script`; texts stand for text events, errors are thrown. One word is one token. */
export function fakeModel(script: Script = () => ["Hello", " there"], options: FakeOptions = {}): FakeModel {
  const { context = 100, wait = 0, finish = "stop" } = options;
  const model: FakeModel = {
    info: { name: "fake:latest", kind: "decoder", context },
    asked: [],
    running: 0,
    chat: (messages, given = {}) => reply(messages, given),
    complete: (text, given = {}) => reply([{ role: "user", content: text }], given),
    async embed(input: string | string[], { dimensions = 2 }: EmbedOptions = {}) {
      const texts = typeof input === "string" ? [input] : input;
      const vectors = texts.map((text) => new Float32Array([text.length, 1, 2, 3].slice(0, dimensions)));
      return { vectors, tokens: texts.length, cut: 0 };
    },
    tokenize: async (text) => (text.match(/\S+/gu) ?? []).map((_, index) => index),
  };
  async function* reply(messages: Message[], given: GenerateOptions): AsyncGenerator<GenerateEvent, void, void> {
    model.asked.push({ messages, options: given });
    model.running += 1;
    try {
      for (const event of script(messages, given, model.asked.length - 1)) {
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        if (given.signal?.aborted) {
          yield { type: "done", finish: "cancelled", usage: USAGE };
          return;
        }
        if (event instanceof Error) throw event;
        yield typeof event === "string" ? { type: "text", text: event } : event;
      }
      yield { type: "done", finish, usage: USAGE };
    } finally {
      model.running -= 1;
    }
  }
  return model;
}

/** Everything a stream says. */
export async function drained<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of stream) all.push(one);
  return all;
}
