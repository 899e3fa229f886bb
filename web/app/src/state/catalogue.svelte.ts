// The models there are to choose from: those a server offers and those this browser keeps.

import type { ServedModel, StorageReport, StoredModel } from "rullama";
import { describe, type Failure } from "../lib/failures.js";
import { isLaterPart, isProjector } from "../lib/hugging-face.js";
import { isDemo } from "../lib/known-models.js";
import { embedder } from "./embedder.svelte.js";
import { engine } from "./engine.svelte.js";
import { model, type Choice } from "./model.svelte.js";

/** A file or address that was picked but not loaded yet. */
class Picked {
  // Raw: files in a proxied list could not be sent to the engine's worker.
  choice = $state.raw<Choice>();
}

export const picked = new Picked();

class Catalogue {
  served = $state.raw<ServedModel[]>();
  storage = $state.raw<StorageReport>();
  /** Why the server's list could not be had. */
  offline = $state.raw<Failure>();
  storageFailure = $state.raw<Failure>();

  async look(): Promise<void> {
    await Promise.all([this.#lookServed(), this.lookStored()]);
  }

  async #lookServed(): Promise<void> {
    try {
      this.served = await engine().served();
      this.offline = undefined;
    } catch (error) {
      this.served = [];
      this.offline = describe(error);
    }
  }

  async lookStored(): Promise<void> {
    try {
      this.storage = await engine().storage();
      this.storageFailure = undefined;
    } catch (error) {
      this.storageFailure = describe(error);
    }
  }

  /** The demonstration model, where the server has one. */
  get demo(): ServedModel | undefined {
    return this.served?.find((one) => isDemo(one.name) && !one.error);
  }

  /** What is stored and can be loaded: neither encoders in files of their own nor the later parts of a split model. */
  get stored(): StoredModel[] {
    return (this.storage?.models ?? []).filter(({ name }) => !isProjector(name) && !isLaterPart(name));
  }

  async remove(id: string): Promise<Failure | undefined> {
    try {
      // Its file cannot be deleted while the engine reads from it.
      const loaded = model.api && this.storage?.models.find((one) => one.id === id);
      const { choice } = model;
      if (loaded && choice && (loaded.source === choice.source || loaded.names.includes(choice.name)))
        await model.unload();
      const beside = embedder.choice?.source;
      if (
        this.storage?.models.some(
          (one) => one.id === id && (one.source === beside || one.names.some((name) => name === beside)),
        )
      )
        await embedder.unload();
      await engine().remove(id);
      return undefined;
    } catch (error) {
      return describe(error);
    } finally {
      await this.lookStored();
    }
  }

  async persist(): Promise<boolean> {
    const kept = await engine()
      .persist()
      .catch(() => false);
    await this.lookStored();
    return kept;
  }
}

export const catalogue = new Catalogue();
