// Ollama's routes: chat, generate, embed and what its clients ask besides.

import type { ChatModel } from "../chat-model.js";
import type { ResponseFormat } from "../constraint.js";
import { RullamaError } from "../errors.js";
import { fromBase64 } from "../media-bytes.js";
import { OLLAMA_REFUSED, RAW_REFUSED, refuse } from "../refuse.js";
import { samplingOf } from "../sampling.js";
import { thinkAt } from "../think.js";
import type {
  ContentPart,
  GenerateEvent,
  GenerateOptions,
  Message,
  SamplingOptions,
  TokenLogprob,
  Tool,
} from "../types.js";
import { type ErrorShape, begun, given, json, list, record, streamed, text } from "./responses.js";

const NS_PER_MS = 1e6;

export const OLLAMA_ERRORS: ErrorShape = {
  body: ({ message }) => ({ error: message }),
  frame: ({ message }) => `${JSON.stringify({ error: message })}\n`,
};

/** Ollama's options by this package's names; those that configure a server have no meaning here. */
function ollamaOptions(options: Record<string, unknown>): SamplingOptions {
  const { maxTokens, ...rest } = samplingOf(options);
  // Ollama's -1 and -2 mean no limit.
  return { ...rest, ...(maxTokens === undefined || maxTokens < 0 ? {} : { maxTokens }) };
}

function optionsOf(request: Record<string, unknown>, signal: AbortSignal): GenerateOptions {
  const { options, tools, think, format, logprobs, top_logprobs: top = 0 } = request;
  refuse(request, OLLAMA_REFUSED);
  return given<GenerateOptions>({
    ...ollamaOptions(options === undefined || options === null ? {} : record(options, "options")),
    logprobs: logprobs === true ? (top as number) : undefined,
    tools: tools === undefined || tools === null ? undefined : (list(tools, "tools") as Tool[]),
    ...thinkAt(think, "think"),
    format: format === "" || format === null ? undefined : (format as ResponseFormat | undefined),
    signal,
  });
}

function messageOf(value: unknown): Message {
  const { role, content, images, thinking, tool_calls: calls, tool_name: toolName } = record(value, "a message");
  const parts: ContentPart[] = list(images ?? [], "images").map((image) => ({
    type: "image",
    image: fromBase64(text(image, "an image")),
  }));
  const said = text(content ?? "", "content");
  const toolCalls = list(calls ?? [], "tool_calls").map((call) => {
    const { name, arguments: input } = record(record(call, "a tool call")["function"], "function");
    return { name: text(name, "the name of a tool"), arguments: record(input ?? {}, "arguments") };
  });
  return {
    role: text(role, "role") as Message["role"],
    content: parts.length === 0 ? said : [...parts, { type: "text", text: said }],
    ...(typeof thinking === "string" && thinking !== "" ? { thinking } : {}),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    ...(typeof toolName === "string" ? { toolName } : {}),
  };
}

/** Calls of one reply are numbered, as Ollama does. */
const callOf = (index: number, { name, arguments: input }: { name: string; arguments: object }) => ({
  function: { index, name, arguments: input },
});

const logprobOf = ({ token, logprob, bytes }: TokenLogprob) => ({ token, logprob, bytes });

interface Piece {
  text: string;
  thinking: string;
  calls: ReturnType<typeof callOf>[];
  /** Of the tokens since the piece before. */
  logprobs: (ReturnType<typeof logprobOf> & { top_logprobs: ReturnType<typeof logprobOf>[] })[];
  figures?: Record<string, unknown>;
}

const EMPTY: Piece = { text: "", thinking: "", calls: [], logprobs: [] };

async function* pieces(events: AsyncIterable<GenerateEvent>, start: number): AsyncGenerator<Piece, void, void> {
  let calls = 0;
  let logprobs: Piece["logprobs"] = [];
  for await (const event of events) {
    if (event.type === "logprobs") logprobs.push({ ...logprobOf(event.token), top_logprobs: event.top.map(logprobOf) });
    const piece = pieceOf(event);
    if (!piece) continue;
    yield { ...EMPTY, ...piece, logprobs };
    logprobs = [];
  }

  function pieceOf(event: GenerateEvent): Partial<Piece> | undefined {
    if (event.type === "text" || event.type === "thinking") return { [event.type]: event.text };
    if (event.type === "bad_call") return { text: event.raw };
    if (event.type === "tool_call") return { calls: [callOf(calls++, event.call)] };
    return event.type === "done" ? { figures: figuresOf(event, performance.now() - start) } : undefined;
  }
}

