// Search by meaning: documents and questions as vectors, the nearest first. All of it in memory.

import type { Embeds } from "./embeddings.js";
import type { EmbedOptions, EmbeddingPurpose } from "./types.js";

/** Something to be found. Those without an id get one. */
export interface SearchDocument {
  id?: string;
  text: string;
}

export interface SearchHit {
  id: string;
  text: string;
  /** Cosine of the angle between document and question: 1 is the same direction, 0 has nothing in common. */
  score: number;
}

export interface SearchOptions {
  /** Hits, at most; 10 by default. */
  top?: number;
  signal?: AbortSignal;
}

/** The cosine of the angle between two vectors of any length; 0 where one of them is nothing. */
export function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) throw new RangeError(`vectors of ${a.length} and ${b.length} numbers cannot be compared`);
  let [dot, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] ?? 0, b[i] ?? 0];
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa === 0 || bb === 0 ? 0 : dot / Math.sqrt(aa * bb);
}

/** Documents that can be searched by meaning, with a model that makes vectors. */
export class SearchIndex {
  private readonly documents = new Map<string, { text: string; vector: Float32Array }>();
  private nextId = 1;

  constructor(
    private readonly model: Embeds,
    /** Shorter vectors take less memory and find a little worse. */
    private readonly options: Pick<EmbedOptions, "dimensions"> = {},
  ) {}

  get size(): number {
    return this.documents.size;
  }

  has(id: string): boolean {
    return this.documents.has(id);
  }

  /** Adds documents, or replaces those of the same id; gives their ids. Nothing is added where that fails or is cancelled. */
  async add(
    documents: readonly (string | SearchDocument)[],
    options: { signal?: AbortSignal } = {},
  ): Promise<string[]> {
    const given = documents.map((one) => (typeof one === "string" ? { text: one } : one));
    const texts = given.map(({ text }) => text);
    const { vectors } = await this.model.embed(texts, { ...this.options, ...options, ...this.purpose("document") });
    return given.map(({ id, text }, index) => {
      const key = id ?? this.freeId();
      this.documents.set(key, { text, vector: vectors[index]! });
      return key;
    });
  }

  /** Removes a document; false where there is none. */
  remove(id: string): boolean {
    return this.documents.delete(id);
  }

  clear(): void {
    this.documents.clear();
  }

  /** The documents that come nearest to a question, the best first. */
  async search(query: string, options: SearchOptions = {}): Promise<SearchHit[]> {
    const { top = 10, signal } = options;
    if (this.documents.size === 0) return [];
    const asked = { ...this.options, ...(signal ? { signal } : {}), ...this.purpose("query") };
    const [wanted] = (await this.model.embed([query], asked)).vectors;
    const hits = [...this.documents].map(([id, { text, vector }]) => ({ id, text, score: cosine(wanted!, vector) }));
    return hits.sort((a, b) => b.score - a.score).slice(0, Math.max(0, top));
  }

  /** Servers take texts as they are. */
  private purpose(purpose: EmbeddingPurpose): Pick<EmbedOptions, "purpose"> {
    return this.model.info?.remote ? {} : { purpose };
  }

  private freeId(): string {
    let id: string;
    do id = String(this.nextId++);
    while (this.documents.has(id));
    return id;
  }
}

/** Searches some documents once; keep a `SearchIndex` to ask them more than once. */
export async function search(
  model: Embeds,
  query: string,
  documents: readonly (string | SearchDocument)[],
  options: SearchOptions = {},
): Promise<SearchHit[]> {
  const index = new SearchIndex(model);
  await index.add(documents, options.signal ? { signal: options.signal } : {});
  return index.search(query, options);
}
