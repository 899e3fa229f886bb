// What a session holds, in messages and in tokens.

import type { ChatModel } from "../chat-model.js";
import type { ContentPart, Message, Tool } from "../types.js";
import { quotaExceeded } from "./errors.js";

/** Control tokens of a turn: its opening, the role, two line breaks and its end. */
const TURN_TOKENS = 5;
/** An image with its two markers. */
const IMAGE_TOKENS = 282;
const AUDIO_TOKENS_PER_SECOND = 25;
const AUDIO_MARKERS = 2;

/** Tokens that messages take, the same wherever they stand. */
export async function measure(model: ChatModel, messages: readonly Message[]): Promise<number> {
  let tokens = 0;
  for (const { content, toolCalls } of messages) {
    const parts: ContentPart[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
    tokens += TURN_TOKENS;
    for (const part of parts) tokens += await partTokens(model, part);
    if (toolCalls?.length) tokens += await textTokens(model, JSON.stringify(toolCalls));
  }
  return tokens;
}

/** Some servers do not tokenize: then four characters count as a token. */
async function textTokens(model: ChatModel, text: string): Promise<number> {
  if (text === "") return 0;
  return model.tokenize(text).then(
    ({ length }) => length,
    () => Math.ceil(text.length / 4),
  );
}

async function partTokens(model: ChatModel, part: ContentPart): Promise<number> {
  if (part.type === "text") return textTokens(model, part.text);
  if (part.type !== "audio") return IMAGE_TOKENS;
  const {
    samples,
    channels = 1,
    sampleRate,
  } = part.audio as {
    samples: Float32Array;
    channels?: number;
    sampleRate: number;
  };
  return Math.ceil((samples.length / channels / sampleRate) * AUDIO_TOKENS_PER_SECOND) + AUDIO_MARKERS;
}

export async function measureTools(model: ChatModel, tools: readonly Tool[]): Promise<number> {
  return tools.length === 0 ? 0 : textTokens(model, JSON.stringify(tools));
}

/** A prompt with the reply to it, or what was appended: forgotten together. */
export interface Exchange {
  messages: Message[];
  tokens: number;
}

/** The messages of a session. Initial prompts stay; the oldest exchanges make room for new ones. */
export class Context {
  constructor(
    readonly window: number,
    private readonly initial: Exchange,
    private exchanges: Exchange[] = [],
  ) {}

  get usage(): number {
    return this.exchanges.reduce((sum, { tokens }) => sum + tokens, this.initial.tokens);
  }

  get isEmpty(): boolean {
    return this.initial.messages.length === 0 && this.exchanges.length === 0;
  }

  get messages(): Message[] {
    return [...this.initial.messages, ...this.exchanges.flatMap(({ messages }) => messages)];
  }

  /** Forgets the oldest exchanges until so many more tokens fit, and a reply of `reply` tokens where it can; true where it did. */
  makeRoom(tokens: number, reply = 0): boolean {
    if (this.initial.tokens + tokens > this.window) throw quotaExceeded(this.initial.tokens + tokens, this.window);
    const before = this.exchanges.length;
    while (this.exchanges.length > 0 && this.usage + tokens + reply > this.window) this.exchanges.shift();
    return this.exchanges.length < before;
  }

  add(exchange: Exchange): void {
    this.exchanges.push(exchange);
  }

  copy(): Context {
    return new Context(this.window, this.initial, [...this.exchanges]);
  }
}
