// OpenAI's route `/responses`, which the AI SDK's OpenAI provider uses by default.

import type { ChatModel } from "../chat-model.js";
import type { ResponseFormat, ToolChoice } from "../constraint.js";
import { CancelledError, RullamaError } from "../errors.js";
import { RESPONSES_REFUSED, refuse } from "../refuse.js";
import { thinkAt } from "../think.js";
import type { ContentPart, GenerateEvent, GenerateOptions, Message, Tool, Usage } from "../types.js";
import { OPENAI_ERRORS } from "./openai.js";
import { begun, given, json, list, randomId, record, sse, streamed, text } from "./responses.js";

type Fields = Record<string, unknown>;

/** Items that are remembered. */
const REMEMBERED = 1000;

/** What was written before, by its ids: clients name items instead of sending them again. */
export class WrittenItems {
  private readonly items = new Map<string, Fields>();

  add(item: Fields): void {
    this.items.set(String(item["id"]), item);
    const [oldest] = this.items.keys();
    if (this.items.size > REMEMBERED && oldest !== undefined) this.items.delete(oldest);
  }

  get(id: unknown): Fields {
    const item = this.items.get(String(id));
    if (item) return item;
    throw new RullamaError("bad_options", `there is no item ${String(id)} any more: send the whole item`);
  }
}

export async function responses(
  model: ChatModel,
  request: Fields,
  signal: AbortSignal,
  written: WrittenItems,
): Promise<Response> {
  refuse(request, RESPONSES_REFUSED);
  const events = await begun(model.chat(inputOf(request, written), { ...optionsOf(request), signal }));
  const head: Fields = {
    id: randomId("resp_"),
    object: "response",
    created_at: Math.floor(Date.now() / 1000),
    model: typeof request["model"] === "string" ? request["model"] : model.info.name,
    error: null,
    incomplete_details: null,
    instructions: request["instructions"] ?? null,
    parallel_tool_calls: request["parallel_tool_calls"] ?? true,
    tools: request["tools"] ?? [],
    tool_choice: request["tool_choice"] ?? "auto",
    metadata: {},
  };
  const reply = new Reply(head, written);
  if (request["stream"] === true) {
    return streamed(reply.frames(events), "text/event-stream", OPENAI_ERRORS, signal);
  }
  for await (const _frame of reply.frames(events)) void _frame;
  if (reply.isCancelled) throw new CancelledError();
  return json(reply.object);
}

function inputOf(request: Fields, written: WrittenItems): Message[] {
  const { instructions, input } = request;
  const messages: Message[] = typeof instructions === "string" ? [{ role: "system", content: instructions }] : [];
  if (typeof input === "string") return [...messages, { role: "user", content: input }];
  const names = new Map<string, string>();
  for (const value of list(input, "input")) {
    const item = record(value, "an item of input");
    addItem(messages, item["type"] === "item_reference" ? written.get(item["id"]) : item, names);
  }
  return messages;
}

/** Adds an item. What the model wrote in one turn is several of them: its thoughts, its text, and each of its calls. */
function addItem(messages: Message[], item: Fields, names: Map<string, string>): void {
  const { type = "message" } = item;
  if (type === "message") {
    const role = item["role"] === "developer" ? "system" : (text(item["role"], "role") as Message["role"]);
    const content = contentOf(item["content"]);
    if (role === "assistant" && typeof content === "string") replyIn(messages).content += content;
    else messages.push({ role, content });
  } else if (type === "function_call") {
    const name = text(item["name"], "name");
    names.set(String(item["call_id"]), name);
    const input = JSON.parse(text(item["arguments"], "arguments") || "{}") as Record<string, unknown>;
    const turn = replyIn(messages);
    turn.toolCalls = [...(turn.toolCalls ?? []), { name, arguments: input }];
  } else if (type === "function_call_output") {
    const toolName = names.get(String(item["call_id"]));
    const { output } = item;
    const said = typeof output === "string" ? output : JSON.stringify(output);
    messages.push({ role: "tool", content: said, ...(toolName === undefined ? {} : { toolName }) });
  } else if (type === "reasoning") {
    const thoughts = list(item["summary"] ?? [], "summary").map((part) => text(record(part, "a part")["text"], "text"));
    if (thoughts.length > 0) replyIn(messages).thinking = thoughts.join("");
  } else {
    throw new RullamaError("bad_options", `items of type ${String(type)} are not supported`);
  }
}

