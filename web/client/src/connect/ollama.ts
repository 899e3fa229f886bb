// Ollama's dialect, which `rullama serve` speaks too. The engine's own words are Ollama's, so little is to be translated.

import { RullamaError } from "../errors.js";
import type { EmbedRequest, EngineMessage, PlainVectors } from "../protocol.js";
import { levelWithin } from "../think.js";
import type { Finish, GenerateEvent, ModelInfo, ToolCall } from "../types.js";
import { type Dialect, type EncodedFile, type RemoteRequest, shown, usageOf, vectorsOf } from "./dialect.js";
import type { Server } from "./http.js";

interface Line {
  message?: { content?: string; thinking?: string; tool_calls?: { function: ToolCall }[] };
  response?: string;
  thinking?: string;
  done?: boolean;
  done_reason?: string;
  error?: string;
  prompt_eval_count?: number;
  prompt_eval_duration?: number;
  eval_count?: number;
  eval_duration?: number;
}

export class OllamaDialect implements Dialect {
  readonly name = "ollama";

  constructor(private readonly server: Server) {}

  async models(signal?: AbortSignal): Promise<string[]> {
    const { models } = (await this.server.get("/api/tags", signal)) as { models?: { name?: unknown }[] };
    return (models ?? []).flatMap(({ name }) => (typeof name === "string" ? [name] : []));
  }

  async info(model: string, signal?: AbortSignal): Promise<Partial<ModelInfo>> {
    const told = (await this.server.post("/api/show", { model }, signal)) as {
      details?: { family?: string; quantization_level?: string };
      model_info?: Record<string, unknown>;
      capabilities?: string[];
    };
    const facts = Object.entries(told.model_info ?? {});
    const number = (end: string) => Number(facts.find(([key]) => key.endsWith(end))?.[1] ?? NaN);
    const context = number(".context_length");
    return {
      kind: told.capabilities?.includes("embedding") ? "embedding" : "decoder",
      architecture: told.details?.family ?? "",
      quantization: told.details?.quantization_level ?? "",
      thinking: told.capabilities?.includes("thinking") ?? false,
      parameters: number("general.parameter_count") || 0,
      ...(Number.isFinite(context) ? { context, trainedContext: context } : {}),
    };
  }

  async *answer(
    model: string,
    request: RemoteRequest,
    signal?: AbortSignal,
  ): AsyncGenerator<GenerateEvent, void, void> {
    const { messages, text, tools, think, think_budget: budget, options, files } = request;
    const { format, toolChoice } = (request.constraint ?? {}) as { format?: unknown; toolChoice?: unknown };
    if (toolChoice !== undefined && toolChoice !== "auto" && toolChoice !== "none") {
      const advice = "connect with the dialect openai";
      throw new RullamaError("bad_options", `Ollama's interface cannot require a call: ${advice}`);
    }
    const left = [...files];
    const body = {
      model,
      stream: true,
      options,
      ...(think === undefined ? {} : { think: budget === undefined ? think : levelWithin(budget, ["low", "medium"]) }),
      ...(format === undefined ? {} : { format }),
      ...(messages
        ? { messages: messages.map((one) => messageOf(one, left)), ...(tools ? { tools } : {}) }
        : { prompt: text, raw: true }),
    };
    let calls = 0;
    for await (const text of this.server.lines(messages ? "/api/chat" : "/api/generate", body, signal)) {
      if (text.trim() === "") continue;
      const line = JSON.parse(text) as Line;
      if (line.error !== undefined) throw new RullamaError("internal", line.error);
      const thinking = line.message?.thinking ?? line.thinking;
      const said = line.message?.content ?? line.response;
      if (thinking) yield { type: "thinking", text: thinking };
      if (said) yield { type: "text", text: said };
      for (const { function: call } of line.message?.tool_calls ?? []) {
        yield { type: "tool_call", index: calls++, call: { name: call.name, arguments: call.arguments } };
      }
      if (line.done) {
        yield { type: "done", finish: finishOf(line.done_reason), usage: figures(line) };
        return;
      }
    }
    throw new RullamaError("network", "the server ended the reply without an end");
  }

  async embed(model: string, { texts, dimensions }: EmbedRequest, signal?: AbortSignal): Promise<PlainVectors> {
    const body = { model, input: texts, ...(dimensions === undefined ? {} : { dimensions }) };
    const made = (await this.server.post("/api/embed", body, signal)) as Record<string, unknown>;
    return vectorsOf(made["embeddings"], made["prompt_eval_count"]);
  }

  tokenize(): Promise<number[]> {
    return Promise.reject(new RullamaError("bad_options", "servers of Ollama's dialect do not tokenize"));
  }
}

function finishOf(reason: string | undefined): Finish {
  return reason === "length" ? "length" : "stop";
}

function figures(line: Line) {
  const ms = (ns: number | undefined) => (ns ?? 0) / 1e6;
  const rate = (tokens: number | undefined, ns: number | undefined) => (ns ? ((tokens ?? 0) * 1e9) / ns : 0);
  return usageOf({
    promptTokens: line.prompt_eval_count ?? 0,
    answerTokens: line.eval_count ?? 0,
    timeToFirstToken: ms(line.prompt_eval_duration),
    prefillTokensPerSecond: rate(line.prompt_eval_count, line.prompt_eval_duration),
    decodeTokensPerSecond: rate(line.eval_count, line.eval_duration),
  });
}

function messageOf(message: EngineMessage, files: EncodedFile[][]) {
  const parts = shown(message, files);
  const images = parts.flatMap((part) => ("kind" in part ? [part] : []));
  if (images.some(({ kind }) => kind === "audio")) {
    throw new RullamaError(
      "bad_media",
      'servers of Ollama\'s dialect take no audio: connect with { dialect: "openai" }',
    );
  }
  const { role, thinking, tool_calls: calls, tool_name: name } = message;
  return {
    role,
    content: parts.map((part) => ("text" in part ? part.text : "")).join(""),
    ...(images.length > 0 ? { images: images.map(({ data }) => data) } : {}),
    ...(thinking === undefined ? {} : { thinking }),
    ...(calls === undefined ? {} : { tool_calls: calls.map((call) => ({ function: call })) }),
    ...(name === undefined ? {} : { tool_name: name }),
  };
}
