// What a dialect of a server must be able to do, and what both have in common.

import type { AnswerRequest, EmbedRequest, EngineMessage, PlainVectors } from "../protocol.js";
import type { GenerateEvent, ModelInfo, Usage } from "../types.js";

/** An image (PNG) or audio clip (WAV) as base64. */
export interface EncodedFile {
  kind: "image" | "audio";
  data: string;
}

/** A request whose media are files again: one list for each part that shows something, as a video has many images. */
export interface RemoteRequest extends AnswerRequest {
  files: EncodedFile[][];
}

/** Text to tokenize: whether control tokens are recognised in it, and whether the beginning of a text is put before it. */
export interface TokenizeRequest {
  text: string;
  special: boolean;
  bos: boolean;
}

export interface Dialect {
  readonly name: "ollama" | "openai";
  models(signal?: AbortSignal): Promise<string[]>;
  info(model: string, signal?: AbortSignal): Promise<Partial<ModelInfo>>;
  answer(model: string, request: RemoteRequest, signal?: AbortSignal): AsyncIterable<GenerateEvent>;
  embed(model: string, request: EmbedRequest, signal?: AbortSignal): Promise<PlainVectors>;
  tokenize(model: string, request: TokenizeRequest): Promise<number[]>;
}

/** The parts of a message with the files they show, taken in order from those that are left. */
export function shown(message: EngineMessage, files: EncodedFile[][]): ({ text: string } | EncodedFile)[] {
  if (typeof message.content === "string") return message.content === "" ? [] : [{ text: message.content }];
  return message.content.flatMap<{ text: string } | EncodedFile>((part) =>
    part.type === "text" ? [{ text: part.text }] : (files.shift() ?? []),
  );
}

export function vectorsOf(vectors: unknown, tokens: unknown): PlainVectors {
  const rows = Array.isArray(vectors) ? (vectors as number[][]) : [];
  const each = rows[0]?.length ?? 0;
  const values = new Float32Array(rows.length * each);
  for (const [index, row] of rows.entries()) values.set(row, index * each);
  return { values, count: rows.length, tokens: typeof tokens === "number" ? tokens : 0, cut: 0 };
}

/** Figures of a reply; what a server does not tell is zero. */
export function usageOf(given: Partial<Usage>): Usage {
  const { promptTokens = 0, answerTokens = 0 } = given;
  return {
    promptTokens,
    cachedTokens: 0,
    answerTokens,
    timeToFirstToken: 0,
    prefillTokensPerSecond: 0,
    decodeTokensPerSecond: 0,
    seed: 0,
    contextUsed: promptTokens + answerTokens,
    context: 0,
    ...given,
  };
}
