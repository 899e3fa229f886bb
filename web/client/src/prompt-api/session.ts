// A session of the Prompt API: prompts in order, each with the loop of its tool calls.

import type { ChatModel } from "../chat-model.js";
import type { GenerateOptions, Message, Tool, ToolCall } from "../types.js";
import { withReply } from "../prefix.js";
import { Context, measure } from "./context.js";
import { checkActive } from "./document.js";
import { destroyedError, promptError } from "./errors.js";
import type { ConvertedMessage, CoreOptions } from "./idl.js";
import { capture, validate } from "./prompts.js";
import { LanguageModelToolCall } from "./tool-values.js";
import type { LanguageModelTool, MessageType, PromptPart, SamplingMode } from "./types.js";

/** The share of the context that old exchanges leave to a reply, which would end after a few words otherwise. */
const REPLY_SHARE = 0.1;

/** Rounds of tool calls in one prompt. */
const MOST_ROUNDS = 16;

const SAMPLING: Record<SamplingMode, GenerateOptions> = {
  "most-predictable": { temperature: 0 },
  predictable: { temperature: 0.4 },
  "slightly-predictable": { temperature: 0.7 },
  balanced: {},
  "slightly-creative": { temperature: 1.15 },
  creative: { temperature: 1.3 },
  "most-creative": { temperature: 1.6 },
};

/** A piece of a reply: text, or a call that the page answers. */
export type Chunk = string | Extract<PromptPart, { type: "tool-call" }>;

export interface Request {
  messages: ConvertedMessage[];
  format?: GenerateOptions["format"];
}

export class Session {
  private queue: Promise<unknown> = Promise.resolve();
  private waiting = 0;
  private readonly destroyed = new AbortController();
  /** Aborts when the session is destroyed, or the signal that it was created with aborts, which does not keep it alive. */
  private readonly ended: AbortSignal;

  constructor(
    readonly model: ChatModel,
    readonly options: CoreOptions,
    readonly context: Context,
    private readonly onOverflow: () => void,
    created?: AbortSignal,
  ) {
    const { signal } = this.destroyed;
    this.ended = created ? AbortSignal.any([signal, created]) : signal;
  }

  /** Whether replies are lists of parts: calls of tools are expected, and the page answers some of them. */
  get hasParts(): boolean {
    const { expectedOutputs, tools } = this.options;
    const areRun = tools.length > 0 && tools.every(({ execute }) => execute !== undefined);
    return !areRun && expectedOutputs.some(({ type }) => type === "tool-call");
  }

  destroy(): void {
    this.destroyed.abort(destroyedError());
  }

  /** The signal of a call; throws where it has aborted, or the document is not active. */
  signalOf(signal: AbortSignal | undefined): AbortSignal {
    checkActive();
    const both = signal ? AbortSignal.any([this.ended, signal]) : this.ended;
    both.throwIfAborted();
    return both;
  }

  check(messages: ConvertedMessage[], isMeasured = false): void {
    const inputs = new Set<MessageType>(this.options.expectedInputs.map(({ type }) => type));
    validate(messages, { inputs, mayStart: isMeasured || (this.context.isEmpty && this.waiting === 0) });
  }

  async measure(messages: ConvertedMessage[], signal: AbortSignal): Promise<number> {
    return this.untilAborted(
      capture(messages).then((captured) => measure(this.model, captured)),
      signal,
    );
  }

  append({ messages }: Request, signal: AbortSignal): Promise<void> {
    const captured = capture(messages);
    captured.catch(() => {});
    return this.inTurn(async () => {
      const added = (await captured).map(withoutPrefix);
      const tokens = await measure(this.model, added);
      signal.throwIfAborted();
      this.makeRoom(tokens);
      this.context.add({ messages: added, tokens });
    }, signal);
  }

  /** Answers a prompt; the session keeps both once the reply is whole. */
  prompt(request: Request, signal: AbortSignal, each: (chunk: Chunk) => void): Promise<void> {
    const captured = capture(request.messages);
    captured.catch(() => {});
    return this.inTurn(async () => {
      const asked = await captured;
      const tokens = await measure(this.model, asked);
      signal.throwIfAborted();
      this.makeRoom(tokens, Math.floor(this.context.window * REPLY_SHARE));
      try {
        const messages = await this.generate(asked, request, signal, each);
        signal.throwIfAborted();
        this.context.add({ messages, tokens: await measure(this.model, messages) });
      } catch (error) {
        signal.throwIfAborted();
        throw promptError(error, this.context.usage + tokens, this.context.window);
      }
    }, signal);
  }

