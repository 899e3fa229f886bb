// rullama: Gemma 4 in a browser tab. `load` a model and talk to it; `openEngine` for more than one engine, or one of your own making.

import { InProcessTransport } from "./in-process.js";
import { type ConnectOptions, connect } from "./connect/index.js";
import { Engine } from "./engine.js";
import { RullamaError } from "./errors.js";
import type { Model } from "./model.js";
import { pageAddress } from "./page-address.js";
import type { Settings } from "./protocol.js";
import { SharedTransport, canShare } from "./shared/transport.js";
import { WorkerTransport } from "./worker-transport.js";
import type { EngineOptions, LoadOptions, ModelSource } from "./types.js";
import { startEngine } from "./start-engine.js";

export type * from "./types.js";
export type * from "./chat-model.js";
export type * from "./constraint.js";
export type * from "./training-types.js";
export type * from "./api.js";
export * from "./errors.js";
export { ERROR_CODES } from "./types/error-codes.js";
export { type BrowserReport, type TestSummary, browserReport, reportText } from "./browser-report.js";
export { type ConnectOptions, connect } from "./connect/index.js";
export { deviceReport } from "./device.js";
export { Engine } from "./engine.js";
export { type HeaderOptions, ModelHeader, type RenderedPrompt, type TensorInfo, openHeader } from "./header.js";
export { Model } from "./model.js";
export { Session } from "./session.js";
export { Embeddings, type Embeds } from "./embeddings.js";
export { Adapters } from "./adapters.js";
export { TrainingSession } from "./training.js";
export { OpenAi } from "./openai.js";
export type * from "./openai-types.js";
export { Ollama } from "./ollama.js";
export type * from "./ollama-types.js";
export { SearchIndex, type SearchDocument, type SearchHit, type SearchOptions, cosine, search } from "./search.js";

/** Opens an engine: in a worker, or with `worker: false` in this thread. Nothing is fetched until it is asked for something. */
export function openEngine(options: EngineOptions = {}): Engine {
  const base = pageAddress();
  const absolute = (url: string | URL) => new URL(url, base).href;
  const settings: Settings = {
    host: options.host === undefined ? (globalThis.location?.origin ?? new URL(base).origin) : absolute(options.host),
    ...(options.wasm === undefined ? {} : { wasm: absolute(options.wasm) }),
    ...(options.guidanceWasm === undefined ? {} : { guidanceWasm: absolute(options.guidanceWasm) }),
    ...(options.templateWasm === undefined ? {} : { templateWasm: absolute(options.templateWasm) }),
  };
  const script = options.workerScript === undefined ? undefined : absolute(options.workerScript);
  const open = () =>
    options.worker === false ? new InProcessTransport(settings) : new WorkerTransport(startEngine(script), settings);
  // Tabs share an engine where their settings are the same.
  const key = JSON.stringify([settings, script, options.worker ?? true]);
  return new Engine(options.shared && canShare() ? new SharedTransport(open, key) : open(), settings.host);
}

/** Engines that `load` opened, by their options: models share one. */
const shared = new Map<string, Engine>();

/** A model on a server, for when it cannot be loaded here. */
export interface FallbackOptions {
  /** Address of a server to use where there is no WebGPU or no room; `info.remote` says so then. */
  otherwise?: string | URL | ({ url: string | URL } & ConnectOptions);
}

/** Failures that another device does not have. */
const FALLBACKS = new Set<string>(["no_webgpu", "does_not_fit", "out_of_memory", "device_lost"]);

/** Loads a model in an engine that is opened when it is first needed and shared by all loads with the same engine options. */
export async function load(
  source: ModelSource,
  options: LoadOptions & EngineOptions & FallbackOptions = {},
): Promise<Model> {
  const { worker, wasm, guidanceWasm, templateWasm, workerScript, host, ...rest } = options;
  const { shared: shares, otherwise, ...loading } = rest;
  const engineOptions: EngineOptions = {
    worker,
    wasm,
    guidanceWasm,
    templateWasm,
    workerScript,
    host,
    shared: shares,
  };
  const key = JSON.stringify(Object.entries(engineOptions).map(([name, value]) => [name, String(value)]));
  let engine = shared.get(key);
  if (!engine?.alive) {
    engine = openEngine(engineOptions);
    shared.set(key, engine);
  }
  try {
    // Who names a server for want of a GPU means it rather than the CPU.
    return await engine.load(source, otherwise === undefined ? loading : { device: "gpu", ...loading });
  } catch (error) {
    if (otherwise === undefined || !(error instanceof RullamaError) || !FALLBACKS.has(error.code)) throw error;
    return fallback(otherwise, error, options.signal);
  }
}

async function fallback(
  otherwise: NonNullable<FallbackOptions["otherwise"]>,
  error: RullamaError,
  signal: AbortSignal | undefined,
): Promise<Model> {
  const { url, ...more } = typeof otherwise === "object" && "url" in otherwise ? otherwise : { url: otherwise };
  const model = await connect(url, { ...(signal ? { signal } : {}), ...more });
  if (model.info.remote) model.info.remote.reason = error.message;
  return model;
}
