// Conversations to files and back.

import { download } from "../lib/download.js";
import { ImportError, textOf } from "../lib/exchange.js";
import { chats } from "./chats.svelte.js";
import { notices } from "./notices.svelte.js";
import { t } from "../text/index.svelte.js";

/** Exports all conversations, or one. */
export async function exportFile(one?: { id: string; title: string }): Promise<void> {
  const day = new Date().toISOString().slice(0, 10);
  try {
    const file = await chats().export(one?.id);
    download(one ? `${one.title}.json` : `rullama-chats-${day}.json`, file);
  } catch (error) {
    notices.show(t("chats.notExported", { reason: error instanceof Error ? error.message : String(error) }));
  }
}

/** Imports a file and says how it went. */
export async function importFile(file: File): Promise<void> {
  try {
    const count = await chats().import(textOf(file));
    notices.show(t("chats.imported", { count }));
  } catch (error) {
    const why = error instanceof ImportError ? error.message : t("chats.notStored");
    notices.show(t("chats.notImported", { name: file.name, reason: why }));
  }
}
