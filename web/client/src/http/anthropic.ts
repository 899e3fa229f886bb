// Anthropic's route: messages.

import type { ChatModel } from "../chat-model.js";
import type { ResponseFormat, ToolChoice } from "../constraint.js";
import { CancelledError, RullamaError } from "../errors.js";
import { ANTHROPIC_REFUSED, refuse } from "../refuse.js";
import { type Think, thinkAt } from "../think.js";
import type { ContentPart, Finish, GenerateEvent, GenerateOptions, Message, Tool, Usage } from "../types.js";
import { type ErrorShape, begun, given, json, list, randomId, record, sse, streamed, text } from "./responses.js";

export const ANTHROPIC_ERRORS: ErrorShape = {
  body: ({ status, message }) => {
    const types: Record<number, string> = {
      400: "invalid_request_error",
      404: "not_found_error",
      422: "invalid_request_error",
    };
    return { type: "error", error: { type: types[status] ?? "api_error", message } };
  },
  frame: (failure) => sse(ANTHROPIC_ERRORS.body(failure), "error"),
};

type Fields = Record<string, unknown>;

/** A content of text and images; undefined for blocks of other types. */
function partOf(block: Fields): ContentPart | undefined {
  if (block["type"] === "text") return { type: "text", text: text(block["text"], "text") };
  return block["type"] === "image" ? imageOf(record(block["source"], "source")) : undefined;
}

/** Text alone is one text. */
function joined(parts: ContentPart[]): Message["content"] {
  return parts.every((part) => part.type === "text") ? parts.map((part) => part.text).join("") : parts;
}

const strange = (block: Fields) =>
  new RullamaError("bad_options", `blocks of type ${String(block["type"])} are not supported`);

/** A content that is text, or a list of blocks of text and images. */
function contentOf(content: unknown, what: string): Message["content"] {
  if (typeof content === "string") return content;
  const parts = list(content ?? [], what).map((value) => {
    const block = record(value, what);
    const part = partOf(block);
    if (!part) throw strange(block);
    return part;
  });
  return joined(parts);
}

export function anthropicMessages(request: Fields): Message[] {
  const names = new Map<string, string>();
  const { system } = request;
  const messages: Message[] = system === undefined ? [] : [{ role: "system", content: contentOf(system, "system") }];
  for (const value of list(request["messages"], "messages")) {
    const { role, content } = record(value, "a message");
    if (role !== "user" && role !== "assistant")
      throw new RullamaError("bad_options", "role must be user or assistant");
    if (typeof content === "string") messages.push({ role, content });
    else messages.push(...blocksOf(role, list(content, "content"), names));
  }
  return messages;
}

function blocksOf(role: "user" | "assistant", content: unknown[], names: Map<string, string>): Message[] {
  const parts: ContentPart[] = [];
  const results: Message[] = [];
  const toolCalls: NonNullable<Message["toolCalls"]> = [];
  let thinking = "";
  for (const value of content) {
    const block = record(value, "a block");
    const part = partOf(block);
    if (part) parts.push(part);
    else if (block["type"] === "thinking") thinking += text(block["thinking"], "thinking");
    else if (block["type"] === "redacted_thinking") continue;
    else if (block["type"] === "tool_use") {
      const name = text(block["name"], "the name of a tool");
      names.set(String(block["id"]), name);
      toolCalls.push({ name, arguments: record(block["input"] ?? {}, "input") });
    } else if (block["type"] === "tool_result") {
      const toolName = names.get(String(block["tool_use_id"]));
      const result = contentOf(block["content"] ?? "", "the content of a tool result");
      const shown = block["is_error"] === true ? failed(result) : result;
      results.push({ role: "tool", content: shown, ...(toolName === undefined ? {} : { toolName }) });
    } else throw strange(block);
  }
  const isMessage = role === "assistant" || parts.length > 0 || results.length === 0;
  const message: Message = {
    role,
    content: joined(parts),
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
    ...(thinking === "" ? {} : { thinking }),
  };
  return [...results, ...(isMessage ? [message] : [])];
}

