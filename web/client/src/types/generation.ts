// Generation: messages and options in, events out.

import type { ResponseFormat, ToolChoice } from "../constraint.js";
import type { AdapterChoice } from "../training-types.js";
import type { ContentPart, MediaEvent } from "./media.js";

export interface SamplingOptions {
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  typicalP?: number;
  repeatPenalty?: number;
  repeatLastN?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  /** Random where absent; the one used is in the usage. */
  seed?: number;
  /** Most tokens of the answer; no limit but the context's where absent. */
  maxTokens?: number;
  stop?: string | string[];
  /** Token id → added to its logit. */
  logitBias?: Record<number, number>;
  /** Pass over tokens that end a reply, so that only `maxTokens`, `stop` or the context end it. */
  ignoreEos?: boolean;
  /** DRY: the penalty of the shortest repetition that counts (0 turns it off), and its growth with each token. */
  dryMultiplier?: number;
  dryBase?: number;
  /** DRY: tokens that may be repeated, recent tokens that are searched (-1: the context), and texts that end a repetition. */
  dryAllowedLength?: number;
  dryPenaltyLastN?: number;
  drySequenceBreakers?: string[];
  /** XTC: how often it applies to a token, and the probability from which on a token is a top choice. */
  xtcProbability?: number;
  xtcThreshold?: number;
  /** Keeps logits within so many standard deviations of the best. */
  topNSigma?: number;
  /** Dynamic temperature: its range to both sides of `temperature`, and the exponent of the entropy. */
  dynatempRange?: number;
  dynatempExponent?: number;
  /** Report log-probabilities of each token and of this many alternatives (0 to 20). */
  logprobs?: number;
}

export interface ToolCall {
  name: string;
  arguments: Record<string, unknown>;
}

/** A message of a conversation. One of role `system` takes the place of the model's own system prompt; an empty one clears it. */
export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string | ContentPart[];
  /** What the model thought before this answer. */
  thinking?: string;
  toolCalls?: ToolCall[];
  /** For role `tool`: which tool answers. */
  toolName?: string;
  /** For a last message of role `assistant`: the reply continues this text, without repeating it. */
  prefix?: boolean;
}

/** A tool in the shape of OpenAI's and Ollama's interfaces. */
export interface Tool {
  type: "function";
  function: { name: string; description?: string; parameters?: Record<string, unknown> };
  /** Runs it. Its result, or what it throws, is shown to the model, which then goes on; without it, a call ends the reply. */
  execute?: (input: Record<string, unknown>, options: { signal?: AbortSignal }) => unknown;
}

/** How a DiffusionGemma denoises its blocks; other models ignore it. */
export interface DenoisingOptions {
  /** Steps that a block may take. */
  steps?: number;
  /** Entropy, in nats, that places accepted in one step may have together: more is faster and worse. */
  entropyBound?: number;
  /** Blocks to write, at most; 4 by default. */
  blocks?: number;
}

export interface GenerateOptions extends SamplingOptions, DenoisingOptions {
  /** Report the canvas of a DiffusionGemma after each step: events `canvas` in place of `step`. */
  canvas?: boolean;
  /** Let the model think first. */
  think?: boolean;
  /** With `think`: most tokens of thoughts, which then end, and the reply begins. */
  thinkBudget?: number;
  tools?: Tool[];
  toolChoice?: ToolChoice;
  /** False ends a reply after its first call. */
  parallelToolCalls?: boolean;
  /** Most rounds of calls of tools with an `execute`; 8 by default. A further call ends the reply. */
  maxToolRounds?: number;
  /** Asked before such a tool runs; false refuses the call. */
  confirmToolCall?: (call: ToolCall) => boolean | Promise<boolean>;
  /** What the reply must look like; what cannot be enforced is refused with `bad_options`. */
  format?: ResponseFormat;
  /** Adapters of the model to answer with, several at once; none where absent. */
  adapters?: AdapterChoice[];
  signal?: AbortSignal;
}

export interface TokenLogprob {
  id: number;
  token: string;
  bytes: number[];
  logprob: number;
}

/** A denoising step of a block. */
export interface DenoisingStep {
  /** Blocks before this one. */
  block: number;
  /** From 1 to `steps`, at most. */
  step: number;
  steps: number;
  /** Mean entropy of the places, in nats. */
  entropy: number;
  /** Places that kept what was drawn. */
  accepted: number;
}

/** A place of a canvas: its likeliest token, and whether it stays for the next step. */
export interface CanvasToken {
  text: string;
  settled: boolean;
}

/** Something that happened while an answer was made; `done` is always the last one. */
export type GenerateEvent =
  | MediaEvent
  | { type: "prefill"; done: number; total: number }
  | { type: "text"; text: string }
  | { type: "thinking"; text: string }
  | { type: "tool_call"; index: number; call: ToolCall }
  | { type: "bad_call"; raw: string }
  /** A tool with an `execute` has run, failed (then `content` says why) or was refused. */
  | { type: "tool_result"; call: ToolCall; content: string; isError: boolean }
  | { type: "logprobs"; token: TokenLogprob; top: TokenLogprob[] }
  | ({ type: "step" } & DenoisingStep)
  | ({ type: "canvas"; tokens: CanvasToken[] } & DenoisingStep)
  | { type: "done"; finish: Finish; usage: Usage };

/** Why an answer ended: the model ended it, the limit came, the context is full, somebody stopped it. */
export type Finish = "stop" | "length" | "context" | "cancelled";

export interface Usage {
  promptTokens: number;
  /** Of these, tokens that were in the caches already. */
  cachedTokens: number;
  answerTokens: number;
  /** Milliseconds. */
  timeToFirstToken: number;
  prefillTokensPerSecond: number;
  decodeTokensPerSecond: number;
  seed: number;
  /** Tokens of the context in use, of so many. */
  contextUsed: number;
  context: number;
  /** Of these answer tokens, those that were computed in one pass with tokens of other conversations. */
  batchedTokens?: number;
  /** Of models that draft: tokens that were guessed, those that were right, and the runs that checked them. */
  drafts?: { runs: number; drafted: number; accepted: number };
  /** Of diffusion models: how many, and the steps they took together. */
  blocks?: number;
  steps?: number;
}
