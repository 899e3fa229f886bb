// Finds passages of documents for a question: by meaning with the embedding model, or by words where there is none.

import type { ModelApi } from "rullama";
import { keywordScores } from "../lib/keywords.js";
import { pageAt, passagesOf, widened, type Passage } from "../lib/passages.js";
import type { SearchedBy, Source } from "../lib/conversation.js";
import { embedder } from "./embedder.svelte.js";
import { collections } from "./library.svelte.js";

/** A text to be searched. */
export interface Searched {
  /** The attachment, or the document of a collection. */
  id: string;
  name: string;
  text: string;
  /** Whose attachment it is. */
  conversation?: string;
}

/** A passage that was found. */
export interface Found extends Required<Pick<Source, "name" | "text" | "document" | "start" | "end">> {
  page?: number;
  score: number;
}

export interface Findings {
  found: Found[];
  searched: SearchedBy;
}

export interface Finding {
  /** Passages, at most. */
  top: number;
  /** Characters that a passage is widened to with its neighbours. */
  least?: number;
  signal?: AbortSignal;
  /** Told how many passages have been embedded. */
  onProgress?: (done: number, total: number) => void;
}

/** Passages the model reads at a time: enough to be fast, few enough to stop. */
const BATCH = 16;
/** More would take minutes on most machines, so all are searched by words. */
export const MOST_PASSAGES = 5000;

interface Cut extends Searched {
  passages: Passage[];
}

/** The passages of some texts that answer a question best, the best first. */
export async function find(query: string, texts: readonly Searched[], how: Finding): Promise<Findings> {
  const cut = texts.map((one): Cut => ({ ...one, passages: passagesOf(one.text) }));
  const count = cut.reduce((sum, { passages }) => sum + passages.length, 0);
  const many = count > MOST_PASSAGES;
  const api = count > 0 && !many ? await embedder.ready() : undefined;
  how.signal?.throwIfAborted();
  const scores = api ? await byMeaning(api, query, cut, how) : byWords(query, cut);
  const ranked = cut
    .flatMap((one, index) => one.passages.map((_, at) => ({ one, at, score: scores[index]?.[at] ?? 0 })))
    .filter(({ score }) => api !== undefined || score > 0)
    .sort((a, b) => b.score - a.score);
  const found: Found[] = [];
  for (const { one, at, score } of ranked) {
    if (found.length >= how.top) break;
    const place = widened(one.text, one.passages, at, how.least ?? 0);
    // Neighbours of a passage are often found, too.
    if (found.some(({ document, start, end }) => document === one.id && place.start < end && start < place.end))
      continue;
    const page = pageAt(one.text, place.start);
    found.push({ name: one.name, document: one.id, ...place, score, ...(page === undefined ? {} : { page }) });
  }
  return { found, searched: api ? "meaning" : many ? "too_many" : "keywords" };
}

function byWords(query: string, cut: readonly Cut[]): number[][] {
  const scores = keywordScores(
    query,
    cut.flatMap(({ passages }) => passages.map(({ text }) => text)),
  );
  let at = 0;
  return cut.map(({ passages }) => scores.slice(at, (at += passages.length)));
}

async function byMeaning(api: ModelApi, query: string, cut: readonly Cut[], how: Finding): Promise<number[][]> {
  const { signal, onProgress } = how;
  const total = cut.reduce((sum, { passages }) => sum + passages.length, 0);
  let done = 0;
  const stored: Float32Array[] = [];
  for (const one of cut) {
    const before = done;
    stored.push(await vectorsOf(api, one, signal, (read) => onProgress?.(before + read, total)));
    done += one.passages.length;
  }
  const [wanted] = (await api.embed([query], { purpose: "query", ...(signal ? { signal } : {}) })).vectors;
  if (!wanted) return [];
  return cut.map(({ passages }, index) => passages.map((_, at) => dot(wanted, stored[index], at)));
}

/** The vectors have length one, so this is the cosine of the angle between them. */
function dot(wanted: Float32Array, values: Float32Array | undefined, at: number): number {
  let sum = 0;
  for (let i = 0; i < wanted.length; i++) sum += (wanted[i] ?? 0) * (values?.[at * wanted.length + i] ?? 0);
  return sum;
}

/** The vectors of a text's passages: those that are stored, or new ones, which are then. */
async function vectorsOf(
  api: ModelApi,
  { id, text, conversation, passages }: Cut,
  signal: AbortSignal | undefined,
  onRead: (count: number) => void,
): Promise<Float32Array> {
  const library = await collections.library();
  const key = `${id} ${api.info.name} ${text.length}`;
  const known = await library.get("vectors", key).catch(() => undefined);
  if (known?.count === passages.length) return known.values;
  const vectors: Float32Array[] = [];
  for (let at = 0; at < passages.length; at += BATCH) {
    onRead(at);
    const batch = passages.slice(at, at + BATCH).map((one) => one.text);
    vectors.push(...(await api.embed(batch, { purpose: "document", ...(signal ? { signal } : {}) })).vectors);
    signal?.throwIfAborted();
  }
  const each = vectors[0]?.length ?? 0;
  const values = new Float32Array(each * vectors.length);
  for (const [at, vector] of vectors.entries()) values.set(vector, at * each);
  const row = { id: key, document: id, values, count: vectors.length, ...(conversation ? { conversation } : {}) };
  // A full disk makes the next search slower, not wrong.
  await library.put("vectors", row).catch(() => {});
  return values;
}
