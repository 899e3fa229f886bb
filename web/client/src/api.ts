// The interface that `index.ts` exports, as types: the same whether the engine runs in this thread or in a worker.

import type {
  BenchResult,
  DeviceReport,
  EmbedOptions,
  Embedded,
  EngineOptions,
  FitReport,
  GenerateEvent,
  GenerateOptions,
  LoadOptions,
  MemoryReport,
  Message,
  ModelInfo,
  ModelSource,
  OpResult,
  ServedModel,
  SessionOptions,
  StorageReport,
} from "./types.js";

/** A model on the GPU. Calls are queued: one answer at a time. */
export interface ModelApi {
  readonly info: ModelInfo;
  /** Settles when the file's checksum was right, at once where there is none to check; rejects with code `checksum`. */
  readonly verified: Promise<void>;
  /** Settles with the error when the device is lost; the model must be loaded again then. */
  readonly lost: Promise<Error>;
  /** A conversation with caches of its own. */
  session(options?: SessionOptions): Promise<SessionApi>;
  /** An answer in a conversation of its own; the longest common beginning with the last one is not computed again. `break` cancels. */
  chat(messages: Message[], options?: GenerateOptions): AsyncIterableIterator<GenerateEvent>;
  /** Continues text without a template. */
  complete(text: string, options?: GenerateOptions): AsyncIterableIterator<GenerateEvent>;
  /** Vectors of texts, of a model that makes them (`info.kind` is `embedding`). */
  embed(input: string | string[], options?: EmbedOptions): Promise<Embedded>;
  tokenize(text: string, options?: { special?: boolean; bos?: boolean }): Promise<Uint32Array>;
  detokenize(ids: Iterable<number>): Promise<string>;
  memory(): Promise<MemoryReport>;
  bench(options?: { prompt?: number; answer?: number; depth?: number; signal?: AbortSignal }): Promise<BenchResult>;
  /** Frees its eyes and ears on the GPU; they are loaded again when something is to be seen or heard. */
  freeTowers(): Promise<void>;
  /** Frees its GPU memory; calls after this fail with code `freed`. */
  free(): Promise<void>;
}

export interface SessionApi {
  chat(messages: Message[], options?: GenerateOptions): AsyncIterableIterator<GenerateEvent>;
  complete(text: string, options?: GenerateOptions): AsyncIterableIterator<GenerateEvent>;
  /** The same for token ids; events are as for text. For tests and tools. */
  completeIds(ids: Iterable<number>, options?: GenerateOptions): AsyncIterableIterator<GenerateEvent>;
  tokens(): Promise<Uint32Array>;
  save(): Promise<Uint8Array>;
  restore(saved: Uint8Array): Promise<void>;
  free(): Promise<void>;
}

/** The engine: one worker (or this thread) that owns the GPU and the storage. */
export interface EngineApi {
  /** What the GPU offers; needs no model. */
  device(): Promise<DeviceReport>;
  /** Reads a model's header and says what it is and whether it fits. */
  inspect(source: ModelSource, options?: LoadOptions): Promise<FitReport>;
  load(source: ModelSource, options?: LoadOptions): Promise<ModelApi>;
  /** Models that `rullama serve` at `host` offers; an empty list where there is none. */
  served(signal?: AbortSignal): Promise<ServedModel[]>;
  storage(): Promise<StorageReport>;
  /** Asks the browser to keep what is stored. */
  persist(): Promise<boolean>;
  /** Deletes a stored model; fails with code `storage` while a tab uses it. */
  remove(id: string): Promise<void>;
  /** Checks kernels against their CPU twins on this GPU. */
  selfTest(options?: {
    most?: number;
    onResult?: (result: OpResult) => void;
    signal?: AbortSignal;
  }): Promise<OpResult[]>;
  /** Ends the worker and frees everything. */
  close(): void;
}

export type OpenEngine = (options?: EngineOptions) => EngineApi;