/** A tool's failure, as the model is told of it. */
function failed(result: Message["content"]): Message["content"] {
  return typeof result === "string"
    ? JSON.stringify({ error: result })
    : [{ type: "text", text: "Error: " }, ...result];
}

function imageOf(source: Fields): ContentPart {
  if (source["type"] === "url") return { type: "image", image: text(source["url"], "url") };
  const data = text(source["data"], "data");
  return { type: "image", image: `data:${String(source["media_type"])};base64,${data}` };
}

export function anthropicOptions(request: Fields): GenerateOptions {
  refuse(request, ANTHROPIC_REFUSED);
  const { tools } = request;
  const choice = record(request["tool_choice"] ?? {}, "tool_choice");
  const { type } = choice;
  const choices: Record<string, ToolChoice> = { auto: "auto", none: "none", any: "required" };
  const named = type === "tool" ? { name: text(choice["name"], "name") } : undefined;
  if (type !== undefined && named === undefined && choices[String(type)] === undefined) {
    throw new RullamaError("bad_options", `tool_choice ${String(type)} is not known: it is auto, none, any or tool`);
  }
  const declared = tools === undefined ? undefined : list(tools, "tools").map(toolOf);
  return given<GenerateOptions>({
    maxTokens: request["max_tokens"] as number | undefined,
    temperature: request["temperature"] as number | undefined,
    topP: request["top_p"] as number | undefined,
    topK: request["top_k"] as number | undefined,
    stop: request["stop_sequences"] as string[] | undefined,
    tools: declared,
    toolChoice: named ?? (type === undefined ? undefined : choices[String(type)]),
    parallelToolCalls: choice["disable_parallel_tool_use"] === true ? false : undefined,
    format: formatOf(request),
    ...thinkingOf(request),
  });
}

const THINKING: readonly unknown[] = ["enabled", "adaptive", "disabled"];

/** `thinking`, whose budget is a part of `max_tokens`; `output_config.effort` limits thoughts that have none. */
function thinkingOf(request: Fields): Think {
  const { thinking, output_config: config, max_tokens: most } = request;
  if (thinking === undefined || thinking === null) return {};
  const { type, budget_tokens: budget } = record(thinking, "thinking");
  if (!THINKING.includes(type)) {
    throw new RullamaError("bad_options", "the type of thinking must be enabled, adaptive or disabled");
  }
  if (type === "disabled") return { think: false };
  if (budget === undefined || budget === null) {
    const effort = config ? record(config, "output_config")["effort"] : undefined;
    return { ...thinkAt(effort, "effort"), think: true };
  }
  if (!Number.isInteger(budget) || Number(budget) < 1 || (typeof most === "number" && Number(budget) >= most)) {
    throw new RullamaError("bad_options", "thinking.budget_tokens must be a whole number from 1 to below max_tokens");
  }
  return { think: true, thinkBudget: Number(budget) };
}

/** Structured output: `output_config.format`, or `output_format` of earlier versions. */
function formatOf(request: Fields): ResponseFormat | undefined {
  const { output_config: config, output_format: before } = request;
  const value = (config ? record(config, "output_config")["format"] : undefined) ?? before;
  if (value === undefined || value === null) return undefined;
  const { type, schema } = record(value, "format");
  if (type === "json_schema") return record(schema, "schema");
  throw new RullamaError("bad_options", `the format ${String(type)} is not known: it is json_schema`);
}

function toolOf(value: unknown): Tool {
  const { name, description, input_schema: parameters } = record(value, "a tool");
  if (parameters === undefined) throw new RullamaError("bad_options", `the tool ${String(name)} has no input_schema`);
  return {
    type: "function",
    function: given<Tool["function"]>({
      name: text(name, "the name of a tool"),
      description: description as string | undefined,
      parameters: record(parameters, "input_schema"),
    }),
  };
}

