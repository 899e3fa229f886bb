// Replies that continue a text: the last message of a conversation, of role `assistant` with `prefix`.

import { RullamaError } from "./errors.js";
import type { ContentPart, Message } from "./types.js";

/** The beginning of a reply: its text, and the thought before it. */
export interface ReplyPrefix {
  text: string;
  thinking?: string;
}

/** The messages before a prefix, and the prefix. */
export function splitPrefix(messages: Message[]): { turns: Message[]; prefix?: ReplyPrefix } {
  const at = messages.findIndex(({ prefix }) => prefix);
  if (at < 0) return { turns: messages };
  const { role, content, thinking, toolCalls } = messages[at]!;
  const text = typeof content === "string" ? content : textOf(content);
  if (at < messages.length - 1 || role !== "assistant" || text === undefined || toolCalls?.length) {
    throw new RullamaError("bad_options", "prefix is for the last message, of role assistant, with nothing but text");
  }
  return { turns: messages.slice(0, at), prefix: { text, ...(thinking === undefined ? {} : { thinking }) } };
}

/** The text of parts; undefined where one is something else. */
function textOf(parts: ContentPart[]): string | undefined {
  return parts.every((part) => part.type === "text") ? parts.map(({ text }) => text).join("") : undefined;
}

/** A conversation with the reply to it: one message where the reply continues a prefix. */
export function withReply(messages: Message[], reply: Message): Message[] {
  const { turns, prefix } = splitPrefix(messages);
  if (prefix === undefined) return [...turns, reply];
  const { text, ...thought } = prefix;
  return [...turns, { ...thought, ...reply, content: text + String(reply.content) }];
}
