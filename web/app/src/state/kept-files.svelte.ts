// Copies of model files that were picked, in this browser's storage: such a model loads again without its files.

import type { ModelSource } from "rullama";
import { codeOf, describe, titleOf } from "../lib/failures.js";
import { t } from "../text/index.svelte.js";
import { catalogue } from "./catalogue.svelte.js";
import { engine } from "./engine.svelte.js";
import { model, type Choice } from "./model.svelte.js";
import { notices } from "./notices.svelte.js";

/** The files of what was picked; none of what comes from elsewhere. */
const filesOf = (source: ModelSource | undefined): File[] =>
  [source].flat().filter((one): one is File => one instanceof File);

/** The files that would be copied. */
export const pickedFiles = ({ source, projector }: Choice): File[] => [source, projector?.source].flatMap(filesOf);

class KeptFiles {
  /** The model whose files are being copied, and how far that is. */
  name = $state<string>();
  done = $state(0);
  total = $state(0);
  #abort: AbortController | undefined;

  /** Copies the files of a model; from then on it is loaded by their names. */
  async keep(choice: Choice): Promise<void> {
    const { name, source, projector } = choice;
    this.cancel();
    const abort = (this.#abort = new AbortController());
    this.name = name;
    this.done = 0;
    this.total = pickedFiles(choice).reduce((sum, { size }) => sum + size, 0);
    try {
      const own = await this.#copy(filesOf(source), abort);
      const encoders = await this.#copy(filesOf(projector?.source), abort);
      model.renamed(choice, {
        ...choice,
        source: own ?? source,
        ...(projector && encoders !== undefined ? { projector: { ...projector, source: encoders } } : {}),
      });
      notices.show(t("keep.done", { name }));
    } catch (error) {
      if (codeOf(error) !== "cancelled") notices.show(t("keep.failed", { name, reason: titleOf(describe(error)) }));
    } finally {
      if (this.#abort === abort) this.name = undefined;
      await catalogue.lookStored();
    }
  }

  /** Copies files, one after the other; gives the name that stands for them. */
  async #copy(files: readonly File[], abort: AbortController): Promise<string | undefined> {
    const names: string[] = [];
    for (const file of files) {
      const before = this.done;
      const onProgress = (done: number) => {
        if (this.#abort === abort) this.done = before + done;
      };
      names.push((await engine().keepFile(file, { onProgress, signal: abort.signal })).name);
      onProgress(file.size);
    }
    return names[0];
  }

  cancel(): void {
    this.#abort?.abort();
  }
}

export const keptFiles = new KeptFiles();
