// Where sessions get their model from.

import type { ChatModel } from "../chat-model.js";
import { load, openEngine } from "../index.js";
import { pageAddress } from "../page-address.js";
import type { EngineOptions, LoadOptions, ModelSource, Progress } from "../types.js";
import type { Availability } from "./types.js";

/** Loads one model for all sessions. */
export interface ModelProvider {
  /** What `create()` would find; never downloads. */
  availability(): Promise<Availability>;
  /** Whether the model encodes images or audio; undefined where that is not known yet. */
  hasEncoders?(): Promise<boolean | undefined>;
  /** The model; `onProgress` gets the fraction that is downloaded. */
  load(onProgress: (fraction: number) => void, signal?: AbortSignal): Promise<ChatModel>;
}

/** A provider of a model that is loaded when the first session is created, and shared by all of them. */
export function providerOf(source: ModelSource, options: LoadOptions & EngineOptions = {}): ModelProvider {
  let model: Promise<ChatModel> | undefined;
  let loaded = false;
  let encoders: Promise<boolean | undefined> | undefined;
  const listeners = new Set<(fraction: number) => void>();
  const onProgress = (progress: Progress) => {
    const { downloaded, downloadTotal, loaded: done, total } = progress;
    const [part, whole] = downloadTotal ? [downloaded ?? 0, downloadTotal] : [done, total];
    for (const listener of listeners) listener(whole > 0 ? part / whole : 0);
    options.onProgress?.(progress);
  };
  const begin = async (): Promise<ChatModel> => {
    const found = await load(source, { ...options, onProgress });
    loaded = true;
    const forget = () => {
      loaded = false;
      model = undefined;
    };
    void found.lost.then(forget);
    return found;
  };
  return {
    async availability() {
      if (loaded) return "available";
      if (!(await hasWebGpu())) return "unavailable";
      if (model) return "downloading";
      return (await isHere(source, options)) ? "available" : "downloadable";
    },
    async hasEncoders() {
      if (!loaded && !(await isHere(source, options))) return undefined;
      return (encoders ??= inspectEncoders(source, options));
    },
    // A signal ends the wait of one session; the download goes on for the others.
    async load(listener, signal) {
      listeners.add(listener);
      try {
        model ??= begin().catch((error: unknown) => {
          model = undefined;
          throw error;
        });
        return await untilAborted(model, signal);
      } finally {
        listeners.delete(listener);
      }
    },
  };
}

/** Settles at once when the signal aborts, with its reason. */
export async function untilAborted<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return work;
  signal.throwIfAborted();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => (abort = () => reject(signal.reason as Error)));
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function hasWebGpu(): Promise<boolean> {
  const gpu = (globalThis.navigator as Navigator | undefined)?.gpu;
  return gpu !== undefined && (await gpu.requestAdapter().catch(() => null)) !== null;
}

/** Options of the load alone: addresses of the engine's parts may be URL objects, which cannot be posted to a worker. */
function loadOptionsOf(options: LoadOptions & EngineOptions): LoadOptions {
  const {
    worker: _w,
    wasm: _a,
    guidanceWasm: _g,
    templateWasm: _t,
    workerScript: _s,
    host: _h,
    shared: _d,
    onProgress: _p,
    ...rest
  } = options;
  return rest;
}

/** Whether the model's file, or its projector, has encoders. */
async function inspectEncoders(
  source: ModelSource,
  options: LoadOptions & EngineOptions,
): Promise<boolean | undefined> {
  const engine = engineOf(options);
  try {
    const { memory } = await engine.inspect(source, loadOptionsOf(options));
    return (memory.encoders ?? 0) > 0;
  } catch {
    return undefined;
  } finally {
    engine.close();
  }
}

/** An engine of its own for a short look. */
function engineOf({ worker, wasm, guidanceWasm, templateWasm, workerScript, host }: EngineOptions) {
  return openEngine({ worker, wasm, guidanceWasm, templateWasm, workerScript, host });
}

/** Whether a model can be loaded without a download. */
async function isHere(source: ModelSource, options: EngineOptions): Promise<boolean> {
  if (typeof source !== "string" && !(source instanceof URL)) return true;
  const engine = engineOf(options);
  try {
    const { models } = await engine.storage();
    const name = String(source);
    // Stored files are known by their whole addresses.
    const address = /^\.{0,2}\//u.test(name) ? new URL(name, pageAddress()).href : name;
    return models.some(({ complete, names, source: from }) => complete && (from === address || names.includes(name)));
  } catch {
    return false;
  } finally {
    engine.close();
  }
}
