// The model on the GPU: one at a time. Loading, cancelling, losing and reloading it.

import type { FitReport, LoadOptions, ModelApi, ModelInfo, ModelSource, Progress, StoredModel } from "rullama";
import { ALL_KINDS, DOCUMENTS, kindsFor, type Kinds } from "../lib/attachments.js";
import { codeOf, describe, type Failure } from "../lib/failures.js";
import { holdLoaded } from "../lib/loaded-lock.js";
import { engine } from "./engine.svelte.js";
import { change, settings } from "./settings.svelte.js";

/** A model that can be loaded, with a name for people. */
export interface Choice {
  source: ModelSource;
  name: string;
  /** A file of its drafter, where one was picked. */
  drafter?: { source: ModelSource; name: string };
  /** Its vision and audio encoders, where they are in a file of their own. */
  projector?: { source: ModelSource; name: string };
}

class Model {
  /** What is loaded, is being loaded, or was loaded last. */
  choice = $state.raw<Choice>();
  api = $state.raw<ModelApi>();
  info = $state.raw<ModelInfo>();
  progress = $state.raw<Progress>();
  loading = $state(false);
  failure = $state.raw<Failure>();
  /** What can be attached to messages; everything until its file was looked at. */
  kinds = $state.raw<Kinds>(ALL_KINDS);
  /** Called before the model goes away: those who use it stop. */
  leaving: () => void = () => {};
  /** Called when it is back after the GPU was lost in the background. */
  regained: () => void = () => {};
  #abort: AbortController | undefined;
  #release = () => {};

  /** Whether it writes answers; others turn texts into vectors. */
  get chats(): boolean {
    return this.api !== undefined && this.info?.kind !== "embedding";
  }

  /** Context, caches and drafts that differ from the settings take a reload. */
  get outdated(): boolean {
    return this.info !== undefined && this.#loadedWith !== wishes(this.choice, this.info);
  }
  #loadedWith = $state("");

  /** Puts a model on the GPU in place of the one that is there. True when it is ready. */
  async load(choice: Choice): Promise<boolean> {
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    await this.unload();
    this.choice = choice;
    this.failure = undefined;
    this.progress = undefined;
    this.loading = true;
    const { keep } = settings;
    try {
      const api = await this.loadBeside(choice, {
        signal: abort.signal,
        onProgress: (progress) => {
          if (this.#abort === abort) this.progress = progress;
        },
      });
      if (this.#abort !== abort || abort.signal.aborted) {
        void api.free();
        return false;
      }
      this.#ready(api, choice, keep && typeof choice.source === "string");
      this.#loadedWith = wishes(choice, api.info);
      return true;
    } catch (error) {
      if (this.#abort === abort) this.#failed(error);
      return false;
    } finally {
      if (this.#abort === abort) {
        this.loading = false;
        this.progress = undefined;
      }
    }
  }

  /** Loads a model as the settings say, beside the one that is there; who calls this owns it. */
  loadBeside(choice: Choice, options: Pick<LoadOptions, "signal" | "onProgress">): Promise<ModelApi> {
    const { context, cache, keep } = settings;
    const { source, projector } = choice;
    const draft = draftOf(choice);
    return engine().load(source, { context, cache, keep, draft, projector: projector?.source, ...options });
  }

  /** Takes over a model that was loaded beside the one that is there. */
  async adopt(choice: Choice, api: ModelApi): Promise<void> {
    await this.unload();
    this.choice = choice;
    this.failure = undefined;
    this.#ready(api, choice, false);
    this.#loadedWith = wishes(choice, api.info);
  }

  #ready(api: ModelApi, choice: Choice, kept: boolean): void {
    this.api = api;
    this.info = api.info;
    this.#release = holdLoaded();
    void this.#lookForEncoders(api, choice);
    remember(choice);
    void api.lost.then((error) => {
      if (this.api === api) this.drop(error);
    });
    api.verified.catch((error: unknown) => {
      // Nobody asked for the checksum that a name brings; where nothing is kept there is no whole file to check.
      if (this.api === api && codeOf(error) !== "unverified") this.drop(error);
    });
    if (kept) void keepStored();
  }

  /** Vision and audio encoders are loaded when they are needed; what the file says of them tells whether there are any. */
  async #lookForEncoders(api: ModelApi, choice: Choice): Promise<void> {
    this.kinds = api.info.kind === "decoder" ? ALL_KINDS : DOCUMENTS;
    if (this.kinds === DOCUMENTS) return;
    const report = await this.inspect(choice).catch(() => undefined);
    if (this.api === api && report) this.kinds = report.memory.encoders ? kindsFor(report.info) : DOCUMENTS;
  }