function figuresOf({ finish, usage }: Extract<GenerateEvent, { type: "done" }>, ms: number) {
  const { promptTokens, answerTokens, timeToFirstToken, decodeTokensPerSecond: rate } = usage;
  const ns = (value: number) => Math.round(value * NS_PER_MS);
  return {
    done: true,
    done_reason: finish === "context" ? "length" : finish,
    total_duration: ns(ms),
    load_duration: 0,
    prompt_eval_count: promptTokens,
    prompt_eval_duration: ns(timeToFirstToken),
    eval_count: answerTokens,
    eval_duration: ns(rate > 0 ? (answerTokens * 1000) / rate : 0),
  };
}

async function answered(
  events: AsyncIterator<GenerateEvent>,
  request: Record<string, unknown>,
  shape: (piece: Piece) => object,
  signal: AbortSignal,
): Promise<Response> {
  const start = performance.now();
  const head = { model: request["model"], created_at: new Date().toISOString() };
  const line = (piece: Piece) => ({
    ...head,
    ...shape(piece),
    ...(piece.logprobs.length === 0 ? {} : { logprobs: piece.logprobs }),
    ...(piece.figures ?? { done: false }),
  });
  const all = pieces(await begun(events), start);
  if (request["stream"] !== false) {
    const lines = async function* () {
      for await (const piece of all) yield `${JSON.stringify(line(piece))}\n`;
    };
    return streamed(lines(), "application/x-ndjson", OLLAMA_ERRORS, signal);
  }
  let whole = EMPTY;
  for await (const { text: more, thinking, calls, logprobs, figures } of all) {
    whole = {
      text: whole.text + more,
      thinking: whole.thinking + thinking,
      calls: [...whole.calls, ...calls],
      logprobs: [...whole.logprobs, ...logprobs],
      figures,
    };
  }
  signal.throwIfAborted();
  return json(line(whole));
}

export function chat(model: ChatModel, request: Record<string, unknown>, signal: AbortSignal): Promise<Response> {
  const messages = list(request["messages"] ?? [], "messages").map(messageOf);
  const shape = ({ text: content, thinking, calls }: Piece) => ({
    message: {
      role: "assistant",
      content,
      ...(thinking === "" ? {} : { thinking }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
  });
  return answered(model.chat(messages, optionsOf(request, signal)), request, shape, signal);
}

export function generate(model: ChatModel, request: Record<string, unknown>, signal: AbortSignal): Promise<Response> {
  const { prompt = "", system, images, raw } = request;
  if (raw) refuse(request, RAW_REFUSED);
  const options = optionsOf(request, signal);
  const question = messageOf({ role: "user", content: prompt, images });
  const messages: Message[] = [
    ...(typeof system === "string" && system !== "" ? [{ role: "system" as const, content: system }] : []),
    question,
  ];
  const events = raw ? model.complete(text(prompt, "prompt"), options) : model.chat(messages, options);
  const shape = ({ text: response, thinking }: Piece) => ({ response, ...(thinking === "" ? {} : { thinking }) });
  return answered(events, request, shape, signal);
}

export async function embed(model: ChatModel, request: Record<string, unknown>, signal: AbortSignal) {
  const { input, dimensions, truncate = true } = request;
  const start = performance.now();
  const made = await model.embed(input as string[], given({ dimensions: dimensions as number | undefined, signal }));
  if (truncate === false && made.cut > 0) {
    throw new RullamaError("context_full", `${made.cut} of the texts are longer than the model's context`);
  }
  return json({
    model: request["model"],
    embeddings: made.vectors.map((vector) => [...vector]),
    total_duration: Math.round((performance.now() - start) * NS_PER_MS),
    load_duration: 0,
    prompt_eval_count: made.tokens,
  });
}

/** The older route: one vector of one text. */
export async function embedding(model: ChatModel, request: Record<string, unknown>, signal: AbortSignal) {
  const made = await model.embed(text(request["prompt"], "prompt"), { signal });
  return json({ embedding: [...(made.vectors[0] ?? [])] });
}

export function tags(names: string[]): Response {
  const details = { parent_model: "", format: "gguf", family: "gemma4", families: ["gemma4"] };
  const models = names.map((name) => ({
    name,
    model: name,
    modified_at: new Date(0).toISOString(),
    size: 0,
    digest: "",
    details: { ...details, parameter_size: "", quantization_level: "" },
  }));
  return json({ models });
}

export function show({ info }: ChatModel): Response {
  const { architecture = "gemma4", parameters = 0, quantization = "", kind, thinking, capabilities } = info;
  const tools = capabilities?.includes("tools") ?? true;
  const completes = ["completion", ...(tools ? ["tools"] : []), ...(thinking ? ["thinking"] : [])];
  return json({
    modelfile: "",
    parameters: "",
    template: "",
    details: {
      parent_model: "",
      format: "gguf",
      family: architecture,
      families: [architecture],
      parameter_size: `${(parameters / 1e9).toFixed(1)}B`,
      quantization_level: quantization,
    },
    model_info: { "general.architecture": architecture, [`${architecture}.context_length`]: info.context },
    capabilities: kind === "embedding" ? ["embedding"] : completes,
  });
}
