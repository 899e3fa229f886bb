// The training page: its data, its settings, and the run that is under way.

import type { SavedTraining, TrainingOptions, TrainingProgress, TrainingReport, TrainingSessionApi } from "rullama";
import { codeOf, describeTraining, type Failure } from "../lib/failures.js";
import { throttle } from "../lib/throttle.js";
import { adapters } from "./adapters.svelte.js";
import { engine } from "./engine.svelte.js";
import { model } from "./model.svelte.js";
import { notices } from "./notices.svelte.js";
import { t } from "../text/index.svelte.js";

/** How often the curve is drawn, however fast steps are. */
const SHOW_MS = 200;

export interface Curve {
  losses: number[];
  evaluations: { step: number; loss: number }[];
}

class Training {
  data = $state("");
  options = $state<TrainingOptions>({ rank: 16, steps: 60, learningRate: 2e-4, sequenceLength: 512 });
  report = $state.raw<TrainingReport>();
  looking = $state(false);
  /** What is wrong with data or settings, or went wrong in a run. */
  failure = $state.raw<Failure>();
  session = $state.raw<TrainingSessionApi>();
  starting = $state(false);
  progress = $state.raw<TrainingProgress>();
  curve = $state.raw<Curve>({ losses: [], evaluations: [] });
  /** The adapter that came out last. */
  made = $state.raw<{ id: string; name: string }>();
  saved = $state.raw<SavedTraining[]>([]);
  #asked = 0;

  get running(): boolean {
    return this.session !== undefined || this.starting;
  }

  /** Reads the data again; the last wish wins. */
  async look(): Promise<void> {
    const { api } = model;
    const asked = ++this.#asked;
    if (!api || this.data.trim() === "") {
      this.report = undefined;
      return;
    }
    this.looking = true;
    try {
      const report = await api.inspectTraining(this.data, $state.snapshot(this.options));
      if (asked !== this.#asked) return;
      this.report = report;
      this.failure = undefined;
    } catch (error) {
      if (asked !== this.#asked) return;
      this.report = undefined;
      this.failure = describeTraining(error);
    } finally {
      if (asked === this.#asked) this.looking = false;
    }
  }

  async lookSaved(): Promise<void> {
    this.saved = await engine()
      .savedTrainings()
      .catch(() => []);
  }

  start(): Promise<void> {
    return this.#run((api) => api.train(this.data, $state.snapshot(this.options)));
  }

  continue(id: string): Promise<void> {
    return this.#run((api) => api.continueTraining(id));
  }

  async #run(begin: (api: NonNullable<typeof model.api>) => Promise<TrainingSessionApi>): Promise<void> {
    const { api } = model;
    if (!api || this.running) return;
    this.starting = true;
    this.failure = undefined;
    this.made = undefined;
    this.curve = { losses: [], evaluations: [] };
    this.progress = undefined;
    try {
      const session = await begin(api);
      this.session = session;
      notices.speak(t("training.started"));
      await this.#follow(session);
    } catch (error) {
      if (codeOf(error) !== "cancelled") this.failure = describeTraining(error);
    } finally {
      this.session = undefined;
      this.starting = false;
      await Promise.all([this.lookSaved(), adapters.look()]);
    }
  }

  async #follow(session: TrainingSessionApi): Promise<void> {
    const show = throttle(SHOW_MS, () => {
      this.progress = session.progress;
      this.curve = { losses: [...session.losses], evaluations: [...session.evaluations] };
    });
    show();
    show.flush();
    this.starting = false;
    try {
      for await (const { state } of session) {
        show();
        if (state !== "running") show.flush();
      }
      const { adapter } = await session.result;
      this.made = { id: adapter.id, name: adapter.name };
      notices.speak(t("training.done"));
    } finally {
      show();
      show.flush();
    }
  }

  async pause(): Promise<void> {
    await this.session?.pause().catch((error: unknown) => (this.failure = describeTraining(error)));
  }

  async resume(): Promise<void> {
    await this.session?.resume();
  }

  async cancel(): Promise<void> {
    await this.session?.cancel();
  }

  async discard(id: string): Promise<void> {
    await engine()
      .discardTraining(id)
      .catch((error: unknown) => (this.failure = describeTraining(error)));
    await this.lookSaved();
  }
}

export const training = new Training();
