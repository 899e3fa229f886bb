// A language model of the AI SDK.

import type { ChatModel } from "../chat-model.js";
import { randomId } from "../http/responses.js";
import type { Finish, GenerateEvent, Usage } from "../types.js";
import { converted } from "./convert.js";
import { apiError } from "./errors.js";
import type { ApiFinish, ApiUsage, CallOptions, Content, StreamPart, Warning } from "./types.js";

export class LanguageModel {
  readonly specificationVersion = "v3";
  readonly provider = "rullama";
  /** The SDK downloads what addresses name, and passes bytes. */
  readonly supportedUrls: Record<string, RegExp[]> = {};

  constructor(
    readonly modelId: string,
    private readonly load: () => Promise<ChatModel>,
  ) {}

  async doGenerate(call: CallOptions): Promise<{
    content: Content[];
    finishReason: ApiFinish;
    usage: ApiUsage;
    warnings: Warning[];
    response: { id: string; timestamp: Date; modelId: string };
  }> {
    const { events, warnings, response } = await this.begin(call);
    const content: Content[] = [];
    let end: Extract<GenerateEvent, { type: "done" }> | undefined;
    try {
      for await (const event of events) {
        if (event.type === "done") end = event;
        else addContent(content, event);
      }
    } catch (error) {
      throw this.failure(error, call);
    }
    call.abortSignal?.throwIfAborted();
    if (!end) throw apiError(new Error("a reply ended without an end"), this.modelId);
    const calls = content.filter(({ type }) => type === "tool-call").length;
    return { content, finishReason: finishOf(end.finish, calls), usage: usageOf(end.usage), warnings, response };
  }

  async doStream(call: CallOptions): Promise<{ stream: ReadableStream<StreamPart> }> {
    const { events, warnings, response } = await this.begin(call);
    const parts = streamParts(events, warnings, response, (error) => this.failure(error, call));
    const stream = new ReadableStream<StreamPart>({
      async pull(controller) {
        try {
          const { done, value } = await parts.next();
          if (call.abortSignal?.aborted) controller.error(call.abortSignal.reason);
          else if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          controller.error(error);
        }
      },
      cancel: async () => void (await parts.return()),
    });
    return { stream };
  }

  private async begin(call: CallOptions) {
    call.abortSignal?.throwIfAborted();
    try {
      const { messages, options, warnings } = converted(call);
      const model = await this.load();
      const response = { id: randomId("rullama-"), timestamp: new Date(), modelId: this.modelId };
      return { events: model.chat(messages, options), warnings, response };
    } catch (error) {
      throw this.failure(error, call);
    }
  }

  private failure(error: unknown, { abortSignal }: CallOptions): unknown {
    return abortSignal?.aborted ? abortSignal.reason : apiError(error, this.modelId);
  }
}

function addContent(content: Content[], event: GenerateEvent): void {
  const say = (type: "text" | "reasoning", text: string) => {
    const last = content.at(-1);
    if (last?.type === type) last.text += text;
    else content.push({ type, text });
  };
  if (event.type === "text") say("text", event.text);
  else if (event.type === "bad_call") say("text", event.raw);
  else if (event.type === "thinking") say("reasoning", event.text);
  else if (event.type === "tool_call") content.push(callOf(event.call));
}

function callOf({ name, arguments: input }: { name: string; arguments: object }) {
  const toolCallId = randomId("call_");
  return { type: "tool-call" as const, toolCallId, toolName: name, input: JSON.stringify(input) };
}

async function* streamParts(
  events: AsyncIterable<GenerateEvent>,
  warnings: Warning[],
  response: { id: string; timestamp: Date; modelId: string },
  failure: (error: unknown) => unknown,
): AsyncGenerator<StreamPart, void, void> {
  yield { type: "stream-start", warnings };
  yield { type: "response-metadata", ...response };
  let open: { kind: "text" | "reasoning"; id: string } | undefined;
  let blocks = 0;
  let calls = 0;
  const close = function* (): Generator<StreamPart, void, void> {
    if (open) yield { type: `${open.kind}-end`, id: open.id };
    open = undefined;
  };
  const say = function* (kind: "text" | "reasoning", delta: string): Generator<StreamPart, void, void> {
    if (open?.kind !== kind) {
      yield* close();
      open = { kind, id: String(blocks++) };
      yield { type: `${kind}-start`, id: open.id };
    }
    yield { type: `${kind}-delta`, id: open.id, delta };
  };
  try {
    for await (const event of events) {
      if (event.type === "text") yield* say("text", event.text);
      else if (event.type === "bad_call") yield* say("text", event.raw);
      else if (event.type === "thinking") yield* say("reasoning", event.text);
      else if (event.type === "tool_call") {
        yield* close();
        calls += 1;
        const call = callOf(event.call);
        const id = call.toolCallId;
        yield { type: "tool-input-start", id, toolName: call.toolName };
        yield { type: "tool-input-delta", id, delta: call.input };
        yield { type: "tool-input-end", id };
        yield call;
      } else if (event.type === "done") {
        yield* close();
        yield { type: "finish", usage: usageOf(event.usage), finishReason: finishOf(event.finish, calls) };
      }
    }
  } catch (error) {
    yield { type: "error", error: failure(error) };
  }
}

function finishOf(finish: Finish, calls: number): ApiFinish {
  const unified = {
    stop: calls > 0 ? ("tool-calls" as const) : ("stop" as const),
    length: "length" as const,
    context: "length" as const,
    cancelled: "other" as const,
  }[finish];
  return { unified, raw: finish };
}

function usageOf({ promptTokens, cachedTokens, answerTokens }: Usage): ApiUsage {
  return {
    inputTokens: {
      total: promptTokens,
      noCache: promptTokens - cachedTokens,
      cacheRead: cachedTokens,
      cacheWrite: undefined,
    },
    outputTokens: { total: answerTokens, text: undefined, reasoning: undefined },
  };
}
