// Names for chats, written by the model that answered first.

import { titleOf, type Turn } from "../lib/conversation.js";
import { t } from "../text/index.svelte.js";
import { chats } from "./chats.svelte.js";
import { model } from "./model.svelte.js";
import { settings } from "./settings.svelte.js";

/** Tokens of a title, and characters of the messages it is made from. */
const MOST_TOKENS = 24;
const MOST_TEXT = 2000;

/** A title as a model writes it: one line, without quotes, markup or a full stop. */
export function cleanTitle(text: string): string {
  const line = text.trim().split("\n")[0] ?? "";
  const plain = line.replace(/[*_`#]+/gu, "").replace(/^\s*(?:title|titel)\s*:/iu, "");
  return plain
    .trim()
    .replace(/^["'“„«「]+|["'”“»」]+$/gu, "")
    .replace(/[.。]$/u, "")
    .trim()
    .slice(0, 80);
}

/** Names a chat after its first answer, unless a person did. */
export async function nameChat(asked: Turn, answer: Turn): Promise<void> {
  const { api } = model;
  if (!settings.titles || !api || asked.parent !== null || answer.finish !== "stop") return;
  const own = () => chats().list.find(({ id, title }) => id === asked.conversation && title === titleOf(asked.content));
  if (!own()) return;
  const said = `${asked.content.slice(0, MOST_TEXT)}\n\n${answer.content.slice(0, MOST_TEXT)}`;
  const messages = [{ role: "user" as const, content: `${t("titles.prompt")}\n\n${said}` }];
  let text = "";
  try {
    for await (const event of api.chat(messages, { temperature: 0, maxTokens: MOST_TOKENS, think: false })) {
      if (event.type === "text") text += event.text;
    }
  } catch {
    // The first words are a good enough name.
    return;
  }
  const title = cleanTitle(text);
  if (title !== "" && own()) await chats().rename(asked.conversation, title);
}
