// A decoder on this side of the boundary: what it can beyond answering.

import { HeldAdapters, type Work } from "./held-adapters.js";
import { HeldTrainings } from "./held-training.js";
import { HeldWriter } from "./held-writer.js";
import { nudged } from "./nudge.js";
import type { Around } from "./on-device.js";
import type { AnswerRequest, BenchRequest, PlainMedium, TowersRequest } from "./protocol.js";
import { timedTowers } from "./timed-towers.js";
import type { BenchResult, GenerateEvent, MemoryReport, TowersBench } from "./types.js";
import type { Model, Session } from "./wasm/rullama.js";

export class HeldModel extends HeldWriter<Model, Session> {
  readonly adapters: HeldAdapters;
  readonly trainings: HeldTrainings;
  private attached = false;

  constructor(around: Around, model: Model) {
    super(around, model);
    const work: Work = (job, signal) => this.work(job, signal);
    this.adapters = new HeldAdapters(model, around.info.name, work);
    this.trainings = new HeldTrainings(model, around.info.name, this.adapters, work);
  }

  override async answer(
    session: number | undefined,
    request: AnswerRequest,
    onEvent: (event: GenerateEvent) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    const { own } = this.adapters;
    const adapters = request.adapters ?? (own.length > 0 ? own : undefined);
    // Without a pause where there is nothing to look for: calls keep their order.
    if (request.adapters?.length) await this.adapters.ensure(request.adapters);
    await super.answer(session, { ...request, ...(adapters ? { adapters } : {}) }, onEvent, signal);
  }

  override memory(): MemoryReport {
    const memory = super.memory();
    return { ...memory, gpu: memory.gpu + this.trainings.gpuBytes() };
  }

  override async free(): Promise<void> {
    this.trainings.close();
    await super.free();
  }

  /** Looks at a picture or listens to a sound; its number stands for it in requests. */
  perceive(medium: PlainMedium, signal?: AbortSignal): Promise<number> {
    return this.work(async () => {
      await this.attach();
      if (medium.kind === "sound") return this.model.hear(medium.samples, medium.channels, medium.rate);
      const seen = this.model.see(medium.width, medium.height, medium.pixels, medium.tokens);
      return nudged(this.around.device.browser, seen, () => this.gone !== undefined || signal?.aborted === true);
    }, signal);
  }

  /** A projector is opened when something is to be perceived. */
  private async attach(): Promise<void> {
    const { projector } = this.around.files;
    if (this.attached || !projector) return;
    this.model.attach(await projector());
    this.attached = true;
  }

  film(pictures: number[], seconds: number[]): Promise<number> {
    return this.work(async () => {
      const video = this.model.film(Uint32Array.from(pictures), Float64Array.from(seconds));
      for (const picture of pictures) this.model.forget(picture);
      return video;
    });
  }

  freeTowers(): Promise<void> {
    return this.work(async () => this.model.freeTowers());
  }

  forget(medium: number): void {
    if (!this.gone) this.model.forget(medium);
  }

  softTokens(medium: number): number {
    return this.model.softTokens(medium);
  }

  benchTowers(request: TowersRequest, signal?: AbortSignal): Promise<TowersBench> {
    return timedTowers(this, request, signal);
  }

  tokens(session: number): Promise<Uint32Array> {
    return this.work(async () => this.find(session).tokens());
  }

  save(session: number): Promise<Uint8Array> {
    return this.work(() => this.find(session).save());
  }

  restore(session: number, saved: Uint8Array): Promise<void> {
    return this.work(() => this.find(session).restore(saved));
  }

  bench(request: BenchRequest, signal?: AbortSignal): Promise<BenchResult> {
    return this.work(async () => {
      const context = Math.max(1, request.depth) + request.prompt + request.answer;
      const session = this.model.session(JSON.stringify({ context }));
      try {
        const stop = () => signal?.aborted ?? false;
        const once = () => session.bench(JSON.stringify(request), stop);
        // The first time makes lists and kernels ready, and a device that idled fast again: it does not count natively, either.
        await once();
        const measured = JSON.parse(await once()) as Omit<BenchResult, "device" | "memory">;
        const memory = this.memory();
        return { ...measured, device: this.info.device, memory: { ...memory, gpu: memory.gpu + session.gpuBytes() } };
      } finally {
        session.free();
      }
    }, signal);
  }
}
