// The embedding model beside the chat model. It is small, so both are on the GPU at once; without it, documents are searched by words.

import type { ModelApi, Progress } from "rullama";
import { sourceOf } from "rullama/catalogue";
import { codeOf, describe, type Failure } from "../lib/failures.js";
import { KNOWN, type KnownModel } from "../lib/known-models.js";
import { engine } from "./engine.svelte.js";
import { model, type Choice } from "./model.svelte.js";

/** The embedding model that is offered. */
export const OFFERED: KnownModel | undefined = KNOWN.find(({ abilities }) => abilities.includes("search"));

class Embedder {
  choice = $state.raw<Choice>();
  loading = $state(false);
  progress = $state.raw<Progress>();
  failure = $state.raw<Failure>();
  #own = $state.raw<ModelApi>();
  #abort: AbortController | undefined;
  #under: Promise<ModelApi | undefined> | undefined;

  /** The model that makes vectors: the one that is loaded as the only one, or the one beside the chat model. */
  get api(): ModelApi | undefined {
    return model.info?.kind === "embedding" ? model.api : this.#own;
  }

  /** Bytes on the GPU of the one beside the chat model. */
  get memory(): number | undefined {
    return this.#own?.info.memory.gpu;
  }

  /** The model that makes vectors; one that this browser stores is loaded for it. Undefined where there is none: nothing is downloaded. */
  async ready(): Promise<ModelApi | undefined> {
    if (this.api) return this.api;
    const stored = this.failure ? undefined : await this.stored();
    return stored ? this.load(stored) : undefined;
  }

  /** An embedding model that is stored or that the server offers. */
  async stored(): Promise<Choice | undefined> {
    const isEmbedding = (name: string) => /embed/iu.test(name);
    const kept =
      (
        await engine()
          .storage()
          .catch(() => undefined)
      )?.models ?? [];
    const found = kept.find(({ name, source, complete }) => complete && (isEmbedding(name) || isEmbedding(source)));
    if (found) return { source: found.names[0] ?? found.source, name: found.name };
    const served = await engine()
      .served()
      .catch(() => []);
    const offered = served.find(({ name, error }) => isEmbedding(name) && !error);
    return offered ? { source: offered.name, name: offered.name } : undefined;
  }

  /** Downloads and loads the model that is offered. */
  get(): Promise<ModelApi | undefined> {
    return OFFERED ? this.load({ source: sourceOf(OFFERED), name: OFFERED.name }) : Promise.resolve(undefined);
  }

  load(choice: Choice): Promise<ModelApi | undefined> {
    this.#under ??= this.#load(choice).finally(() => (this.#under = undefined));
    return this.#under;
  }

  async #load(choice: Choice): Promise<ModelApi | undefined> {
    this.choice = choice;
    this.failure = undefined;
    this.loading = true;
    const abort = (this.#abort = new AbortController());
    try {
      const onProgress = (progress: Progress) => (this.progress = progress);
      const api = await engine().load(choice.source, { signal: abort.signal, onProgress });
      if (api.info.kind !== "embedding") {
        await api.free();
        throw Object.assign(new Error(choice.name), { code: "unsupported_model" });
      }
      this.#own = api;
      void api.lost.then(() => {
        if (this.#own === api) this.#own = undefined;
      });
      return api;
    } catch (error) {
      if (codeOf(error) !== "cancelled") this.failure = describe(error);
      return undefined;
    } finally {
      this.loading = false;
      this.progress = undefined;
    }
  }

  cancel(): void {
    this.#abort?.abort();
  }

  async unload(): Promise<void> {
    const own = this.#own;
    this.#own = undefined;
    await own?.free().catch(() => {});
  }
}

export const embedder = new Embedder();