/** The model's turn that is the last message; a new one where it is somebody else's. */
function replyIn(messages: Message[]): Message & { content: string } {
  const last = messages.at(-1);
  if (last?.role === "assistant" && typeof last.content === "string") return last as Message & { content: string };
  const turn = { role: "assistant" as const, content: "" };
  messages.push(turn);
  return turn;
}

function contentOf(content: unknown): Message["content"] {
  if (typeof content === "string") return content;
  const parts = list(content, "content").map((value): ContentPart => {
    const part = record(value, "a part");
    const { type } = part;
    if (type === "input_text" || type === "output_text") return { type: "text", text: text(part["text"], "text") };
    if (type === "input_image") return { type: "image", image: text(part["image_url"], "image_url") };
    throw new RullamaError("bad_options", `parts of type ${String(type)} are not supported`);
  });
  return parts.every((part) => part.type === "text") ? parts.map((part) => part.text).join("") : parts;
}

function optionsOf(request: Fields): GenerateOptions {
  const { tools, tool_choice: choice, text: shape, reasoning } = request;
  const format = shape === undefined ? undefined : formatOf(record(shape, "text")["format"]);
  const effort = reasoning ? record(reasoning, "reasoning")["effort"] : undefined;
  return given<GenerateOptions>({
    maxTokens: request["max_output_tokens"] as number | undefined,
    temperature: request["temperature"] as number | undefined,
    topP: request["top_p"] as number | undefined,
    tools: tools === undefined ? undefined : list(tools, "tools").map(toolOf),
    toolChoice: choiceOf(choice),
    parallelToolCalls: request["parallel_tool_calls"] as boolean | undefined,
    format,
    ...thinkAt(effort, "the effort of reasoning"),
  });
}

function formatOf(value: unknown): ResponseFormat | undefined {
  if (value === undefined || value === null) return undefined;
  const { type, schema } = record(value, "format");
  if (type === "text") return undefined;
  if (type === "grammar") return record(value, "format");
  return type === "json_object" ? "json" : record(schema, "schema");
}

function choiceOf(choice: unknown): ToolChoice | undefined {
  if (choice === undefined || choice === null) return undefined;
  if (choice === "auto" || choice === "none" || choice === "required") return choice;
  return { name: text(record(choice, "tool_choice")["name"], "the name in tool_choice") };
}

function toolOf(value: unknown): Tool {
  const { type, name, description, parameters } = record(value, "a tool");
  if (type !== "function") throw new RullamaError("bad_options", `tools of type ${String(type)} are not supported`);
  const declared = { name: text(name, "name"), description: description as string, parameters: parameters as Fields };
  return { type, function: given<Tool["function"]>(declared) };
}

/** A response that grows: its frames, and the whole object at its end. */
class Reply {
  object: Fields;
  isCancelled = false;
  private readonly output: Fields[] = [];
  private open: { kind: "message" | "reasoning"; id: string; text: string } | undefined;
  private number = 0;

  constructor(
    private readonly head: Fields,
    private readonly written: WrittenItems,
  ) {
    this.object = { ...head, status: "in_progress", output: [], usage: null };
  }

  async *frames(events: AsyncIterable<GenerateEvent>): AsyncGenerator<string, void, void> {
    yield this.frame("response.created", { response: this.object });
    yield this.frame("response.in_progress", { response: this.object });
    for await (const event of events) {
      if (event.type === "text") yield* this.say("message", event.text);
      else if (event.type === "bad_call") yield* this.say("message", event.raw);
      else if (event.type === "thinking") yield* this.say("reasoning", event.text);
      else if (event.type === "tool_call") yield* this.call(event.call);
      else if (event.type === "done") yield* this.end(event);
    }
  }

