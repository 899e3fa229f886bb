// The adapters this browser keeps, and the one that chats answer with.

import type { AdapterChoice, AdapterSource, StoredAdapter } from "rullama";
import { describe, type Failure } from "../lib/failures.js";
import { downloadBytes } from "../lib/download.js";
import { engine } from "./engine.svelte.js";
import { model } from "./model.svelte.js";
import { notices } from "./notices.svelte.js";
import { change, settings } from "./settings.svelte.js";
import { t } from "../text/index.svelte.js";

class Adapters {
  list = $state.raw<StoredAdapter[]>([]);
  failure = $state.raw<Failure>();
  busy = $state(false);

  /** Those that belong to the model that is loaded. */
  get fitting(): StoredAdapter[] {
    return this.list.filter((one) => one.model === model.info?.name);
  }

  /** The one that answers. */
  get chosen(): StoredAdapter | undefined {
    return this.fitting.find((one) => one.id === settings.adapter?.id);
  }

  /** What an answer of the loaded model with an adapter is called. */
  nameWith(adapter: Pick<StoredAdapter, "name"> | undefined): string | undefined {
    const name = model.choice?.name;
    return adapter === undefined ? name : `${name} + ${adapter.name}`;
  }

  /** What requests are told. */
  get choices(): AdapterChoice[] {
    const { chosen } = this;
    return chosen ? [{ id: chosen.id, weight: settings.adapter?.weight ?? 1 }] : [];
  }

  choose(id: string | undefined, weight = 1): void {
    change({ adapter: id === undefined ? undefined : { id, weight } });
  }

  async look(): Promise<void> {
    try {
      this.list = await engine().storedAdapters();
    } catch (error) {
      this.failure = describe(error);
    }
  }

  /** Brings an adapter in from files; it must fit the model that is loaded. */
  async import(source: AdapterSource): Promise<void> {
    const { api } = model;
    if (!api) return;
    await this.#work(async () => {
      const { name } = await api.adapters.add(source, { keep: true });
      notices.show(t("adapters.added", { name }));
    });
  }

  async rename(id: string, name: string): Promise<void> {
    await this.#work(() => engine().renameAdapter(id, name.trim().slice(0, 100) || t("common.untitled")));
  }

  async remove(id: string): Promise<void> {
    await this.#work(async () => {
      await model.api?.adapters.remove(id);
      await engine().deleteAdapter(id);
      if (settings.adapter?.id === id) this.choose(undefined);
    });
  }

  /** Hands its files to the user. */
  async export({ id, name }: StoredAdapter): Promise<void> {
    const { api } = model;
    if (!api) return;
    await this.#work(async () => {
      const known = (await api.adapters.list()).some((one) => one.id === id);
      if (!known) await api.adapters.add({ stored: id });
      for (const file of await api.adapters.export(id)) downloadBytes(file.name, file.bytes);
      notices.show(t("adapters.exported", { name }));
    });
  }

  async #work(job: () => Promise<void>): Promise<void> {
    this.busy = true;
    this.failure = undefined;
    try {
      await job();
    } catch (error) {
      this.failure = describe(error);
    } finally {
      this.busy = false;
      await this.look();
    }
  }
}

export const adapters = new Adapters();
