// The interface that `index.ts` exports, as types: the same whether the engine runs in this thread or in a worker.

import type {
  AdapterFile,
  AdapterInfo,
  AdapterSource,
  AddAdapterOptions,
  SavedTraining,
  StoredAdapter,
  TrainingData,
  TrainingOptions,
  TrainingProgress,
  TrainingReport,
  TrainingResult,
} from "./training-types.js";
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
  ImageTokens,
  ServedModel,
  SessionOptions,
  StorageReport,
  StoredModel,
  EncoderBench,
} from "./types.js";

/** A model on the GPU. Answers of different conversations are made at the same time, in one pass; those of one conversation one after another. */
export interface ModelApi {
  readonly info: ModelInfo;
  /**
   * Settles when the file's checksum was right, at once where no digest is known; rejects with code `checksum`, and with `unverified`
   * where a name brought a digest that cannot be checked because nothing is kept.
   */
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
  /** Adapters that requests may name. */
  readonly adapters: AdaptersApi;
  /** Reads data and says what would be trained on, and what that takes. */
  inspectTraining(data: TrainingData, options?: TrainingOptions): Promise<TrainingReport>;
  /** Trains an adapter; settles when the first step is about to begin. */
  train(data: TrainingData, options?: TrainingOptions): Promise<TrainingSessionApi>;
  /** Goes on with a training that this browser stored. */
  continueTraining(id: string): Promise<TrainingSessionApi>;
  bench(options?: { prompt?: number; answer?: number; depth?: number; signal?: AbortSignal }): Promise<BenchResult>;
  /** Times the vision encoder on an image of 280 soft tokens and the audio encoder on 30 seconds of audio by default; zero skips one. */
  benchEncoders(options?: {
    imageTokens?: ImageTokens | 0;
    seconds?: number;
    repeat?: number;
    signal?: AbortSignal;
  }): Promise<EncoderBench>;
  /** Frees the vision and audio encoders on the GPU; the next image or audio clip loads them again. */
  freeEncoders(): Promise<void>;
  /** Frees its GPU memory; calls after this fail with code `freed`. */
  free(): Promise<void>;
}

/** A model's adapters. Those that this browser stores can be named in requests without being added. */
export interface AdaptersApi {
  /** Reads an adapter; fails with code `bad_adapter` and a list of what does not fit. */
  add(source: AdapterSource, options?: AddAdapterOptions): Promise<AdapterInfo>;
  list(): Promise<AdapterInfo[]>;
  /** Forgets an adapter; what is stored of it stays. */
  remove(id: string): Promise<void>;
  /** Its files as PEFT loads them (`adapter_config.json`, `adapter_model.safetensors`), or one GGUF file. */
  export(id: string, format?: "peft" | "gguf"): Promise<AdapterFile[]>;
}

/** A training that runs: events for everybody who iterates over it, from its beginning. Between two steps the model answers others. */
export interface TrainingSessionApi extends AsyncIterable<TrainingProgress> {
  readonly id: string;
  /** How far it is. */
  readonly progress: TrainingProgress;
  /** The loss before each update so far, also of the runs this one goes on from. */
  readonly losses: readonly number[];
  readonly evaluations: readonly { step: number; loss: number }[];
  /** Settles when it is done; rejects when it failed or was cancelled. */
  readonly result: Promise<TrainingResult>;
  /** Settles when it has stopped and a checkpoint is written. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends it and deletes its checkpoints. */
  cancel(): Promise<void>;
  /** Writes a checkpoint now. */
  checkpoint(): Promise<void>;
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
  /** Copies a file that the user picked into this browser's storage: from then on it is loaded by its name, also after a reload. */
  keepFile(
    file: Blob | FileSystemFileHandle,
    options?: { name?: string; onProgress?: (done: number, total: number) => void; signal?: AbortSignal },
  ): Promise<StoredModel>;
  /** Asks the browser to keep what is stored, and says whether it will. Only pages can ask: an engine of a worker says how it stands. */
  persist(): Promise<boolean>;
  /** Deletes a stored model; fails with code `storage` while a tab uses it. */
  remove(id: string): Promise<void>;
  /** Adapters that this browser stores, the newest first. */
  storedAdapters(): Promise<StoredAdapter[]>;
  renameAdapter(id: string, name: string): Promise<void>;
  deleteAdapter(id: string): Promise<void>;
  /** Trainings that can go on, the last one first. */
  savedTrainings(): Promise<SavedTraining[]>;
  /** Deletes one; fails with code `storage` while a tab works on it. */
  discardTraining(id: string): Promise<void>;
  /** Checks kernels against their CPU references on this GPU. */
  selfTest(options?: {
    most?: number;
    onResult?: (result: OpResult) => void;
    signal?: AbortSignal;
  }): Promise<OpResult[]>;
  /** Ends the worker and frees everything. */
  close(): void;
}

export type OpenEngine = (options?: EngineOptions) => EngineApi;
