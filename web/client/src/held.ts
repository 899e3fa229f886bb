// A model on this side of the boundary: its device, its conversations, and the order of calls.

import type { OpenDevice } from "./device.js";
import { DeviceLostError, FreedError, type RullamaError, rullamaError } from "./errors.js";
import type { AnswerRequest, BenchRequest, PlainMedium } from "./protocol.js";
import { Queue } from "./queue.js";
import type { BenchResult, GenerateEvent, MemoryReport, ModelInfo, SessionOptions } from "./types.js";
import type { BytesOf, Model, Session } from "./wasm/rullama.js";

/** The files behind a model. */
export interface ModelFiles {
  /** Opens that of its eyes and ears, where it has one of its own. */
  projector?: () => Promise<BytesOf>;
  /** Called once, when the model is freed. */
  close(): void;
}

export class HeldModel {
  /** Settles when the device is lost without our doing. */
  readonly lost: Promise<RullamaError>;
  private readonly queue = new Queue();
  private readonly sessions = new Map<number, Session>();
  private own: Session | undefined;
  private nextSession = 1;
  private attached = false;
  private gone: RullamaError | undefined;

  constructor(
    readonly info: ModelInfo,
    readonly verified: Promise<void>,
    private readonly model: Model,
    private readonly device: OpenDevice,
    private readonly heap: () => number,
    private readonly files: ModelFiles,
  ) {
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

  answer(
    session: number | undefined,
    request: AnswerRequest,
    onEvent: (event: GenerateEvent) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    const each = (event: string): boolean => {
      onEvent(JSON.parse(event) as GenerateEvent);
      return signal?.aborted ?? false;
    };
    return this.work(() => this.find(session).generate(JSON.stringify(request), each), signal);
  }

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
    const { projector } = this.files;
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
    return { gpu: this.model.gpuBytes() + caches, wasmHeap: this.heap(), sessions: all.length };
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
    const release = async () => {
      for (const session of [...this.sessions.values(), ...(this.own ? [this.own] : [])]) quietly(() => session.free());
      this.sessions.clear();
      this.own = undefined;
      quietly(() => this.model.free());
      quietly(() => this.device.engine.destroy());
      quietly(() => this.device.engine.free());
      this.files.close();
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