  private makeRoom(tokens: number, reply = 0): void {
    if (this.context.makeRoom(tokens, reply)) this.onOverflow();
  }

  /** The prompt with the reply: calls tools that can be called here, and goes on until there is nothing to call. */
  private async generate(
    asked: Message[],
    { format }: Request,
    signal: AbortSignal,
    each: (chunk: Chunk) => void,
  ): Promise<Message[]> {
    const { tools, samplingMode, raw } = this.options;
    const options: GenerateOptions = {
      ...(raw ?? SAMPLING[samplingMode ?? "balanced"]),
      ...(tools.length > 0 ? { tools: tools.map(toolOf) } : {}),
      ...(format === undefined ? {} : { format }),
      signal,
    };
    let exchange = asked;
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const { text, calls } = await this.reply([...this.context.messages, ...exchange], options, signal, each);
      const toolCalls = calls.length > 0 ? { toolCalls: calls } : {};
      exchange = withReply(exchange, { role: "assistant", content: text, ...toolCalls });
      if (calls.length === 0) return exchange;
      const runs = calls.map((call) => tools.find(({ name }) => name === call.name));
      // A call that only the page can answer ends the reply.
      if (runs.some((tool) => tool !== undefined && tool.execute === undefined)) {
        for (const { name, arguments: given } of calls) {
          const value = new LanguageModelToolCall({ callId: crypto.randomUUID(), name, arguments: given });
          each({ type: "tool-call", value });
        }
        return exchange;
      }
      exchange = [...exchange, ...(await Promise.all(calls.map((call, index) => result(call, runs[index]))))];
      signal.throwIfAborted();
    }
    return exchange;
  }

  private async reply(
    messages: Message[],
    options: GenerateOptions,
    signal: AbortSignal,
    each: (chunk: Chunk) => void,
  ): Promise<{ text: string; calls: ToolCall[] }> {
    let text = "";
    const calls: ToolCall[] = [];
    const say = (more: string) => {
      text += more;
      if (more !== "" && !signal.aborted) each(more);
    };
    for await (const event of this.model.chat(messages, options)) {
      if (event.type === "text") say(event.text);
      else if (event.type === "bad_call") say(event.raw);
      else if (event.type === "tool_call") calls.push(event.call);
    }
    return { text, calls };
  }

  /** After what came before; settles at once when the signal aborts, though the engine may still be ending. */
  private inTurn<T>(job: () => Promise<T>, signal: AbortSignal): Promise<T> {
    this.waiting += 1;
    const result = this.queue
      .then(() => {
        signal.throwIfAborted();
        return job();
      })
      .finally(() => (this.waiting -= 1));
    this.queue = result.catch(() => {});
    return this.untilAborted(result, signal);
  }

  private async untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
    work.catch(() => {});
    let abort = () => {};
    const aborted = new Promise<never>((_, reject) => (abort = () => reject(signal.reason as Error)));
    aborted.catch(() => {});
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    try {
      return await Promise.race([aborted, work]);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }
}

/** A prefix that no reply continues is a reply of its own. */
export function withoutPrefix({ prefix: _prefix, ...message }: Message): Message {
  return message;
}

export function toolOf({ name, description, inputSchema }: LanguageModelTool): Tool {
  return { type: "function", function: { name, description, parameters: inputSchema as Record<string, unknown> } };
}

/** What a tool says; its failure is told to the model, which may try something else. */
async function result({ name, arguments: given }: ToolCall, tool: LanguageModelTool | undefined): Promise<Message> {
  const answer = (content: string): Message => ({ role: "tool", toolName: name, content });
  if (!tool?.execute) return answer(JSON.stringify({ error: `there is no tool called ${name}` }));
  try {
    return answer(String(await tool.execute(given)));
  } catch (error) {
    return answer(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }));
  }
}
