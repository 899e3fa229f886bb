// A model in the shape of OpenAI's interface: `model.openai.chat.completions.create`.

import type { ResponseFormat, ToolChoice } from "./constraint.js";
import { type Embeds, Embeddings } from "./embeddings.js";
import { CancelledError, RullamaError } from "./errors.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionDelta,
  ChatCompletionLogprob,
  ChatCompletionMessageParam,
  ChatCompletionParams,
  ChatCompletionToolCall,
  CompletionUsage,
  FinishReason,
} from "./openai-types.js";
import { OPENAI_REFUSED, refuse } from "./refuse.js";
import { samplingOf } from "./sampling.js";
import { thinkAt } from "./think.js";
import type { Finish, GenerateEvent, GenerateOptions, Message, TokenLogprob, ToolCall, Usage } from "./types.js";

/** What a model must be able to do. */
interface Chats {
  readonly info: { name: string };
  chat(messages: Message[], options?: GenerateOptions): AsyncIterableIterator<GenerateEvent>;
}

export interface RequestOptions {
  signal?: AbortSignal;
}

export class OpenAi {
  readonly chat: { completions: Completions };
  readonly embeddings: Embeddings;

  constructor(model: Chats & Embeds) {
    this.chat = { completions: new Completions(model) };
    this.embeddings = new Embeddings(model);
  }
}

class Completions {
  constructor(private readonly model: Chats) {}

  /** An answer, whole or as a stream of chunks. */
  create(
    params: ChatCompletionParams & { stream: true },
    options?: RequestOptions,
  ): Promise<AsyncIterableIterator<ChatCompletionChunk>>;
  create(params: ChatCompletionParams & { stream?: false | null }, options?: RequestOptions): Promise<ChatCompletion>;
  create(
    params: ChatCompletionParams,
    options?: RequestOptions,
  ): Promise<ChatCompletion | AsyncIterableIterator<ChatCompletionChunk>>;
  async create(
    params: ChatCompletionParams,
    options: RequestOptions = {},
  ): Promise<ChatCompletion | AsyncIterableIterator<ChatCompletionChunk>> {
    const wishes = { ...optionsOf(params), ...(options.signal ? { signal: options.signal } : {}) };
    const events = this.model.chat(messagesOf(params.messages), wishes);
    const head = {
      id: randomId("chatcmpl-"),
      created: Math.floor(Date.now() / 1000),
      model: params.model ?? this.model.info.name,
    };
    if (params.stream) return completionChunks(events, head, params.stream_options?.include_usage ?? false);
    return wholeCompletion(events, head, params.logprobs ?? false);
  }
}

type Head = Pick<ChatCompletion, "id" | "created" | "model">;

/** A whole completion from its events. */
export async function wholeCompletion(
  events: AsyncIterable<GenerateEvent>,
  head: Head,
  wantsLogprobs: boolean,
): Promise<ChatCompletion> {
  let [content, reasoning] = ["", ""];
  const calls: ChatCompletionToolCall[] = [];
  const logprobs: ChatCompletionLogprob[] = [];
  for await (const event of events) {
    if (event.type === "text") content += event.text;
    else if (event.type === "thinking") reasoning += event.text;
    else if (event.type === "bad_call") content += event.raw;
    else if (event.type === "tool_call") calls.push(toolCall(event.call));
    else if (event.type === "logprobs") logprobs.push(logprobOf(event.token, event.top));
    else if (event.type === "done") {
      if (event.finish === "cancelled") throw new CancelledError("the answer was cancelled");
      const message = {
        role: "assistant" as const,
        content: content === "" && calls.length > 0 ? null : content,
        refusal: null,
        ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
        ...(calls.length === 0 ? {} : { tool_calls: calls }),
      };
      const choice = {
        index: 0 as const,
        message,
        logprobs: wantsLogprobs ? { content: logprobs, refusal: null } : null,
        finish_reason: finishReason(event.finish, calls.length),
      };
      return { ...head, object: "chat.completion", choices: [choice], usage: usageOf(event.usage) };
    }
  }
  throw new RullamaError("internal", "an answer ended without an end");
}

/** Chunks of a completion from its events. */
export async function* completionChunks(
  events: AsyncIterable<GenerateEvent>,
  head: Head,
  includeUsage: boolean,
): AsyncGenerator<ChatCompletionChunk, void, void> {
  let logprobs: ChatCompletionLogprob[] = [];
  let calls = 0;
  const chunk = (delta: ChatCompletionDelta, finish: FinishReason | null = null): ChatCompletionChunk => {
    const said = logprobs.length > 0 ? { content: logprobs, refusal: null } : null;
    logprobs = [];
    return {
      ...head,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, logprobs: said, finish_reason: finish }],
      ...(includeUsage ? { usage: null } : {}),
    };
  };
  yield chunk({ role: "assistant", content: "" });
  for await (const event of events) {
    if (event.type === "text") yield chunk({ content: event.text });
    else if (event.type === "thinking") yield chunk({ reasoning_content: event.text });
    else if (event.type === "bad_call") yield chunk({ content: event.raw });
    else if (event.type === "tool_call") yield chunk({ tool_calls: [{ index: calls++, ...toolCall(event.call) }] });
    else if (event.type === "logprobs") logprobs.push(logprobOf(event.token, event.top));
    else if (event.type === "done") {
      yield chunk({}, finishReason(event.finish, calls));
      if (includeUsage) yield { ...chunk({}), choices: [], usage: usageOf(event.usage) };
    }
  }
}

