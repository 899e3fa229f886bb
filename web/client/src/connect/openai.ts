// OpenAI's dialect: llama-server, vLLM and most others.

import { RullamaError } from "../errors.js";
import type { EmbedRequest, EngineMessage, PlainVectors } from "../protocol.js";
import { levelWithin } from "../think.js";
import type { Finish, GenerateEvent, ModelInfo, Usage } from "../types.js";
import {
  type Dialect,
  type EncodedFile,
  type RemoteRequest,
  type TokenizeRequest,
  shown,
  usageOf,
  vectorsOf,
} from "./dialect.js";
import { type Server, messageOf as errorIn } from "./http.js";

/** OpenAI's words for Ollama's, where they differ. */
const WORDS: Record<string, string> = { num_predict: "max_tokens" };

interface Chunk {
  choices?: {
    text?: string;
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      reasoning?: string | null;
      tool_calls?: { index?: number; function?: { name?: string; arguments?: string } }[];
    };
    finish_reason?: string | null;
  }[];
  usage?: {
    prompt_tokens?: number;
    completion_tokens?: number;
    prompt_tokens_details?: { cached_tokens?: number };
  } | null;
}

export class OpenAiDialect implements Dialect {
  readonly name = "openai";

  constructor(private readonly server: Server) {}

  async models(signal?: AbortSignal): Promise<string[]> {
    return (await this.listed(signal)).map(({ id }) => id);
  }

  private async listed(signal?: AbortSignal) {
    const { data } = (await this.server.get("/models", signal)) as { data?: Record<string, unknown>[] };
    return (data ?? []).flatMap((one) => (typeof one["id"] === "string" ? [{ ...one, id: one["id"] }] : []));
  }

  async info(model: string, signal?: AbortSignal): Promise<Partial<ModelInfo>> {
    const found = (await this.listed(signal)).find(({ id }) => id === model) as Record<string, unknown> | undefined;
    const meta = found?.["meta"] as Record<string, unknown> | undefined;
    // vLLM's and llama-server's words.
    const context = found?.["max_model_len"] ?? meta?.["n_ctx"] ?? meta?.["n_ctx_train"];
    return typeof context === "number" ? { context, trainedContext: context } : {};
  }

  async *answer(
    model: string,
    request: RemoteRequest,
    signal?: AbortSignal,
  ): AsyncGenerator<GenerateEvent, void, void> {
    const { messages, text } = request;
    if (!messages && request.constraint !== undefined) {
      throw new RullamaError("bad_options", "text completions of servers have no format: use `chat`");
    }
    const path = messages ? "/chat/completions" : "/completions";
    const what = messages
      ? { messages: messagesOf(messages, [...request.files]), ...continued(request), ...constraint(request) }
      : { prompt: text };
    const body = { model, stream: true, stream_options: { include_usage: true }, ...options(request), ...what };
    const start = performance.now();
    const calls = new Map<number, { name: string; input: string }>();
    let first: number | undefined;
    let finish: Finish | undefined;
    let usage: Chunk["usage"];
    for await (const line of this.server.lines(path, body, signal)) {
      const data = /^data:\s?(.*)$/u.exec(line)?.[1];
      if (data === undefined || data === "") continue;
      if (data === "[DONE]") break;
      const problem = errorIn(data);
      if (problem !== undefined) throw new RullamaError("internal", problem);
      const { choices, usage: told } = JSON.parse(data) as Chunk;
      usage = told ?? usage;
      const [choice] = choices ?? [];
      const { delta } = choice ?? {};
      const thinking = delta?.reasoning_content ?? delta?.reasoning;
      const said = delta?.content ?? choice?.text;
      if (thinking || said) first ??= performance.now() - start;
      if (thinking) yield { type: "thinking", text: thinking };
      if (said) yield { type: "text", text: said };
      for (const { index = calls.size, function: part } of delta?.tool_calls ?? []) {
        const call = calls.get(index) ?? { name: "", input: "" };
        calls.set(index, { name: call.name + (part?.name ?? ""), input: call.input + (part?.arguments ?? "") });
      }
      if (choice?.finish_reason) finish = choice.finish_reason === "length" ? "length" : "stop";
    }
    if (finish === undefined) throw new RullamaError("network", "the server ended the reply without an end");
    let index = 0;
    for (const { name, input } of calls.values()) yield callEvent(index++, name, input);
    yield { type: "done", finish, usage: figures(usage, first ?? 0, performance.now() - start) };
  }

