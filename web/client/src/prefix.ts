// Replies that continue a text: the last message of a conversation, of role `assistant` with `prefix`.

import { RullamaError } from "./errors.js";
import type { AnswerRequest } from "./protocol.js";
import type { ContentPart, GenerateEvent, Message } from "./types.js";

/** The messages before a prefix, and its text. */
export function splitPrefix(messages: Message[]): { turns: Message[]; prefix?: string } {
  const at = messages.findIndex(({ prefix }) => prefix);
  if (at < 0) return { turns: messages };
  const { role, content, toolCalls } = messages[at]!;
  const text = typeof content === "string" ? content : textOf(content);
  if (at < messages.length - 1 || role !== "assistant" || text === undefined || toolCalls?.length) {
    throw new RullamaError("bad_options", "prefix is for the last message, of role assistant, with nothing but text");
  }
  return { turns: messages.slice(0, at), prefix: text };
}

/** The text of parts; undefined where one is something else. */
function textOf(parts: ContentPart[]): string | undefined {
  return parts.every((part) => part.type === "text") ? parts.map(({ text }) => text).join("") : undefined;
}

/** A conversation with the reply to it: one message where the reply continues a prefix. */
export function withReply(messages: Message[], reply: Message): Message[] {
  const { turns, prefix } = splitPrefix(messages);
  return [...turns, prefix === undefined ? reply : { ...reply, content: prefix + String(reply.content) }];
}

/** What is needed of a session of the engine. */
interface Answers {
  generate(request: string, each: (event: string) => boolean): Promise<void>;
  tokens(): Uint32Array;
}

/**
 * Continues a prefix. The engine renders messages only as whole turns, so a first pass renders them (for a single token), and a second one
 * continues the tokens of that prompt, which are cached by then, and those of the prefix.
 */
export async function continuePrefix(
  session: Answers,
  { prefix, messages, ...request }: AnswerRequest & { prefix: string },
  tokenize: (text: string) => Uint32Array,
  each: (event: string) => boolean,
): Promise<void> {
  refuse(request);
  let end: Extract<GenerateEvent, { type: "done" }> | undefined;
  const first = { ...request, messages, think: false, options: { num_predict: 1, temperature: 0 } };
  await session.generate(JSON.stringify(first), (text) => {
    const event = JSON.parse(text) as GenerateEvent;
    if (event.type === "done") end = event;
    const isTold = event.type === "prefill" || (event.type === "done" && event.finish === "cancelled");
    return isTold ? each(text) : false;
  });
  if (end === undefined || end.finish === "cancelled") return;
  const prompt = session.tokens().subarray(0, end.usage.promptTokens);
  const { think: _think, tools: _tools, ...rest } = request;
  await session.generate(JSON.stringify({ ...rest, ids: [...prompt, ...tokenize(prefix)] }), each);
}

/** Continued tokens are neither parsed nor do they hold images. */
function refuse({ tools, think, media, constraint }: Partial<AnswerRequest>): void {
  const given = { tools: tools?.length, thinking: think, "images and audio": media?.length, "a format": constraint };
  for (const [name, value] of Object.entries(given)) {
    if (!value) continue;
    throw new RullamaError("bad_options", `a reply that continues a prefix cannot be combined with ${name}`);
  }
}