function finishReason(finish: Finish, calls: number): FinishReason {
  if (finish === "length" || finish === "context") return "length";
  return calls > 0 ? "tool_calls" : "stop";
}

function usageOf(usage: Usage): CompletionUsage {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.answerTokens,
    total_tokens: usage.promptTokens + usage.answerTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
    rullama: { tokensPerSecond: usage.decodeTokensPerSecond, timeToFirstToken: usage.timeToFirstToken },
  };
}

function logprobOf(token: TokenLogprob, top: TokenLogprob[]): ChatCompletionLogprob {
  const plain = ({ token: text, logprob, bytes }: TokenLogprob) => ({ token: text, logprob, bytes });
  return { ...plain(token), top_logprobs: top.map(plain) };
}

function toolCall({ name, arguments: given }: ToolCall): ChatCompletionToolCall {
  return { id: randomId("call_"), type: "function", function: { name, arguments: JSON.stringify(given) } };
}

function randomId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return prefix + [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function formatOf(format: ChatCompletionParams["response_format"]): ResponseFormat | undefined {
  if (format === undefined || format === null || format.type === "text") return undefined;
  if (format.type === "json_object") return "json";
  if (format.type === "grammar") return format;
  const schema = format.type === "json_schema" ? format.json_schema?.schema : undefined;
  if (typeof schema === "object" && schema !== null) return schema;
  throw new RullamaError("bad_options", `response_format ${String(format.type)} is not known, or has no schema`);
}

function choiceOf(choice: ChatCompletionParams["tool_choice"]): ToolChoice | undefined {
  if (choice === undefined || choice === null) return undefined;
  if (choice === "auto" || choice === "none" || choice === "required") return choice;
  const name = typeof choice === "object" ? choice.function?.name : undefined;
  if (typeof name === "string") return { name };
  throw new RullamaError("bad_options", "tool_choice must be auto, none, required or a function");
}

/** OpenAI's options in this package's words; sampling options that other servers have besides count, too. */
export function optionsOf(params: ChatCompletionParams): GenerateOptions {
  if ((params.n ?? 1) !== 1) throw new RullamaError("bad_options", "n must be 1: one answer at a time");
  refuse(params, OPENAI_REFUSED);
  if (params.modalities?.some((modality) => modality !== "text")) {
    throw new RullamaError("bad_options", "modalities must be text: only text is generated");
  }
  const all: { [K in keyof GenerateOptions]: GenerateOptions[K] | null | undefined } = {
    ...samplingOf({ ...params }),
    maxTokens: params.max_completion_tokens ?? params.max_tokens,
    logprobs: params.logprobs ? (params.top_logprobs ?? 0) : undefined,
    tools: params.tools,
    toolChoice: choiceOf(params.tool_choice),
    parallelToolCalls: params.parallel_tool_calls,
    format: formatOf(params.response_format),
    ...thinkAt(params.reasoning_effort, "reasoning_effort"),
    adapters: params.adapters,
  };
  const given = Object.entries(all).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given) as GenerateOptions;
}

/** OpenAI's messages in this package's words. */
export function messagesOf(messages: ChatCompletionMessageParam[]): Message[] {
  const names = new Map<string, string>();
  return messages.map((message) => {
    const calls = message.tool_calls ?? [];
    for (const call of calls) names.set(call.id, call.function.name);
    const toolName = message.name ?? names.get(message.tool_call_id ?? "");
    return {
      role: message.role === "developer" ? "system" : message.role,
      content: contentOf(message.content),
      ...(calls.length === 0 ? {} : { toolCalls: calls.map(givenCall) }),
      ...(message.role !== "tool" || toolName === undefined ? {} : { toolName }),
    };
  });
}

function contentOf(content: ChatCompletionMessageParam["content"]): Message["content"] {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  const known = new Set(["text", "image", "image_url", "audio", "input_audio", "video"]);
  const strange = content.find(({ type }) => !known.has(type));
  if (strange) throw new RullamaError("bad_options", `parts of type ${strange.type} are not known`);
  // Servers that take text alone join it without anything between; so do we.
  if (content.every((part) => part.type === "text")) return content.map(({ text }) => text).join("");
  return content;
}

function givenCall({ function: { name, arguments: text } }: ChatCompletionToolCall): ToolCall {
  try {
    return { name, arguments: (text.trim() === "" ? {} : JSON.parse(text)) as Record<string, unknown> };
  } catch (error) {
    throw new RullamaError("bad_options", `the arguments of the call to ${name} are no JSON`, { cause: error });
  }
}