  /** The files of a model were copied into this browser's storage: from now on it is loaded by their names. */
  renamed(choice: Choice, kept: Choice): void {
    void keepStored();
    if (this.choice !== choice) return;
    this.choice = kept;
    if (this.api) remember(kept);
  }

  #failed(error: unknown): void {
    const failure = describe(error);
    // Stopping a load is no failure.
    this.failure = failure.code === "cancelled" ? undefined : failure;
  }

  /** Whether the GPU was taken away while nobody looked at the page, as phones do. */
  #lostInBackground = false;

  /** Loads a model again that was lost in the background, when the user comes back to the page. */
  watch(): () => void {
    const changed = () => {
      if (document.visibilityState !== "visible" || !this.#lostInBackground) return;
      this.#lostInBackground = false;
      if (this.failure?.code !== "device_lost" || this.loading) return;
      void this.reload().then((back) => back && this.regained());
    };
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  }

  /** The model can no longer be used: says why, and keeps in mind which it was. */
  drop(error: unknown): void {
    this.#lostInBackground = document.visibilityState === "hidden" && codeOf(error) === "device_lost";
    const { api } = this;
    this.#release();
    this.api = undefined;
    this.info = undefined;
    this.kinds = ALL_KINDS;
    this.failure = describe(error);
    void api?.free().catch(() => {});
  }

  cancel(): void {
    this.#abort?.abort();
  }

  /** Loads the same model again: after a reload of the page, the one that was used last. */
  async reload(): Promise<boolean> {
    const choice = this.choice ?? lastChoice();
    return choice ? this.load(choice) : false;
  }

  async unload(): Promise<void> {
    const { api } = this;
    if (api) this.leaving();
    this.#release();
    this.api = undefined;
    this.info = undefined;
    this.kinds = ALL_KINDS;
    // A device that is gone has freed everything already.
    await api?.free().catch(() => {});
  }

  inspect(choice: Choice, signal?: AbortSignal): Promise<FitReport> {
    const { context, cache } = settings;
    const { source, projector } = choice;
    return engine().inspect(source, { context, cache, draft: draftOf(choice), projector: projector?.source, signal });
  }
}

/** Keeps in mind what to load when the app starts again; a file must be picked again. */
function remember({ source, name, projector }: Choice): void {
  if (typeof source !== "string") return;
  const encoders = typeof projector?.source === "string" ? { projector: projector.source } : {};
  change({ lastModel: { source, name, ...encoders } });
}

/** A stored model as it is loaded: copies of picked files are known by their names alone. */
export function choiceOf({ source, name, names }: StoredModel): Choice {
  return { source: isCopy({ source }) ? (names[0] ?? name) : source, name };
}

/** Whether a stored model is a copy of a file that was picked. */
export const isCopy = ({ source }: Pick<StoredModel, "source">): boolean => source.startsWith("file:");

/** The model that was used last, as it was loaded. */
export function lastChoice(): Choice | undefined {
  const last = $state.snapshot(settings.lastModel);
  if (!last) return undefined;
  const { source, name, projector } = last;
  const encoders = projector ? { projector: { source: projector, name: projector.split("/").at(-1) ?? "" } } : {};
  return { source, name, ...encoders };
}

let asked = false;

/** Asks the browser, once, not to throw away what was downloaded: some do after a week without a visit. */
async function keepStored(): Promise<void> {
  if (asked) return;
  asked = true;
  try {
    if (!(await navigator.storage.persisted())) await engine().persist();
  } catch {
    // The page about storage says how it stands.
  }
}

/** What drafts for a model, in the engine's words. */
function draftOf({ drafter }: Choice): ModelSource | undefined {
  if (drafter) return drafter.source;
  return settings.draft === "own" ? undefined : settings.draft;
}

/** The settings that only a load can change. */
function wishes(choice: Choice | undefined, info: ModelInfo): string {
  if (info.kind === "embedding") return "";
  const drafts = info.kind === "decoder" ? (choice?.drafter?.name ?? settings.draft) : "";
  return `${settings.context} ${settings.cache} ${drafts}`;
}

export const model = new Model();
