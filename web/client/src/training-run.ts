// Training runs, in the thread of the engine: one step at a time, so that other requests run between two steps.

import { CancelledError, FreedError, RullamaError, rullamaError } from "./errors.js";
import { type Facts, type LoadedAdapters, type Work, bytesOfBlob } from "./loaded-adapters.js";
import { beforeAbort } from "./queue.js";
import { beginRun, deleteRun, holdingRun, readCheckpoint, readRun, writeCheckpoint } from "./storage/trainings.js";
import { hasFiles } from "./storage/private-files.js";
import type { TrainingNote } from "./training-protocol.js";
import type { TrainingOptions, TrainingReport, TrainingResult } from "./training-types.js";
import type { Model, Training } from "./wasm/rullama.js";

/** Speed is that of the last steps. */
const WINDOW = 8;
const CHECKPOINT_EVERY = 25;

/** What the wasm tells of a run. */
type Event =
  | { type: "step"; step: number; loss: number; learningRate: number; tokens: number }
  | { type: "evaluated"; step: number; loss: number; best: boolean }
  | { type: "done"; step: number; loss: number; early: boolean };

interface State {
  step: number;
  steps: number;
  losses: number[];
  evaluations: [number, number][];
}

/** What a training is told while it runs. */
interface Wishes {
  paused: boolean;
  /** Those who wait for a checkpoint. */
  checkpoint: (() => void)[];
}

export class TrainingRuns {
  private readonly running = new Map<string, TrainingRun>();

  constructor(
    private readonly model: Model,
    private readonly modelName: string,
    private readonly adapters: LoadedAdapters,
    private readonly work: Work,
  ) {}

  async train(
    id: string,
    begin: { data: string; options: TrainingOptions } | undefined,
    tell: (note: TrainingNote) => void,
    signal?: AbortSignal,
  ): Promise<TrainingResult> {
    if (this.running.size > 0) {
      throw new RullamaError("bad_options", "this model is being trained already: cancel that, or wait for its end");
    }
    const training = new TrainingRun(id, this.adapters, this.work, tell);
    this.running.set(id, training);
    try {
      if (!(await hasFiles())) {
        if (!begin) throw new RullamaError("storage", "this window has no storage: trainings cannot be continued");
        return await training.run(this.model, begin, { kept: false, fresh: true }, signal);
      }
      let result: TrainingResult | undefined;
      await holdingRun(id, async () => {
        const kept = begin ?? (await this.resumed(id));
        if (begin) await this.begin(id, begin);
        result = await training.run(this.model, kept, { kept: true, fresh: begin !== undefined }, signal);
      });
      return result!;
    } finally {
      this.running.delete(id);
    }
  }

  private begin(id: string, { data, options }: { data: string; options: TrainingOptions }): Promise<void> {
    const record = { id, name: options.name ?? "trained", model: this.modelName, options, begun: Date.now() };
    return beginRun(record, data);
  }

  private async resumed(id: string): Promise<{ data: string; options: TrainingOptions }> {
    const { record, data } = await readRun(id);
    return { data, options: { ...record.options, name: record.name } };
  }

  /** What would be trained on and what that takes, by the wasm's word. */
  inspect(data: string, options: TrainingOptions): Promise<Omit<TrainingReport, "warnings">> {
    const { wishes } = apart(options);
    return this.work(
      async () =>
        JSON.parse(this.model.inspectTraining(data, JSON.stringify(wishes))) as Omit<TrainingReport, "warnings">,
    );
  }

  steer(id: string, command: "pause" | "resume" | "checkpoint"): Promise<void> {
    const training = this.running.get(id);
    if (!training) throw new FreedError("this training has ended");
    return training.steer(command);
  }

  gpuBytes(): number {
    return [...this.running.values()].reduce((sum, training) => sum + training.gpuBytes(), 0);
  }

  /** Wakes those that wait: what they do next fails. */
  close(): void {
    for (const training of this.running.values()) training.close();
  }
}

/** What concerns this side, and what the engine is told. */
function apart(options: TrainingOptions) {
  const { name = "trained", keep = true, checkpointEvery = CHECKPOINT_EVERY, ...wishes } = options;
  return { name, keep, checkpointEvery, wishes };
}

class TrainingRun {
  private readonly wishes: Wishes = { paused: false, checkpoint: [] };
  private readonly recent: { ms: number; tokens: number }[] = [];
  private training: Training | undefined;
  private wake = () => {};
  private closed = false;
  private kept = false;
  private saved = 0;
  private last = { step: 0, steps: 0, loss: undefined as number | undefined };

  constructor(
    private readonly id: string,
    private readonly adapters: LoadedAdapters,
    private readonly work: Work,
    private readonly tell: (note: TrainingNote) => void,
  ) {}

