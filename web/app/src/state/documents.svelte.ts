// Documents of a conversation: what they take of the context, and what the model is shown of them.

import type { Attachment } from "../lib/attachments.js";
import type { Source, Turn } from "../lib/conversation.js";
import { excerptBlock } from "../lib/excerpts.js";
import { chats } from "./chats.svelte.js";
import { collections } from "./library.svelte.js";
import { model } from "./model.svelte.js";
import { find, type Findings, type Searched } from "./retrieval.svelte.js";

/** Characters whose tokens are counted; of longer texts the rest is estimated. */
const COUNTED = 60_000;
/** Share of the context that prompts may take: the rest is for the answer. */
const PROMPT_SHARE = 0.75;
/** What an image or a clip takes, about. */
const MEDIA_TOKENS = 300;
const MOST_EXCERPTS = 12;
/** Characters that a passage is widened to. */
const EXCERPT = 600;

/** What the model is shown of documents. */
export interface Material {
  /** Texts that are shown in full, by the ids of attachments. */
  documents: Map<string, string>;
  sources: Source[];
  searched?: Findings["searched"];
}

const counts = new Map<string, { api: unknown; tokens: number }>();

/** Tokens of a text, for the model that is loaded; about, where it is long. */
export async function tokensOf(text: string): Promise<number> {
  const { api } = model;
  if (!api) return Math.ceil(text.length / 4);
  const head = text.slice(0, COUNTED);
  const { length } = await api.tokenize(head);
  return Math.ceil((length * text.length) / Math.max(1, head.length));
}

/** The text of an attached document; undefined where the browser lost it. */
export async function textOf({ id }: Attachment, blob?: Blob): Promise<string | undefined> {
  return (blob ?? (await chats().blob(id)))?.text();
}

/** Tokens of an attached document. */
export async function documentTokens(one: Attachment, blob?: Blob): Promise<number> {
  const { api } = model;
  const known = counts.get(one.id);
  if (known && known.api === api) return known.tokens;
  const tokens = await tokensOf((await textOf(one, blob)) ?? "");
  counts.set(one.id, { api, tokens });
  return tokens;
}

/** Tokens that documents may take in an empty chat. */
export const room = (): number => Math.floor((model.info?.context ?? 4096) * PROMPT_SHARE);

const documentsIn = (path: readonly Turn[]) =>
  path.flatMap((turn) => (turn.attachments ?? []).filter(({ kind }) => kind === "document"));

/** Everything that can be searched in a conversation: what is attached to these turns, and its collections. */
export async function searchable(
  path: readonly Turn[],
  conversation: string,
  chosen: readonly string[],
): Promise<Searched[]> {
  const texts: Searched[] = [];
  for (const one of documentsIn(path)) {
    const text = await textOf(one);
    if (text !== undefined) texts.push({ id: one.id, name: one.name, text, conversation });
  }
  if (chosen.length > 0) await collections.library();
  for (const { id, name } of chosen.flatMap((one) => collections.of(one))) {
    const text = await collections.text(id);
    if (text !== undefined) texts.push({ id, name, text });
  }
  return texts;
}

/** What the question is, for a search: short ones refer to what was asked before. */
function queryOf(path: readonly Turn[]): string {
  const asked = path.filter((turn) => turn.role === "user").map((turn) => turn.content);
  const last = asked.at(-1) ?? "";
  return last.length < 24 ? asked.slice(-2).join("\n") : last;
}

/** Shows documents in full while they fit, the newest first; of the others and of collections, the passages that the question is about. */
export async function materialFor(
  path: readonly Turn[],
  { conversation, system = "", chosen = [] }: { conversation: string; system?: string; chosen?: readonly string[] },
  how: { signal?: AbortSignal; onProgress?: (done: number, total: number) => void } = {},
): Promise<Material> {
  const documents = new Map<string, string>();
  const texts = await searchable(path, conversation, chosen);
  if (texts.length === 0) return { documents, sources: [] };
  let left = room() - (await tokensOf(system));
  for (const { content, steps = [], attachments = [] } of path) {
    const written = [content, ...steps.flatMap((step) => [step.content, ...step.calls.map(({ result }) => result)])];
    left -=
      (await tokensOf(written.join("\n"))) +
      attachments.filter(({ kind }) => kind !== "document").length * MEDIA_TOKENS;
  }
  const searched: Searched[] = [];
  for (const one of texts.toReversed()) {
    const tokens = one.conversation === undefined ? Infinity : await tokensOf(one.text);
    if (tokens > left) searched.unshift(one);
    else {
      documents.set(one.id, one.text);
      left -= tokens;
    }
  }
  if (searched.length === 0) return { documents, sources: [] };
  const findings = await find(queryOf(path), searched, { top: MOST_EXCERPTS, least: EXCERPT, ...how });
  const sources: Source[] = [];
  for (const { score: _score, ...source } of findings.found) {
    const tokens = await tokensOf(excerptBlock(MOST_EXCERPTS, source));
    if (tokens > left) break;
    left -= tokens;
    sources.push(source);
  }
  return { documents, sources, searched: findings.searched };
}
