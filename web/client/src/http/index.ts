// A `fetch` that answers instead of a server: clients of OpenAI, Ollama, Anthropic and the AI SDK talk to a model in this tab, unmodified.

import type { ChatModel } from "../chat-model.js";
import type { ChatCompletionParams, EmbeddingCreateParams } from "../openai-types.js";
import { ANTHROPIC_ERRORS, messages } from "./anthropic.js";
import { OLLAMA_ERRORS, chat, embed, embedding, generate, show, tags } from "./ollama.js";
import { OPENAI_ERRORS, chatCompletions, completions, embeddings, models } from "./openai.js";
import { WrittenItems, responses } from "./openai-responses.js";
import { type ErrorShape, HttpError, NO_RETRY, failureOf, json, record, streamed } from "./responses.js";
import { keptOpen, within } from "./waiting.js";

/** One model for all names, or models by name. */
export type Models =
  ChatModel | { names?: () => string[] | Promise<string[]>; model: (name: string) => ChatModel | Promise<ChatModel> };

type Fields = Record<string, unknown>;
type Answer = (
  model: ChatModel,
  request: Fields,
  signal: AbortSignal,
  written: WrittenItems,
) => Promise<Response> | Response;

interface Route {
  errors: ErrorShape;
  /** Answered by the model that the request names. */
  answer?: Answer;
  /** Answered with the names of all models. */
  names?: (names: string[]) => Response;
}

const POST: [string, Route][] = [
  [
    "/chat/completions",
    {
      errors: OPENAI_ERRORS,
      answer: (model, request, signal) => chatCompletions(model, request as unknown as ChatCompletionParams, signal),
    },
  ],
  ["/completions", { errors: OPENAI_ERRORS, answer: completions }],
  ["/responses", { errors: OPENAI_ERRORS, answer: responses }],
  ["/messages", { errors: ANTHROPIC_ERRORS, answer: messages }],
  ["/api/chat", { errors: OLLAMA_ERRORS, answer: chat }],
  ["/api/generate", { errors: OLLAMA_ERRORS, answer: generate }],
  ["/api/embed", { errors: OLLAMA_ERRORS, answer: embed }],
  ["/api/embeddings", { errors: OLLAMA_ERRORS, answer: embedding }],
  ["/api/show", { errors: OLLAMA_ERRORS, answer: show }],
  [
    "/embeddings",
    {
      errors: OPENAI_ERRORS,
      answer: (model, request, signal) => embeddings(model, request as unknown as EmbeddingCreateParams, signal),
    },
  ],
];

const GET: [string, Route][] = [
  ["/api/tags", { errors: OLLAMA_ERRORS, names: tags }],
  ["/api/ps", { errors: OLLAMA_ERRORS, names: tags }],
  ["/api/version", { errors: OLLAMA_ERRORS, names: () => json({ version: "0.6.0" }) }],
  ["/models", { errors: OPENAI_ERRORS, names: models }],
];

/** The shape of errors that a client of an unknown route expects. */
function shapeOf(path: string, headers: Headers): ErrorShape {
  if (path.includes("/api/")) return OLLAMA_ERRORS;
  return headers.has("anthropic-version") ? ANTHROPIC_ERRORS : OPENAI_ERRORS;
}

/**
 * A `fetch` for clients of HTTP APIs. Requests go by the end of their path, so any base address will do; nothing leaves the page. Event
 * streams begin after `patienceMs` at the latest, also while their model is still being loaded.
 */
export function modelFetch(served: Models, { patienceMs = 10_000 }: { patienceMs?: number } = {}): typeof fetch {
  const written = new WrittenItems();
  return async (input, init) => {
    const request = new Request(input, init);
    const signal = init?.signal ?? request.signal;
    signal.throwIfAborted();
    const path = new URL(request.url).pathname.replace(/\/+$/u, "");
    const routes = request.method === "POST" ? POST : GET;
    const [, route] = routes.find(([end]) => path.endsWith(end)) ?? [];
    const errors = route?.errors ?? shapeOf(path, request.headers);
    try {
      if (request.method === "HEAD" || (request.method === "GET" && path === ""))
        return new Response("Ollama is running");
      if (route?.names) return route.names(await namesOf(served));
      if (!route?.answer) throw new HttpError(404, `there is no ${request.method} ${path} here`);
      const body = await bodyOf(request);
      const name = body["model"] ?? body["name"];
      const { answer } = route;
      const answered = modelOf(served, typeof name === "string" ? name : "").then((model) =>
        answer(model, body, signal, written),
      );
      const isEvents = body["stream"] === true && errors !== OLLAMA_ERRORS;
      const soon = isEvents ? await within(answered, patienceMs) : await answered;
      return soon ?? streamed(keptOpen(answered, patienceMs), "text/event-stream", errors, signal);
    } catch (error) {
      signal.throwIfAborted();
      const failure = failureOf(error);
      return json(errors.body(failure), failure.status, NO_RETRY);
    }
  };
}

async function bodyOf(request: Request): Promise<Fields> {
  try {
    return record(JSON.parse(await request.text()), "the body");
  } catch (error) {
    throw new HttpError(400, `the body is no JSON object: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function namesOf(served: Models): Promise<string[]> {
  if ("info" in served) return [served.info.name];
  return (await served.names?.()) ?? [];
}

async function modelOf(served: Models, name: string): Promise<ChatModel> {
  return "info" in served ? served : served.model(name);
}
