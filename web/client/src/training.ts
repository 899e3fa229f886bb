// A training, as pages see it.

import type { ModelApi, TrainingSessionApi } from "./api.js";
import { FreedError } from "./errors.js";
import type { Requests, Transport } from "./protocol.js";
import { discardTraining, savedTrainings } from "./storage/trainings.js";
import type { TrainingNote } from "./training-protocol.js";
import type {
  SavedTraining,
  TrainingData,
  TrainingOptions,
  TrainingProgress,
  TrainingResult,
} from "./training-types.js";

type Params = Requests["train"]["params"];

export class TrainingSession implements TrainingSessionApi {
  readonly result: Promise<TrainingResult>;
  readonly losses: number[] = [];
  readonly evaluations: { step: number; loss: number }[] = [];
  private readonly events: TrainingProgress[] = [];
  private readonly stop = new AbortController();
  private ended = false;
  private waiting: (() => void)[] = [];
  private now: TrainingProgress = {
    state: "running",
    step: 0,
    steps: 0,
    loss: Number.NaN,
    learningRate: 0,
    tokensPerSecond: 0,
    eta: Number.NaN,
  };

  private constructor(
    private readonly transport: Transport,
    private readonly params: Params,
    begun: () => void,
  ) {
    const onEvent = (note: TrainingNote) => {
      this.heed(note);
      if (note.type === "begun") begun();
    };
    this.result = transport.call("train", params, { signal: this.stop.signal, onEvent }).then(
      (result) => {
        this.tell({ state: "done", step: result.steps, loss: result.loss, eta: 0 });
        this.end();
        return result;
      },
      (error: unknown) => {
        this.tell({ state: "failed" });
        this.end();
        throw error;
      },
    );
    // `result` reports the failure.
    this.result.catch(() => {});
  }

  /** @internal Settles when the first step is about to begin. */
  static async begin(transport: Transport, params: Params): Promise<TrainingSession> {
    let begun = () => {};
    const ready = new Promise<void>((resolve) => (begun = resolve));
    const session = new TrainingSession(transport, params, begun);
    await Promise.race([ready, session.result]);
    return session;
  }

  /** Trainings of this browser that can go on, after a reload or the loss of a device; the last one first. */
  static saved(): Promise<SavedTraining[]> {
    return savedTrainings();
  }

  /** Goes on with one of them on the model it belongs to. */
  static continue(model: ModelApi, id: string): Promise<TrainingSessionApi> {
    return model.continueTraining(id);
  }

  /** Deletes one of them. */
  static discard(id: string): Promise<void> {
    return discardTraining(id);
  }

  get id(): string {
    return this.params.id;
  }

  get progress(): TrainingProgress {
    return this.now;
  }

  pause(): Promise<void> {
    return this.steer("pause");
  }

  resume(): Promise<void> {
    return this.steer("resume");
  }

  checkpoint(): Promise<void> {
    return this.steer("checkpoint");
  }

  async cancel(): Promise<void> {
    this.stop.abort();
    await this.result.catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncIterator<TrainingProgress> {
    for (let next = 0; ;) {
      const event = this.events[next];
      if (event) {
        next++;
        yield event;
      } else if (this.ended) {
        await this.result;
        return;
      } else {
        await new Promise<void>((resolve) => this.waiting.push(resolve));
      }
    }
  }

  private async steer(command: "pause" | "resume" | "checkpoint"): Promise<void> {
    if (this.ended) throw new FreedError("this training has ended");
    await this.transport.call("steerTraining", { model: this.params.model, id: this.id, command });
  }

  private heed(note: TrainingNote): void {
    switch (note.type) {
      case "begun": {
        this.losses.push(...note.losses);
        this.evaluations.push(...note.evaluations);
        const [loss, evalLoss] = [note.losses.at(-1), note.evaluations.at(-1)?.loss];
        this.now = { ...this.now, step: note.step, steps: note.steps };
        if (loss !== undefined) this.now.loss = loss;
        if (evalLoss !== undefined) this.now.evalLoss = evalLoss;
        return;
      }
      case "step": {
        const { type: _type, ...step } = note;
        this.losses.push(note.loss);
        return this.tell(step);
      }
      case "evaluated":
        this.evaluations.push({ step: note.step, loss: note.loss });
        return this.tell({ evalLoss: note.loss });
      case "saved":
        return this.tell({ saved: note.step });
      case "paused":
        return this.tell({ state: "paused" });
      case "resumed":
        return this.tell({ state: "running" });
    }
  }

  private tell(changed: Partial<TrainingProgress>): void {
    this.now = { ...this.now, ...changed };
    this.events.push(this.now);
    this.waiting.splice(0).forEach((wake) => wake());
  }

  private end(): void {
    this.ended = true;
    this.waiting.splice(0).forEach((wake) => wake());
  }
}

/** Options without what is absent: JSON has no word for it. */
export function plainTraining(options: TrainingOptions): TrainingOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

export async function textOf(data: TrainingData): Promise<string> {
  return typeof data === "string" ? data : data.text();
}
