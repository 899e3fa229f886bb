// Texts that are searched by meaning: kept in this page only, and read by the model that makes vectors.

import { SearchIndex, type ModelApi, type SearchHit } from "rullama";
import { codeOf, describe, type Failure } from "../lib/failures.js";
import { passages } from "../lib/passages.js";
import { model } from "./model.svelte.js";
import { t } from "../text/index.svelte.js";

/** A passage, and where it came from. */
export interface Passage {
  id: string;
  text: string;
  from: string;
}

/** Passages the model reads at a time: enough to be fast, few enough to stop. */
const BATCH = 16;
/** More would take minutes on most machines. */
export const MOST_PASSAGES = 5000;
/** Larger files are no texts for reading. */
const MOST_BYTES = 5_000_000;
const TOP = 10;

class Search {
  passages = $state.raw<Passage[]>([]);
  hits = $state.raw<SearchHit[]>();
  /** How many passages have been read, while some are. */
  read = $state<{ done: number; total: number }>();
  busy = $state(false);
  failure = $state.raw<Failure>();
  /** What could not be added, for a person. */
  problem = $state("");
  #index: { api: ModelApi; index: SearchIndex } | undefined;
  #abort: AbortController | undefined;
  #next = 1;

  /** The model that makes vectors, where it is loaded. */
  get api(): ModelApi | undefined {
    return model.info?.kind === "embedding" ? model.api : undefined;
  }

  add(text: string, from: string): void {
    const found = passages(text);
    const room = MOST_PASSAGES - this.passages.length;
    this.problem = found.length > room ? t("search.most", { count: MOST_PASSAGES }) : "";
    const more = found.slice(0, room).map((one) => ({ id: String(this.#next++), text: one, from }));
    this.passages = [...this.passages, ...more];
    this.hits = undefined;
  }

  async addFiles(files: Iterable<File>): Promise<void> {
    for (const file of files) {
      const text = file.size > MOST_BYTES ? undefined : await file.text();
      if (text === undefined) this.problem = t("search.tooLarge", { name: file.name });
      else if (text.includes("\0")) this.problem = t("search.notText", { name: file.name });
      else this.add(text, file.name);
    }
  }

  remove(id: string): void {
    this.passages = this.passages.filter((one) => one.id !== id);
    this.hits = this.hits?.filter((one) => one.id !== id);
    this.#index?.index.remove(id);
  }

  clear(): void {
    this.stop();
    this.passages = [];
    this.hits = undefined;
    this.problem = "";
    this.#index?.index.clear();
  }

  stop(): void {
    this.#abort?.abort();
  }

  /** Finds what comes nearest to a question; passages that the model has not read yet are read first. */
  async find(query: string): Promise<void> {
    const { api } = this;
    if (!api || this.busy || query.trim() === "") return;
    this.busy = true;
    this.failure = undefined;
    const { signal } = (this.#abort = new AbortController());
    try {
      const index = await this.#ready(api, signal);
      const hits = await index.search(query, { top: TOP, signal });
      this.hits = hits;
    } catch (error) {
      if (codeOf(error) !== "cancelled") this.failure = describe(error);
    } finally {
      this.busy = false;
      this.read = undefined;
    }
  }

  /** An index of this model's vectors with all passages in it. */
  async #ready(api: ModelApi, signal: AbortSignal): Promise<SearchIndex> {
    if (this.#index?.api !== api) this.#index = { api, index: new SearchIndex(api) };
    const { index } = this.#index;
    const missing = this.passages.filter(({ id }) => !index.has(id));
    for (let at = 0; at < missing.length; at += BATCH) {
      this.read = { done: at, total: missing.length };
      await index.add(missing.slice(at, at + BATCH), { signal });
    }
    // What was removed meanwhile.
    for (const { id } of missing) if (!this.passages.some((one) => one.id === id)) index.remove(id);
    return index;
  }
}

export const search = new Search();
