// A model on this side of the boundary: its device, its conversations, and the order of calls.

import type { OpenDevice } from "./device.js";
import { DeviceLostError, FreedError, type RullamaError, rullamaError } from "./errors.js";
import { HeldAdapters, type Work } from "./held-adapters.js";
import { HeldTrainings } from "./held-training.js";
import type { AnswerRequest, BenchRequest, PlainMedium } from "./protocol.js";
import { Queue } from "./queue.js";
import type { BenchResult, GenerateEvent, MemoryReport, ModelInfo, SessionOptions } from "./types.js";
import type { Model, Session } from "./wasm/rullama.js";

export class HeldModel {
  /** Settles when the device is lost without our doing. */
  readonly lost: Promise<RullamaError>;
  readonly adapters: HeldAdapters;
  readonly trainings: HeldTrainings;
  private readonly queue = new Queue();
  private readonly sessions = new Map<number, Session>();
  private own: Session | undefined;
  private nextSession = 1;
  private gone: RullamaError | undefined;

  constructor(
    readonly info: ModelInfo,
    readonly verified: Promise<void>,
    private readonly model: Model,
    private readonly device: OpenDevice,
    private readonly heap: () => number,
    /** Called once, when it is freed. */
    private readonly closeSource: () => void,
  ) {
    const work: Work = (job, signal) => this.work(job, signal);
    this.adapters = new HeldAdapters(model, info.name, work);
    this.trainings = new HeldTrainings(model, info.name, this.adapters, work);
    this.lost = new Promise((resolve) => {
      void device.browser.lost.then((info) => {
        if (this.gone) return;
        this.gone = new DeviceLostError(lossMessage(info));
        resolve(this.gone);
      });
    });
  }

  /** Work on the device, after what came before. */
  private work<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.queue.run(async () => {
      if (this.gone) throw this.gone;
      const fails = this.lost.then((error) => {
        throw error;
      });
      try {
        // A promise of the engine may never settle once its device is gone.
        return await Promise.race([job(), fails]);
      } catch (error) {
        throw this.gone ?? rullamaError(error);
      }
    }, signal);
  }

  async session(options: SessionOptions): Promise<number> {
    return this.work(async () => {
      const id = this.nextSession++;
      this.sessions.set(id, this.model.session(JSON.stringify(options)));
      return id;
    });
  }

  /** The conversation of a number; without one, that which the model keeps for itself. */
  private find(id: number | undefined): Session {
    if (id === undefined) return (this.own ??= this.model.session("{}"));
    const session = this.sessions.get(id);
    if (!session) throw new FreedError("the session was freed");
    return session;
  }

  async answer(
    session: number | undefined,
    request: AnswerRequest,
    onEvent: (event: GenerateEvent) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    const each = (event: string): boolean => {
      onEvent(JSON.parse(event) as GenerateEvent);
      return signal?.aborted ?? false;
    };
    // Without a pause where there is nothing to look for: calls keep their order.
    if (request.adapters?.length) await this.adapters.ensure(request.adapters);
    await this.work(() => this.find(session).generate(JSON.stringify(request), each), signal);
  }

  /** Looks at a picture or listens to a sound; its number stands for it in requests. */
  perceive(medium: PlainMedium, signal?: AbortSignal): Promise<number> {
    return this.work(async () => {
      if (medium.kind === "sound") return this.model.hear(medium.samples, medium.channels, medium.rate);
      return this.model.see(medium.width, medium.height, medium.pixels, medium.tokens);
    }, signal);
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

  freeSession(id: number): Promise<void> {
    return this.queue.run(async () => {
      this.sessions.get(id)?.free();
      this.sessions.delete(id);
    });
  }

  async tokenize(text: string, special: boolean, bos: boolean): Promise<Uint32Array> {
    if (this.gone) throw this.gone;
    return this.model.tokenize(text, special, bos);
  }

  async detokenize(ids: Uint32Array): Promise<string> {
    if (this.gone) throw this.gone;
    return this.model.detokenize(ids);
  }

  memory(): MemoryReport {
    if (this.gone) throw this.gone;
    const all = [...this.sessions.values(), ...(this.own ? [this.own] : [])];
    const caches = all.reduce((sum, session) => sum + session.gpuBytes(), 0);
    return {
      gpu: this.model.gpuBytes() + caches + this.trainings.gpuBytes(),
      wasmHeap: this.heap(),
      sessions: all.length,
    };
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

  /** Frees everything, after what is under way. */
  async free(): Promise<void> {
    if (this.gone?.code === "freed") return;
    const lost = this.gone !== undefined;
    this.gone = new FreedError("the model was freed; load it again");
    this.trainings.close();
    const release = async () => {
      for (const session of [...this.sessions.values(), ...(this.own ? [this.own] : [])]) quietly(() => session.free());
      this.sessions.clear();
      this.own = undefined;
      quietly(() => this.model.free());
      quietly(() => this.device.engine.destroy());
      quietly(() => this.device.engine.free());
      this.closeSource();
    };
    // A call on a lost device may never end.
    await (lost ? release() : this.queue.run(release));
  }
}

/** What a call on a lost device still holds cannot be freed; its memory on the GPU is gone all the same. */
function quietly(free: () => void): void {
  try {
    free();
  } catch {
    // Nothing can be done, and nothing is lost.
  }
}

function lossMessage(info: GPUDeviceLostInfo): string {
  const why = info.message === "" ? info.reason : info.message;
  return `The GPU device was lost (${why}): load the model again.`;
}
