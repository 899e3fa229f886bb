// From this package's words to the engine's, which are Ollama's.

import { constraintOf, textConstraintOf, toolsOf } from "./constraint.js";
import { RullamaError } from "./errors.js";
import { splitPrefix } from "./prefix.js";
import type { AnswerRequest, EngineMessage, EnginePart } from "./protocol.js";
import { budgetWords } from "./think.js";
import type { AdapterChoice } from "./training-types.js";
import type { ContentPart, GenerateOptions, Message, SamplingOptions } from "./types.js";

/** Names of sampling options in Ollama's words. */
export const SAMPLING_WORDS: Record<Exclude<keyof SamplingOptions, "stop" | "logprobs">, string> = {
  temperature: "temperature",
  topK: "top_k",
  topP: "top_p",
  minP: "min_p",
  typicalP: "typical_p",
  repeatPenalty: "repeat_penalty",
  repeatLastN: "repeat_last_n",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  seed: "seed",
  maxTokens: "num_predict",
  logitBias: "logit_bias",
  ignoreEos: "ignore_eos",
  dryMultiplier: "dry_multiplier",
  dryBase: "dry_base",
  dryAllowedLength: "dry_allowed_length",
  dryPenaltyLastN: "dry_penalty_last_n",
  drySequenceBreakers: "dry_sequence_breakers",
  xtcProbability: "xtc_probability",
  xtcThreshold: "xtc_threshold",
  topNSigma: "top_n_sigma",
  dynatempRange: "dynatemp_range",
  dynatempExponent: "dynatemp_exponent",
};

/** Sampling options from Ollama's words, which llama-server and vLLM take, too; null is absent. */
export function samplingOf(words: Record<string, unknown>): SamplingOptions {
  const named = Object.entries(SAMPLING_WORDS).map(([name, word]) => [name, words[word]] as const);
  const given = [...named, ["stop", words["stop"]] as const].filter(
    ([, value]) => value !== undefined && value !== null,
  );
  return Object.fromEntries(given) as SamplingOptions;
}

/** Sampling options in the engine's words; absent ones stay absent, so that the model's own apply. */
export function samplingWords(options: SamplingOptions): Record<string, unknown> {
  const words: Record<string, unknown> = {};
  for (const [key, word] of Object.entries(SAMPLING_WORDS)) {
    const value = options[key as keyof typeof SAMPLING_WORDS];
    // JSON has no NaN and no infinity; as text they are refused with a message that names the option.
    if (typeof value === "number" && !Number.isFinite(value)) words[word] = String(value);
    else if (value !== undefined) words[word] = value;
  }
  if (options.stop !== undefined) words["stop"] = typeof options.stop === "string" ? [options.stop] : options.stop;
  if (options.logprobs !== undefined) {
    words["logprobs"] = true;
    words["top_logprobs"] = options.logprobs;
  }
  return words;
}

/** Denoising options that are given. */
function denoisingWords(options: GenerateOptions): Pick<AnswerRequest, "denoising"> {
  const { steps, entropyBound, blocks, canvas } = options;
  const given = Object.entries({ steps, entropyBound, blocks, canvas }).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    const good = typeof value === "boolean" || (Number.isFinite(value) && (name === "entropyBound" || isCount(value)));
    if (!good) throw new RullamaError("bad_options", `${name} cannot be ${value}`);
  }
  return given.length === 0 ? {} : { denoising: Object.fromEntries(given) };
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 1;
}

function engineMessage(message: Message): EngineMessage {
  const { role, content, thinking, toolCalls, toolName } = message;
  return {
    role,
    content: typeof content === "string" ? content : content.map(enginePart),
    ...(thinking === undefined ? {} : { thinking }),
    ...(toolCalls === undefined
      ? {}
      : { tool_calls: toolCalls.map(({ name, arguments: given }) => ({ name, arguments: given })) }),
    ...(toolName === undefined ? {} : { tool_name: toolName }),
  };
}

/** What a part shows travels apart. */
function enginePart(part: ContentPart): EnginePart {
  if (part.type === "text") return part;
  if (part.type === "image_url") return { type: "image" };
  return { type: part.type === "input_audio" ? "audio" : part.type };
}

/** Adapters of a request; without a weight they count whole. */
export function adapterWords(adapters: AdapterChoice[] | undefined): Pick<AnswerRequest, "adapters"> {
  if (adapters === undefined) return {};
  for (const { id, weight = 1 } of adapters) {
    if (Number.isFinite(weight)) continue;
    throw new RullamaError("bad_options", `the weight of the adapter ${id} is ${weight}: it must be a number`);
  }
  return { adapters: adapters.map(({ id, weight = 1 }) => ({ id, weight })) };
}

/** With the model's own system prompt, unless there is one; an empty one clears it. */
function withSystem(messages: Message[], system: string | undefined): Message[] {
  if (messages.some(({ role }) => role === "system")) {
    return messages.filter(({ role, content }) => role !== "system" || content.length > 0);
  }
  return system === undefined ? messages : [{ role: "system", content: system }, ...messages];
}

/** A conversation to answer; `system` is what the model's name brings, for conversations without one. */
export function chatRequest(
  messages: Message[],
  options: GenerateOptions,
  system?: string,
  constrain: typeof constraintOf = constraintOf,
): AnswerRequest {
  const tools = toolsOf(options);
  const { turns, prefix } = splitPrefix(messages);
  return {
    messages: withSystem(turns, system).map(engineMessage),
    ...(prefix === undefined ? {} : { prefix }),
    ...(tools === undefined ? {} : { tools }),
    ...constrain(options),
    ...(options.think === undefined ? {} : { think: options.think }),
    ...budgetWords(options),
    ...denoisingWords(options),
    ...adapterWords(options.adapters),
    options: samplingWords(options),
  };
}

/** Text to continue. */
export function textRequest(
  text: string,
  options: GenerateOptions,
  constrain: typeof constraintOf = constraintOf,
): AnswerRequest {
  return { text, ...textWords(options, constrain) };
}

/** Tokens to continue. */
export function idsRequest(ids: Iterable<number>, options: GenerateOptions): AnswerRequest {
  return { ids: [...ids], ...textWords(options, constraintOf) };
}

/** Options of what is continued without a template, which alone knows of thoughts and tools. */
function textWords(options: GenerateOptions, constrain: typeof constraintOf): AnswerRequest {
  if (options.think) throw new RullamaError("bad_options", "models think in chats: use `chat`");
  return {
    ...textConstraintOf(options, constrain),
    ...denoisingWords(options),
    ...adapterWords(options.adapters),
    options: samplingWords(options),
  };
}