  private frame(type: string, more: Fields): string {
    return sse({ type, sequence_number: this.number++, ...more }, type);
  }

  private *say(kind: "message" | "reasoning", delta: string): Generator<string, void, void> {
    if (this.open?.kind !== kind) {
      yield* this.close();
      this.open = { kind, id: randomId(kind === "message" ? "msg_" : "rs_"), text: "" };
      const at = { item_id: this.open.id, output_index: this.output.length };
      yield this.frame("response.output_item.added", { output_index: at.output_index, item: this.item("in_progress") });
      const part =
        kind === "message" ? { type: "output_text", text: "", annotations: [] } : { type: "summary_text", text: "" };
      if (kind === "message") yield this.frame("response.content_part.added", { ...at, content_index: 0, part });
      else yield this.frame("response.reasoning_summary_part.added", { ...at, summary_index: 0, part });
    }
    this.open.text += delta;
    yield kind === "message"
      ? this.frame("response.output_text.delta", { ...this.at(), content_index: 0, delta, logprobs: [] })
      : this.frame("response.reasoning_summary_text.delta", { ...this.at(), summary_index: 0, delta });
  }

  private at() {
    return { item_id: this.open?.id, output_index: this.output.length };
  }

  private item(status: string): Fields {
    const { kind, id, text: said } = this.open!;
    if (kind === "reasoning")
      return { type: "reasoning", id, summary: said ? [{ type: "summary_text", text: said }] : [] };
    const content = status === "completed" ? [{ type: "output_text", text: said, annotations: [] }] : [];
    return { type: "message", id, status, role: "assistant", content };
  }

  private *close(): Generator<string, void, void> {
    if (!this.open) return;
    const { kind, text: said } = this.open;
    const at = this.at();
    if (kind === "message") {
      yield this.frame("response.output_text.done", { ...at, content_index: 0, text: said, logprobs: [] });
      const part = { type: "output_text", text: said, annotations: [] };
      yield this.frame("response.content_part.done", { ...at, content_index: 0, part });
    } else {
      yield this.frame("response.reasoning_summary_text.done", { ...at, summary_index: 0, text: said });
      const part = { type: "summary_text", text: said };
      yield this.frame("response.reasoning_summary_part.done", { ...at, summary_index: 0, part });
    }
    const item = this.item("completed");
    yield this.frame("response.output_item.done", { output_index: at.output_index, item });
    this.keep(item);
    this.open = undefined;
  }

  private *call({ name, arguments: input }: { name: string; arguments: object }): Generator<string, void, void> {
    yield* this.close();
    const id = randomId("fc_");
    const at = { item_id: id, output_index: this.output.length };
    const item = { type: "function_call", id, call_id: randomId("call_"), name, arguments: "", status: "in_progress" };
    const whole = JSON.stringify(input);
    yield this.frame("response.output_item.added", { output_index: at.output_index, item });
    yield this.frame("response.function_call_arguments.delta", { ...at, delta: whole });
    yield this.frame("response.function_call_arguments.done", { ...at, arguments: whole });
    const done = { ...item, arguments: whole, status: "completed" };
    yield this.frame("response.output_item.done", { output_index: at.output_index, item: done });
    this.keep(done);
  }

  private keep(item: Fields): void {
    this.output.push(item);
    this.written.add(item);
  }

  private *end({ finish, usage }: Extract<GenerateEvent, { type: "done" }>): Generator<string, void, void> {
    yield* this.close();
    this.isCancelled = finish === "cancelled";
    const isCut = finish === "length" || finish === "context";
    this.object = {
      ...this.head,
      status: isCut ? "incomplete" : "completed",
      incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
      output: this.output,
      usage: usageOf(usage),
    };
    yield this.frame(isCut ? "response.incomplete" : "response.completed", { response: this.object });
  }
}

function usageOf({ promptTokens, cachedTokens, answerTokens }: Usage) {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: answerTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + answerTokens,
  };
}
