// Conversations to files and back.

import { download } from "../lib/download.js";
import { ImportError } from "../lib/exchange.js";
import { chats } from "./chats.svelte.js";
import { notices } from "./notices.svelte.js";

export async function exportAll(): Promise<void> {
  const day = new Date().toISOString().slice(0, 10);
  download(`rullama-conversations-${day}.json`, await chats().export());
}

/** Imports a file and says how it went. */
export async function importFile(file: File): Promise<void> {
  try {
    const count = await chats().import(await file.text());
    notices.show(`Imported ${count} ${count === 1 ? "conversation" : "conversations"}.`);
  } catch (error) {
    const why = error instanceof ImportError ? error.message : "It could not be stored.";
    notices.show(`${file.name} was not imported. ${why}`);
  }
}
