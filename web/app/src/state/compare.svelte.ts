// The same message answered by two models or adapters. The second answer is an alternative of the first one, so nothing is lost when the
// tab is closed meanwhile; this only remembers which two are shown side by side, and what is on the GPU for them.

import type { ModelApi, Progress, StoredAdapter } from "rullama";
import type { Turn } from "../lib/conversation.js";
import { codeOf, describe, titleOf } from "../lib/failures.js";
import { t } from "../text/index.svelte.js";
import { adapters } from "./adapters.svelte.js";
import { answer, type Answerer } from "./answer.svelte.js";
import { chats } from "./chats.svelte.js";
import { model, type Choice } from "./model.svelte.js";
import { notices } from "./notices.svelte.js";

/** Who gives the second answer: another model, or the loaded one with another adapter (or with none). */
export type Rival = { choice: Choice; together: boolean } | { adapter: StoredAdapter | undefined };

interface Pair {
  conversation: string;
  /** The turns of the two answers; the second one is there once its model is loaded. */
  first: string;
  second?: string;
  rival: Rival;
  name: string;
  /** The model of the first answer. */
  before: Choice | undefined;
  /** Whether the second model had to take the first one's place. */
  swapped: boolean;
}

class Compare {
  pair = $state.raw<Pair>();
  progress = $state.raw<Progress>();
  /** The second model, where both are on the GPU. */
  #api: ModelApi | undefined;
  #stop = new AbortController();

  /** The two answers of the conversation that is shown. */
  get shown(): Pair | undefined {
    return this.pair?.conversation === chats().current?.id ? this.pair : undefined;
  }

  async start(first: Turn, rival: Rival): Promise<void> {
    const asked = chats().turns[first.parent ?? ""];
    if (!asked || !model.api) return;
    await this.end();
    const name = "choice" in rival ? rival.choice.name : (adapters.nameWith(rival.adapter) ?? "");
    const { conversation } = first;
    const { signal } = (this.#stop = new AbortController());
    this.pair = { conversation, first: first.id, rival, name, before: model.choice, swapped: false };
    try {
      const by = await this.#answerer(rival, name, signal);
      const second = by && !signal.aborted ? await answer.compare(asked, by) : undefined;
      if (signal.aborted || !this.pair) return;
      if (second) this.pair = { ...this.pair, second: second.id };
      else await this.keep(first);
    } catch (error) {
      if (signal.aborted) return;
      notices.show(t("compare.failed", { reason: titleOf(describe(error)) }));
      await this.keep(first);
    }
  }

  async #answerer(rival: Rival, name: string, signal: AbortSignal): Promise<Answerer | undefined> {
    if ("adapter" in rival) {
      const list = rival.adapter ? [{ id: rival.adapter.id, weight: 1 }] : [];
      return model.api && { api: model.api, name, adapters: list };
    }
    const beside = rival.together ? await this.#beside(rival.choice, signal) : undefined;
    const api = beside ?? (await this.#instead(rival.choice, signal));
    return api && { api, name, adapters: [] };
  }

  /** Loads the second model beside the first one; undefined where there is no room for it. */
  async #beside(choice: Choice, signal: AbortSignal): Promise<ModelApi | undefined> {
    const onProgress = (progress: Progress) => (this.progress = progress);
    try {
      const api = await model.loadBeside(choice, { signal, onProgress });
      // The first answer was kept while this was loading.
      if (signal.aborted) return void (await api.free());
      return (this.#api = api);
    } catch (error) {
      const code = codeOf(error);
      if (signal.aborted || code === "out_of_memory" || code === "does_not_fit") return undefined;
      throw error;
    } finally {
      this.progress = undefined;
    }
  }

  /** Loads the second model in the first one's place. */
  async #instead(choice: Choice, signal: AbortSignal): Promise<ModelApi | undefined> {
    if (!this.pair || signal.aborted) return undefined;
    this.pair = { ...this.pair, swapped: true };
    if (await model.load(choice)) return model.api;
    const { failure } = model;
    if (failure) notices.show(t("compare.failed", { reason: titleOf(failure) }));
    return undefined;
  }

  /** Ends what is compared in a conversation, or in any: both answers stay, and the model that was there. */
  async end(conversation = this.pair?.conversation): Promise<void> {
    if (conversation === this.pair?.conversation) await this.keep();
  }

  /** Goes on with one of the answers, and with the model or adapter that gave it. */
  async keep(turn?: Turn): Promise<void> {
    const { pair } = this;
    if (!pair) return;
    this.#stop.abort();
    answer.stop(pair.conversation);
    this.pair = undefined;
    const api = this.#api;
    this.#api = undefined;
    if (turn) await chats().choose(turn);
    const second = turn !== undefined && turn.id === pair.second;
    const { rival, before, swapped } = pair;
    if ("adapter" in rival) {
      if (second) adapters.choose(rival.adapter?.id);
    } else if (swapped) {
      if (!second && before) await model.load(before);
    } else if (second && api) await model.adopt(rival.choice, api);
    else await api?.free().catch(() => {});
  }
}

export const compare = new Compare();
