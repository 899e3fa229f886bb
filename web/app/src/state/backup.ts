// Conversations to files and back.

import type { Conversation } from "../lib/conversation.js";
import { toMarkdown, toPage } from "../lib/documents.js";
import { download } from "../lib/download.js";
import { ImportError, textOf } from "../lib/import.js";
import { FORMAT } from "../lib/export.js";
import { storageProblem } from "../lib/failures.js";
import { foreign } from "../lib/import-others.js";
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
    notices.show(t("chats.notExported", { reason: storageProblem(error) }));
  }
}

/** Exports a chat as a document for people. */
export async function exportDocument(one: Conversation, kind: "md" | "html"): Promise<void> {
  try {
    const path = await chats().shownPath(one.id);
    const page = kind === "html";
    const text = page ? await toPage(one, path, (id) => chats().blob(id)) : toMarkdown(one, path);
    const type = page ? "text/html" : "text/markdown";
    download(`${one.title}.${kind}`, new Blob([text], { type: `${type};charset=utf-8` }));
  } catch (error) {
    notices.show(t("chats.notExported", { reason: storageProblem(error) }));
  }
}

/** Larger files of other programs are not read: they must fit into memory whole. */
const MOST_FOREIGN = 300_000_000;

/** Whether a file begins like one that this app exported; what is no JSON is told by its reader. */
async function isOurs(file: File): Promise<boolean> {
  const head = await file.slice(0, 400).text();
  return head.includes(FORMAT) || !/^\s*(?:\[|\{\s*"(?:conv|id|title|mapping|chat)")/u.test(head);
}

async function importForeign(file: File): Promise<number> {
  if (file.size > MOST_FOREIGN) throw new ImportError(t("import.tooLarge"));
  const stored = foreign(await file.text());
  await chats().adopt(stored);
  return stored.length;
}

/** Imports a file and says how it went. */
export async function importFile(file: File): Promise<void> {
  try {
    const count = (await isOurs(file)) ? await chats().import(textOf(file)) : await importForeign(file);
    notices.show(t("chats.imported", { count }));
  } catch (error) {
    const why = error instanceof ImportError ? error.message : t("chats.notStored");
    notices.show(t("chats.notImported", { name: file.name, reason: why }));
  }
}
