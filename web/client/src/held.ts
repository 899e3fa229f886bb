// A decoder on this side of the boundary: what it can beyond answering.

import { HeldWriter } from "./held-writer.js";
import type { BenchRequest, PlainMedium } from "./protocol.js";
import type { BenchResult } from "./types.js";
import type { Model, Session } from "./wasm/rullama.js";

export class HeldModel extends HeldWriter<Model, Session> {
  private attached = false;

  /** Looks at a picture or listens to a sound; its number stands for it in requests. */
  perceive(medium: PlainMedium, signal?: AbortSignal): Promise<number> {
    return this.work(async () => {
      await this.attach();
      if (medium.kind === "sound") return this.model.hear(medium.samples, medium.channels, medium.rate);
      return this.model.see(medium.width, medium.height, medium.pixels, medium.tokens);
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
        // The first time makes lists and kernels ready.
        const warm = { ...request, depth: 0, answer: Math.min(request.answer, 2) };
        await session.bench(JSON.stringify(warm), stop);
        const measured = JSON.parse(await session.bench(JSON.stringify(request), stop)) as Omit<
          BenchResult,
          "device" | "memory"
        >;
        const memory = this.memory();
        return { ...measured, device: this.info.device, memory: { ...memory, gpu: memory.gpu + session.gpuBytes() } };
      } finally {
        session.free();
      }
    }, signal);
  }
}