  async embed(model: string, { texts, dimensions }: EmbedRequest, signal?: AbortSignal): Promise<PlainVectors> {
    const body = { model, input: texts, encoding_format: "float", ...(dimensions === undefined ? {} : { dimensions }) };
    const made = (await this.server.post("/embeddings", body, signal)) as {
      data?: { index?: number; embedding: number[] }[];
      usage?: { prompt_tokens?: number };
    };
    const rows = [...(made.data ?? [])].sort((a, b) => (a.index ?? 0) - (b.index ?? 0));
    return vectorsOf(
      rows.map(({ embedding }) => embedding),
      made.usage?.prompt_tokens,
    );
  }

  /** llama-server's and vLLM's route, which lies beside `/v1`. */
  async tokenize(model: string, { text, special, bos }: TokenizeRequest): Promise<number[]> {
    const told = (await this.server.post("/../tokenize", {
      model,
      content: text,
      add_special: bos,
      parse_special: special,
      // vLLM's words.
      prompt: text,
      add_special_tokens: bos,
    })) as {
      tokens?: unknown;
    };
    if (Array.isArray(told.tokens)) return told.tokens.map(Number);
    throw new RullamaError("bad_options", "this server does not tokenize");
  }
}

function callEvent(index: number, name: string, input: string): GenerateEvent {
  try {
    const given = (input.trim() === "" ? {} : JSON.parse(input)) as Record<string, unknown>;
    return { type: "tool_call", index, call: { name, arguments: given } };
  } catch {
    return { type: "bad_call", raw: `${name}(${input})` };
  }
}

function figures(told: Chunk["usage"], first: number, ms: number): Usage {
  const answerTokens = told?.completion_tokens ?? 0;
  const decodeMs = Math.max(1, ms - first);
  return usageOf({
    promptTokens: told?.prompt_tokens ?? 0,
    cachedTokens: told?.prompt_tokens_details?.cached_tokens ?? 0,
    answerTokens,
    timeToFirstToken: first,
    decodeTokensPerSecond: (answerTokens * 1000) / decodeMs,
  });
}

function options({ options: words, think, think_budget: budget }: RemoteRequest): Record<string, unknown> {
  const said = Object.entries(words).map(([name, value]) => [WORDS[name] ?? name, value]);
  const level = budget === undefined ? "medium" : levelWithin(budget, ["minimal", "low", "medium"]);
  return {
    ...Object.fromEntries(said),
    ...(think === undefined ? {} : { reasoning_effort: think ? level : "none" }),
  };
}

/** vLLM begins a new message unless it is told otherwise; others ignore these words. */
function continued({ prefix }: RemoteRequest): Record<string, unknown> {
  return prefix === undefined ? {} : { continue_final_message: true, add_generation_prompt: false };
}

function constraint({ tools, constraint: given }: RemoteRequest): Record<string, unknown> {
  const { format, toolChoice } = (given ?? {}) as { format?: unknown; toolChoice?: unknown };
  const named = typeof toolChoice === "object" ? { type: "function", function: toolChoice } : toolChoice;
  const schema = { type: "json_schema", json_schema: { name: "reply", schema: format, strict: true } };
  return {
    ...(tools ? { tools } : {}),
    ...(toolChoice === undefined ? {} : { tool_choice: named }),
    ...(format === undefined ? {} : { response_format: format === "json" ? { type: "json_object" } : schema }),
  };
}

/** Results of tools answer calls by their ids, which are made up here: calls and results come in the same order. */
function messagesOf(messages: EngineMessage[], files: EncodedFile[][]): unknown[] {
  let calls = 0;
  let answers = 0;
  return messages.map((message) => {
    const parts = shown(message, files);
    const { role, tool_calls: made, thinking } = message;
    if (role === "tool") {
      const content = parts.map((part) => ("text" in part ? part.text : "")).join("");
      return { role, content, tool_call_id: `call_${answers++}` };
    }
    const text = parts.every((part) => "text" in part) ? parts.map((part) => part.text).join("") : undefined;
    answers = Math.max(answers, calls);
    const content = text ?? parts.map(partOf);
    const tool_calls = made?.map(({ name, arguments: input }) => ({
      id: `call_${calls++}`,
      type: "function",
      function: { name, arguments: JSON.stringify(input) },
    }));
    return {
      role,
      content,
      ...(tool_calls ? { tool_calls } : {}),
      ...(thinking === undefined ? {} : { reasoning_content: thinking }),
    };
  });
}

function partOf(part: { text: string } | EncodedFile) {
  if ("text" in part) return { type: "text", text: part.text };
  if (part.kind === "image") return { type: "image_url", image_url: { url: `data:image/png;base64,${part.data}` } };
  return { type: "input_audio", input_audio: { data: part.data, format: "wav" } };
}
