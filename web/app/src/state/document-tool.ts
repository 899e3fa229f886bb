// The tool that lets a model search the documents of its conversation by itself.

import type { Turn } from "../lib/conversation.js";
import { excerptBlock } from "../lib/excerpts.js";
import { documentsTool, type AppTool } from "../tools/builtin.js";
import { chats } from "./chats.svelte.js";
import { searchable } from "./documents.svelte.js";
import { find } from "./retrieval.svelte.js";

const MOST = 5;
const EXCERPT = 600;

/** The tool for an answer: what it finds is numbered on from what the answer was shown before, so that it can be cited. */
export function searchTool(turn: Turn, path: readonly Turn[]): AppTool {
  return documentsTool(async (query, signal) => {
    const { conversation } = turn;
    const texts = await searchable(path, conversation, chats().offered(conversation).collections ?? []);
    if (texts.length === 0) return "No documents are attached to this chat.";
    const { found, searched } = await find(query, texts, { top: MOST, least: EXCERPT, signal });
    if (found.length === 0) return "Nothing was found.";
    const sources = [...(turn.sources ?? [])];
    const blocks = found.map(({ score: _score, ...source }) => {
      const known = sources.findIndex(({ document, start }) => document === source.document && start === source.start);
      if (known < 0) sources.push(source);
      return excerptBlock(known < 0 ? sources.length : known + 1, source);
    });
    turn.sources = sources;
    turn.searched = searched;
    return blocks.join("\n\n");
  });
}
