// OpenAI's routes: chat completions, completions, embeddings and models.

import type { ChatModel } from "../chat-model.js";
import { RullamaError } from "../errors.js";
import { OpenAi, completionChunks, messagesOf, optionsOf, wholeCompletion } from "../openai.js";
import type { ChatCompletionParams, EmbeddingCreateParams } from "../openai-types.js";
import { COMPLETIONS_REFUSED, refuse } from "../refuse.js";
import type { GenerateEvent } from "../types.js";
import { type ErrorShape, begun, json, randomId, sse, streamed } from "./responses.js";

export const OPENAI_ERRORS: ErrorShape = {
  body: ({ status, message, code }) => ({
    error: { message, type: status < 500 ? "invalid_request_error" : "server_error", param: null, code },
  }),
  frame: (failure) => sse(OPENAI_ERRORS.body(failure)),
};

export async function chatCompletions(model: ChatModel, params: ChatCompletionParams, signal: AbortSignal) {
  const events = model.chat(messagesOf(params.messages ?? []), { ...optionsOf(params), signal });
  const head = headOf("chatcmpl-", params.model ?? model.info.name);
  if (!params.stream) return json(await wholeCompletion(events, head, params.logprobs ?? false));
  const chunks = completionChunks(await begun(events), head, params.stream_options?.include_usage ?? false);
  return streamed(frames(chunks), "text/event-stream", OPENAI_ERRORS, signal);
}

function headOf(prefix: string, model: string) {
  return { id: randomId(prefix), created: Math.floor(Date.now() / 1000), model };
}

async function* frames(chunks: AsyncIterable<unknown>): AsyncGenerator<string, void, void> {
  for await (const chunk of chunks) yield sse(chunk);
  yield sse("[DONE]");
}

/** The older route: text to continue. */
export async function completions(model: ChatModel, params: Record<string, unknown>, signal: AbortSignal) {
  const { prompt, stream } = params;
  const only = Array.isArray(prompt) && prompt.length === 1 ? (prompt[0] as unknown) : prompt;
  if (typeof only !== "string") throw new RullamaError("bad_options", "prompt must be one text");
  if ((params["best_of"] ?? 1) !== 1) throw new RullamaError("bad_options", "best_of must be 1: one answer at a time");
  refuse(params, COMPLETIONS_REFUSED);
  const options = optionsOf({ ...(params as unknown as ChatCompletionParams), messages: [] });
  const events = model.complete(only, { ...options, signal });
  const head = headOf("cmpl-", typeof params["model"] === "string" ? params["model"] : model.info.name);
  const choice = (text: string, finish: string | null) => ({
    ...head,
    object: "text_completion",
    choices: [{ index: 0, text, logprobs: null, finish_reason: finish }],
  });
  const pieces = async function* (from: AsyncIterable<GenerateEvent>) {
    for await (const event of from) {
      if (event.type === "text" || event.type === "thinking") yield choice(event.text, null);
      if (event.type === "done")
        yield { ...choice("", event.finish === "stop" ? "stop" : "length"), usage: usage(event) };
    }
  };
  if (stream) return streamed(frames(pieces(await begun(events))), "text/event-stream", OPENAI_ERRORS, signal);
  let whole = choice("", null);
  for await (const piece of pieces(events)) {
    const [last] = whole.choices;
    whole = { ...piece, choices: [{ ...piece.choices[0]!, text: last!.text + piece.choices[0]!.text }] };
  }
  signal.throwIfAborted();
  return json(whole);
}

function usage({ usage: { promptTokens, answerTokens } }: Extract<GenerateEvent, { type: "done" }>) {
  const total = promptTokens + answerTokens;
  return { prompt_tokens: promptTokens, completion_tokens: answerTokens, total_tokens: total };
}

export async function embeddings(model: ChatModel, params: EmbeddingCreateParams, signal: AbortSignal) {
  return json(await new OpenAi(model).embeddings.create(params, { signal }));
}

export function models(names: string[]): Response {
  const data = names.map((id) => ({ id, object: "model", created: 0, owned_by: "rullama" }));
  return json({ object: "list", data });
}