  async run(
    model: Model,
    { data, options }: { data: string; options: TrainingOptions },
    { kept, fresh }: { kept: boolean; fresh: boolean },
    signal?: AbortSignal,
  ): Promise<TrainingResult> {
    const { name, keep, checkpointEvery, wishes } = apart(options);
    this.kept = kept;
    try {
      if (wishes.init !== undefined) await this.adapters.ensure([{ id: wishes.init }]);
      const checkpoint = kept ? await readCheckpoint(this.id) : undefined;
      const file = checkpoint && bytesOfBlob("a checkpoint", checkpoint);
      this.training = await this.work(() => model.train(data, JSON.stringify(wishes), file), signal);
      this.begun();
      const done = await this.steps(kept ? checkpointEvery : 0, signal);
      const facts = JSON.parse(await this.work(() => this.training!.keep(this.id))) as Facts;
      const adapter = this.adapters.remember(this.id, name, facts);
      if (kept && keep) await this.adapters.keep(adapter);
      if (kept) await deleteRun(this.id);
      return { adapter, steps: done.step, loss: done.loss, early: done.early };
    } catch (error) {
      const failure = signal?.aborted ? new CancelledError("the training was cancelled") : rullamaError(error);
      // What was cancelled or diverged is not meant to go on; what never began has nothing to go on from.
      const over = failure.code === "cancelled" || failure.code === "diverged" || (fresh && !this.training);
      if (kept && over) await deleteRun(this.id).catch(() => {});
      throw failure;
    } finally {
      this.close();
      try {
        this.training?.free();
      } catch {
        // A call on a lost device still holds it.
      }
    }
  }

  private begun(): void {
    const state = JSON.parse(this.training!.state()) as State;
    const { step, steps, losses } = state;
    this.last = { step, steps, loss: losses.at(-1) };
    this.saved = step;
    const evaluations = state.evaluations.map(([at, loss]) => ({ step: at, loss }));
    this.tell({ type: "begun", step, steps, losses, evaluations });
  }

  /** Steps until the end. */
  private async steps(every: number, signal?: AbortSignal): Promise<Extract<Event, { type: "done" }>> {
    for (;;) {
      await this.attend(signal);
      if (signal?.aborted) throw new CancelledError();
      const start = performance.now();
      const told = await this.work(() => this.training!.next(), signal);
      const event = JSON.parse(told ?? "null") as Event | null;
      if (event === null) throw new RullamaError("internal", "a training ended without an end");
      if (event.type === "done") return event;
      if (event.type === "evaluated") this.tell({ type: "evaluated", step: event.step, loss: event.loss });
      else this.stepped(event, performance.now() - start);
      if (every > 0 && event.step - this.saved >= every) await this.save();
    }
  }

  private stepped({ step, loss, learningRate, tokens }: Extract<Event, { type: "step" }>, ms: number): void {
    this.last = { ...this.last, step, loss };
    this.recent.push({ ms, tokens });
    if (this.recent.length > WINDOW) this.recent.shift();
    const total = (key: "ms" | "tokens") => this.recent.reduce((sum, one) => sum + one[key], 0);
    const tokensPerSecond = (total("tokens") * 1000) / Math.max(1, total("ms"));
    const eta = ((this.last.steps - step) * total("ms")) / this.recent.length / 1000;
    this.tell({ type: "step", step, loss, learningRate, tokensPerSecond, eta });
  }

  /** Does what was asked for between two steps. */
  private async attend(signal?: AbortSignal): Promise<void> {
    do {
      const { paused } = this.wishes;
      if (paused || this.wishes.checkpoint.length > 0) await this.save();
      this.wishes.checkpoint.splice(0).forEach((settle) => settle());
      if (!paused) return;
      this.tell({ type: "paused" });
      const asked = new Promise<void>((resolve) => (this.wake = resolve));
      // What was asked for while the checkpoint was written.
      if (this.wishes.paused && this.wishes.checkpoint.length === 0 && !this.closed) {
        await beforeAbort(asked, signal);
      }
    } while (this.wishes.paused && !signal?.aborted && !this.closed);
    if (!this.wishes.paused) this.tell({ type: "resumed" });
  }

  private async save(): Promise<void> {
    const { step, steps, loss } = this.last;
    if (!this.kept || (step === this.saved && step > 0)) return;
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    await this.work(() => this.training!.checkpoint((piece: Uint8Array<ArrayBuffer>) => void pieces.push(piece)));
    await writeCheckpoint(this.id, pieces, { step, steps, loss, saved: Date.now() });
    this.saved = step;
    this.tell({ type: "saved", step });
  }

  steer(command: "pause" | "resume" | "checkpoint"): Promise<void> {
    if (command === "resume") {
      this.wishes.paused = false;
      this.wake();
      return Promise.resolve();
    }
    if (command === "pause") this.wishes.paused = true;
    const written = new Promise<void>((resolve) => this.wishes.checkpoint.push(resolve));
    this.wake();
    return written;
  }

  gpuBytes(): number {
    return this.training?.gpuBytes() ?? 0;
  }

  close(): void {
    this.closed = true;
    this.wake();
    this.wishes.checkpoint.splice(0).forEach((settle) => settle());
  }
}
