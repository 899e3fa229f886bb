// Shapes of OpenAI's chat completions, as far as they are served here.

import type { GrammarFormat } from "./constraint.js";
import type { AdapterChoice } from "./training-types.js";
import type { ContentPart, EmbeddingPurpose, Tool } from "./types.js";

export interface ChatCompletionToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export interface ChatCompletionMessageParam {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  content?: string | ContentPart[] | null;
  tool_calls?: ChatCompletionToolCall[];
  tool_call_id?: string;
  name?: string;
}

export interface ChatCompletionParams {
  messages: ChatCompletionMessageParam[];
  /** Only for the answer's `model`: one model is loaded. */
  model?: string;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  temperature?: number | null;
  top_p?: number | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  stop?: string | string[] | null;
  seed?: number | null;
  /** Adapters of the model to answer with; OpenAI has no word for it. */
  adapters?: AdapterChoice[] | null;
  logprobs?: boolean | null;
  top_logprobs?: number | null;
  logit_bias?: Record<string, number> | null;
  presence_penalty?: number | null;
  frequency_penalty?: number | null;
  tools?: Tool[];
  tool_choice?: "auto" | "none" | "required" | { type: "function"; function: { name: string } } | null;
  parallel_tool_calls?: boolean | null;
  modalities?: string[] | null;
  response_format?:
    | { type: "text" }
    | { type: "json_object" }
    | { type: "json_schema"; json_schema: { name?: string; schema?: Record<string, unknown>; strict?: boolean | null } }
    /** Not OpenAI's. */
    | GrammarFormat
    | null;
  /** Anything but `none` lets the model think first: up to 512, 2048 and 8192 tokens, or until the model ends it. */
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | null;
  n?: 1 | null;
}

export interface ChatCompletionLogprob {
  token: string;
  logprob: number;
  bytes: number[];
  top_logprobs: { token: string; logprob: number; bytes: number[] }[];
}

export interface ChatCompletionLogprobs {
  content: ChatCompletionLogprob[];
  refusal: null;
}

export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  /** What OpenAI does not tell; milliseconds. */
  rullama: { tokensPerSecond: number; timeToFirstToken: number };
}

export type FinishReason = "stop" | "length" | "tool_calls";

export interface ChatCompletion {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: {
    index: 0;
    message: {
      role: "assistant";
      content: string | null;
      refusal: null;
      /** What the model thought first, as other servers call it. */
      reasoning_content?: string;
      tool_calls?: ChatCompletionToolCall[];
    };
    logprobs: ChatCompletionLogprobs | null;
    finish_reason: FinishReason;
  }[];
  usage: CompletionUsage;
}

export interface ChatCompletionDelta {
  role?: "assistant";
  content?: string;
  reasoning_content?: string;
  tool_calls?: ({ index: number } & ChatCompletionToolCall)[];
}

export interface ChatCompletionChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: {
    index: 0;
    delta: ChatCompletionDelta;
    logprobs: ChatCompletionLogprobs | null;
    finish_reason: FinishReason | null;
  }[];
  usage?: CompletionUsage | null;
}

export interface EmbeddingCreateParams {
  input: string | string[];
  /** Only for the answer's `model`: one model is loaded. */
  model?: string;
  /** Keep so many numbers of each vector. */
  dimensions?: number;
  encoding_format?: "float" | "base64";
  user?: string;
  /** What OpenAI does not have: what the texts are for, which changes the words in front of them. */
  purpose?: EmbeddingPurpose;
}

export interface CreateEmbeddingResponse {
  object: "list";
  /** Vectors as numbers, or with `base64` as their bytes. */
  data: { object: "embedding"; index: number; embedding: number[] | string }[];
  model: string;
  usage: { prompt_tokens: number; total_tokens: number };
}
