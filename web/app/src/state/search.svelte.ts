// The search page: a collection is searched by meaning, or by words while there is no embedding model.

import type { SearchedBy } from "../lib/conversation.js";
import { codeOf, describe, type Failure } from "../lib/failures.js";
import { t } from "../text/index.svelte.js";
import { collections } from "./library.svelte.js";
import { find, type Found, type Searched } from "./retrieval.svelte.js";

const TOP = 10;

class Search {
  #chosen = $state<string>();
  hits = $state.raw<Found[]>();
  searched = $state<SearchedBy>();
  /** How many passages have been read, while some are. */
  read = $state<{ done: number; total: number }>();
  busy = $state(false);
  failure = $state.raw<Failure>();
  #abort: AbortController | undefined;

  /** The collection that is shown. */
  get collection(): string | undefined {
    const known = collections.list.find(({ id }) => id === this.#chosen) ?? collections.list[0];
    return known?.id;
  }

  set collection(id: string | undefined) {
    this.stop();
    this.#chosen = id;
    this.hits = undefined;
    this.failure = undefined;
  }

  /** The collection that is shown; the first one is made where there is none. */
  async #ensure(): Promise<string> {
    await collections.library();
    if (this.collection === undefined) this.#chosen = (await collections.create(t("library.first"))).id;
    return this.collection ?? "";
  }

  async add(text: string, from: string): Promise<void> {
    this.hits = undefined;
    await collections.add(await this.#ensure(), from, text.replace(/\r\n?/gu, "\n"));
  }

  async addFiles(files: Iterable<File>): Promise<void> {
    this.hits = undefined;
    await collections.addFiles(await this.#ensure(), [...files]);
  }

  async removeDocument(id: string): Promise<void> {
    this.hits = this.hits?.filter(({ document }) => document !== id);
    await collections.removeDocument(id);
  }

  stop(): void {
    this.#abort?.abort();
  }

  /** Finds what comes nearest to a question; passages that the model has not read yet are read first. */
  async find(query: string): Promise<void> {
    const { collection } = this;
    if (this.busy || collection === undefined || query.trim() === "") return;
    this.busy = true;
    this.failure = undefined;
    const { signal } = (this.#abort = new AbortController());
    try {
      const texts: Searched[] = [];
      for (const { id, name } of collections.of(collection)) {
        const text = await collections.text(id);
        if (text !== undefined) texts.push({ id, name, text });
      }
      const onProgress = (done: number, total: number) => (this.read = { done, total });
      const { found, searched } = await find(query, texts, { top: TOP, signal, onProgress });
      if (signal.aborted) return;
      this.hits = found;
      this.searched = searched;
    } catch (error) {
      if (codeOf(error) !== "cancelled") this.failure = describe(error);
    } finally {
      this.busy = false;
      this.read = undefined;
    }
  }
}

export const search = new Search();
