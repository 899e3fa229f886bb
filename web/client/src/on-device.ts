// Something loaded on a device: frees it, notices the loss of the device, and keeps calls in order.

import type { OpenDevice } from "./device.js";
import { DeviceLostError, FreedError, type RullamaError, rullamaError } from "./errors.js";
import { Queue } from "./queue.js";
import type { MemoryReport, ModelInfo } from "./types.js";
import type { BytesOf } from "./wasm/rullama.js";

/** What comes with whatever is loaded. */
export interface LoadedResources {
  info: ModelInfo;
  verified: Promise<void>;
  device: OpenDevice;
  /** Bytes of the wasm's memory. */
  heap: () => number;
  files: ModelFiles;
  /** Address of the wasm of constrained replies, where it is not beside this module. */
  guidanceWasm?: string;
}

/** The files behind a model. */
export interface ModelFiles {
  /** Opens the projector, where the encoders have a file of their own. */
  projector?: () => Promise<BytesOf>;
  /** Called once, when the model is freed. */
  close(): void;
}

export abstract class OnDevice {
  /** Settles when the device is lost without our doing. */
  readonly lost: Promise<RullamaError>;
  protected gone: RullamaError | undefined;
  private readonly queue = new Queue();
  /** Rejects the calls under way when the device is lost; each leaves the set as it ends. */
  private readonly underWay = new Set<(error: RullamaError) => void>();

  constructor(protected readonly resources: LoadedResources) {
    this.lost = new Promise((resolve) => {
      // The CPU is never lost.
      void resources.device.browser?.lost.then((info) => {
        if (this.gone) return;
        this.gone = new DeviceLostError(lossMessage(info));
        resolve(this.gone);
        for (const reject of this.underWay) reject(this.gone);
      });
    });
  }

  get info(): ModelInfo {
    return this.resources.info;
  }

  get verified(): Promise<void> {
    return this.resources.verified;
  }

  abstract memory(): MemoryReport;

  /** Frees what is on the wasm's side; nothing works there any more. */
  protected abstract release(): void;

  /** Work on the device, after what came before. */
  protected work<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.queue.run(() => this.untilLost(job), signal);
  }

  /** Work that may run at the same time as other such work with other keys, or without one. */
  protected share<T>(job: () => Promise<T>, key?: unknown, signal?: AbortSignal): Promise<T> {
    return this.queue.share(() => this.untilLost(job), key, signal);
  }

  private async untilLost<T>(job: () => Promise<T>): Promise<T> {
    if (this.gone) throw this.gone;
    let reject: (error: RullamaError) => void = () => {};
    // Not `this.lost.then(…)`: a promise that lives as long as the model would keep every result that was raced against it.
    const fails = new Promise<never>((_, fail) => (reject = fail));
    this.underWay.add(reject);
    try {
      // A promise of the engine may never settle once its device is gone.
      return await Promise.race([job(), fails]);
    } catch (error) {
      throw this.gone ?? rullamaError(error);
    } finally {
      this.underWay.delete(reject);
    }
  }

  /** Something that needs no device, after shared work of this key and what came before that. */
  protected afterwards<T>(job: () => Promise<T>, key: unknown): Promise<T> {
    return this.queue.share(job, key);
  }

  /** Frees everything, after what is under way. */
  async free(): Promise<void> {
    if (this.gone?.code === "freed") return;
    const lost = this.gone !== undefined;
    this.gone = new FreedError("the model was freed; load it again");
    const release = async () => {
      this.release();
      quietly(() => this.resources.device.engine.destroy());
      quietly(() => this.resources.device.engine.free());
      this.resources.files.close();
    };
    // A call on a lost device may never end.
    await (lost ? release() : this.queue.run(release));
  }
}

/** What a call on a lost device still holds cannot be freed; its memory on the GPU is gone all the same. */
export function quietly(free: () => void): void {
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