function stopReason(finish: Finish, calls: number): string {
  if (finish === "length" || finish === "context") return "max_tokens";
  return calls > 0 ? "tool_use" : "end_turn";
}

function usageOf({ promptTokens, cachedTokens, answerTokens }: Usage) {
  return {
    input_tokens: promptTokens - cachedTokens,
    cache_read_input_tokens: cachedTokens,
    cache_creation_input_tokens: 0,
    output_tokens: answerTokens,
  };
}

export async function messages(model: ChatModel, request: Fields, signal: AbortSignal): Promise<Response> {
  const events = await begun(model.chat(anthropicMessages(request), { ...anthropicOptions(request), signal }));
  const head = {
    id: randomId("msg_"),
    type: "message",
    role: "assistant",
    model: typeof request["model"] === "string" ? request["model"] : model.info.name,
  };
  if (request["stream"] === true) {
    return streamed(eventFrames(events, head), "text/event-stream", ANTHROPIC_ERRORS, signal);
  }
  const content: Fields[] = [];
  for await (const event of events) {
    if (event.type === "done") {
      if (event.finish === "cancelled") throw new CancelledError();
      const calls = content.filter(({ type }) => type === "tool_use").length;
      const reason = stopReason(event.finish, calls);
      return json({ ...head, content, stop_reason: reason, stop_sequence: null, usage: usageOf(event.usage) });
    }
    addBlock(content, event);
  }
  throw new RullamaError("internal", "a reply ended without an end");
}

function addBlock(content: Fields[], event: GenerateEvent): void {
  const last = content.at(-1);
  const grow = (type: string, key: string, more: string) => {
    if (last?.["type"] === type) last[key] = String(last[key]) + more;
    else content.push({ type, [key]: more, ...(type === "thinking" ? { signature: "" } : {}) });
  };
  if (event.type === "text") grow("text", "text", event.text);
  else if (event.type === "bad_call") grow("text", "text", event.raw);
  else if (event.type === "thinking") grow("thinking", "thinking", event.text);
  else if (event.type === "tool_call") {
    content.push({ type: "tool_use", id: randomId("toolu_"), name: event.call.name, input: event.call.arguments });
  }
}

async function* eventFrames(events: AsyncIterable<GenerateEvent>, head: Fields): AsyncGenerator<string, void, void> {
  const frame = (type: string, more: Fields) => sse({ type, ...more }, type);
  const nothing = { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
  const message = { ...head, content: [], stop_reason: null, stop_sequence: null, usage: nothing };
  yield frame("message_start", { message });
  let index = -1;
  let open: string | undefined;
  let calls = 0;
  const begin = function* (type: string, block: Fields) {
    if (open === type && type !== "tool_use") return;
    if (open !== undefined) yield frame("content_block_stop", { index });
    open = type;
    index += 1;
    yield frame("content_block_start", { index, content_block: { type, ...block } });
  };
  const delta = (more: Fields) => frame("content_block_delta", { index, delta: more });
  for await (const event of events) {
    if (event.type === "text" || event.type === "bad_call") {
      yield* begin("text", { text: "" });
      yield delta({ type: "text_delta", text: event.type === "text" ? event.text : event.raw });
    } else if (event.type === "thinking") {
      yield* begin("thinking", { thinking: "", signature: "" });
      yield delta({ type: "thinking_delta", thinking: event.text });
    } else if (event.type === "tool_call") {
      calls += 1;
      yield* begin("tool_use", { id: randomId("toolu_"), name: event.call.name, input: {} });
      yield delta({ type: "input_json_delta", partial_json: JSON.stringify(event.call.arguments) });
    } else if (event.type === "done") {
      if (open !== undefined) yield frame("content_block_stop", { index });
      const stop = { stop_reason: stopReason(event.finish, calls), stop_sequence: null };
      yield frame("message_delta", { delta: stop, usage: usageOf(event.usage) });
      yield frame("message_stop", {});
    }
  }
}
