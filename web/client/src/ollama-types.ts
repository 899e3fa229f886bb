// Shapes of the `ollama` package, as far as they are served here.

import type { AdapterChoice } from "./training-types.js";
import type { Tool } from "./types.js";

export interface OllamaToolCall {
  function: { name: string; arguments: Record<string, unknown> };
}

export interface OllamaMessage {
  role: string;
  content: string;
  thinking?: string;
  /** Files: bytes, or base64 of them. */
  images?: (Uint8Array<ArrayBuffer> | string)[];
  tool_calls?: OllamaToolCall[];
  tool_name?: string;
}

export interface OllamaChatRequest {
  model: string;
  messages?: OllamaMessage[];
  stream?: boolean;
  tools?: Tool[];
  think?: boolean | "high" | "medium" | "low";
  /** In Ollama's words: temperature, top_k, num_predict, … */
  options?: Record<string, unknown>;
  /** What the reply must look like; see `constraint.ts`. */
  format?: "" | "json" | Record<string, unknown> | null;
  /** Adapters that were added to the model; Ollama has no word for it. */
  adapters?: AdapterChoice[];
}

export interface OllamaGenerateRequest {
  model: string;
  prompt: string;
  /** In place of the model's own; an empty one clears it. */
  system?: string;
  /** Continue the prompt as it is, without the model's template. */
  raw?: boolean;
  stream?: boolean;
  think?: boolean | "high" | "medium" | "low";
  /** Files: bytes, or base64 of them. */
  images?: (Uint8Array<ArrayBuffer> | string)[];
  options?: Record<string, unknown>;
  /** What the reply must look like; see `constraint.ts`. */
  format?: "" | "json" | Record<string, unknown> | null;
  /** Adapters that were added to the model; Ollama has no word for it. */
  adapters?: AdapterChoice[];
}

/** Figures of an answer; durations are nanoseconds. They come with `done`. */
export interface OllamaFigures {
  done: boolean;
  done_reason: string;
  total_duration: number;
  load_duration: number;
  prompt_eval_count: number;
  prompt_eval_duration: number;
  eval_count: number;
  eval_duration: number;
}

export interface OllamaChatResponse extends OllamaFigures {
  model: string;
  created_at: Date;
  message: OllamaMessage;
}

export interface OllamaGenerateResponse extends OllamaFigures {
  model: string;
  created_at: Date;
  response: string;
  thinking?: string;
}

export interface OllamaModelDetails {
  parent_model: string;
  format: string;
  family: string;
  families: string[];
  parameter_size: string;
  quantization_level: string;
}

export interface OllamaModelResponse {
  name: string;
  model: string;
  modified_at: Date;
  size: number;
  digest: string;
  details: OllamaModelDetails;
}

export interface OllamaShowResponse {
  license: string;
  modelfile: string;
  parameters: string;
  template: string;
  system: string;
  details: OllamaModelDetails;
  model_info: Record<string, unknown>;
  capabilities: string[];
}

export interface OllamaEmbedRequest {
  model: string;
  input: string | string[];
  /** Cut texts that are longer than the model reads (default), or refuse them. */
  truncate?: boolean;
  dimensions?: number;
}

/** Durations are nanoseconds. */
export interface OllamaEmbedResponse {
  model: string;
  embeddings: number[][];
  total_duration: number;
  load_duration: number;
  prompt_eval_count: number;
}

/** A stream that can be ended. */
export interface OllamaStream<T> extends AsyncIterable<T> {
  abort(): void;
}
