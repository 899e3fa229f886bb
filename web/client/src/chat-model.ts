// What the Prompt API, the `fetch` functions and the AI SDK provider need of a model: the one in this tab has it, and so has a remote one.

import type { EmbedOptions, Embedded, GenerateEvent, GenerateOptions, Message, ModelInfo } from "./types.js";

/** A model that chats, or makes embeddings. */
export interface ChatModel {
  readonly info: Pick<ModelInfo, "name" | "kind" | "context"> & Partial<ModelInfo>;
  chat(messages: Message[], options?: GenerateOptions): AsyncIterableIterator<GenerateEvent>;
  complete(text: string, options?: GenerateOptions): AsyncIterableIterator<GenerateEvent>;
  embed(input: string | string[], options?: EmbedOptions): Promise<Embedded>;
  tokenize(text: string): Promise<ArrayLike<number>>;
}
