// Messages that were saved to be used again.

import { titleOf } from "../lib/conversation.js";
import { t } from "../text/index.svelte.js";
import { UNDO_MS } from "./chats.svelte.js";
import { notices } from "./notices.svelte.js";
import { change, MOST_NAME, settings, type Prompt } from "./settings.svelte.js";

/** Saves a message, under its first words where no name is given. The same name is the same prompt. */
export function savePrompt(text: string, given?: string, id: string = crypto.randomUUID()): void {
  const name = (given?.trim() || titleOf(text)).slice(0, MOST_NAME);
  const others = settings.prompts.filter((one) => one.name !== name && one.id !== id);
  const prompts = [...others, { id, name, text: text.trim() }].sort((a, b) => a.name.localeCompare(b.name));
  change({ prompts });
  notices.show(t("prompts.kept", { name }));
}

export function removePrompt(prompt: Prompt): void {
  const { id, name, text } = prompt;
  change({ prompts: settings.prompts.filter((one) => one.id !== id) });
  const action = { label: t("common.undo"), run: () => savePrompt(text, name, id) };
  notices.show(t("prompts.deleted", { name }), { action, stays: UNDO_MS });
}

/** The prompts that a message like `/name` asks for; none where it is an ordinary message. */
export function promptsFor(text: string): Prompt[] {
  const [, wanted] = /^\/([^\n]*)$/u.exec(text) ?? [];
  if (wanted === undefined) return [];
  const words = wanted.trim().toLocaleLowerCase();
  return settings.prompts.filter(({ name }) => name.toLocaleLowerCase().includes(words)).slice(0, 8);
}
