// What a page and a worker say to each other: one map, from which both sides are derived.

import type { ConstraintOptions, PlainConstraint } from "./constraint.js";
import type { PackedError } from "./errors.js";
import type { ReplyPrefix } from "./prefix.js";
import type { SharedFile } from "./storage/cross-origin.js";
import type { TrainingRequests } from "./training-protocol.js";
import type {
  BenchResult,
  DeviceReport,
  FitReport,
  GenerateEvent,
  LoadOptions,
  MemoryReport,
  ModelInfo,
  OpResult,
  ImageTokens,
  PickedFile,
  Progress,
  ServedModel,
  SessionOptions,
  DenoisingOptions,
  StorageReport,
  StoredModel,
  EncoderBench,
} from "./types.js";

/** A model's place, as `postMessage` takes it: addresses are absolute. */
export type PlainSource = string | PickedFile | readonly PickedFile[];

/** Options of a load that are plain data. */
export type PlainLoadOptions = Omit<LoadOptions, "onProgress" | "signal" | "draft" | "projector" | "table"> & {
  /** Where the per-layer embedding table goes: to the GPU if it fits, to the GPU, or it stays in the file. */
  table: "fits" | "gpu" | "file";
  draft?: PlainSource;
  projector?: PlainSource;
  /** Files of Cross-Origin Storage, which windows alone may ask for. */
  sharedFiles?: SharedFile[];
  /** The file that `headers` are for; set by the engine. */
  headersFor?: PlainSource;
};

/** What to answer: one of `messages`, `text` and `ids`, and options in the engine's own words (see `sampling.ts`). */
export interface AnswerRequest {
  messages?: EngineMessage[];
  tools?: unknown[];
  think?: boolean;
  /** With `think`: most tokens of thoughts. */
  think_budget?: number;
  text?: string;
  ids?: number[];
  /** With `messages`: what the reply continues. */
  prefix?: ReplyPrefix;
  /** Numbers of what was encoded of the messages' images and audio, in order. */
  media?: number[];
  /** Denoising options of diffusion models. */
  denoising?: DenoisingOptions & { canvas?: boolean };
  adapters?: { id: string; weight: number }[];
  /** What the reply must look like, or call; see `constraint.ts`. */
  constraint?: PlainConstraint | ConstraintOptions;
  options: Record<string, unknown>;
}

/** A part of a message without what it shows, which was encoded before. */
export type EnginePart = { type: "text"; text: string } | { type: "image" | "audio" | "video" };

export interface EngineMessage {
  role: string;
  content: string | EnginePart[];
  thinking?: string;
  tool_calls?: { name: string; arguments: Record<string, unknown> }[];
  tool_name?: string;
}

/** A decoded image or audio clip. */
export type PlainMedium =
  | { kind: "image"; width: number; height: number; pixels: Uint8Array<ArrayBuffer>; tokens: number }
  | { kind: "audio"; samples: Float32Array<ArrayBuffer>; channels: number; rate: number };

/** Texts to make vectors of, or their tokens. */
export interface EmbedRequest {
  texts?: string[];
  ids?: number[][];
  purpose?: string;
  dimensions?: number;
}

/** Vectors, one after the other. */
export interface PlainVectors {
  values: Float32Array<ArrayBuffer>;
  count: number;
  tokens: number;
  cut: number;
}

export interface BenchRequest {
  prompt: number;
  answer: number;
  depth: number;
}

/** What to encode, and how often after the first time. */
export interface EncoderBenchRequest {
  /** Zero skips the image. */
  imageTokens: ImageTokens | 0;
  /** Zero skips the audio. */
  seconds: number;
  repeat: number;
}

/** Where the other side finds its parts. */
export interface Settings {
  wasm?: string;
  /** Address of `guidance_bg.wasm`. */
  guidanceWasm?: string;
  /** Address of `template_bg.wasm`. */
  templateWasm?: string;
  host?: string;
}

/** Every request: what it takes, what it gives, what it tells meanwhile. */
export interface Requests extends TrainingRequests {
  device: { params: void; result: DeviceReport; event: never };
  inspect: { params: { source: PlainSource; options: PlainLoadOptions }; result: FitReport; event: never };
  load: {
    params: { source: PlainSource; options: PlainLoadOptions };
    result: { model: number; info: ModelInfo };
    event: Progress;
  };
  /** Settles when the model's checksum was right. */
  verified: { params: { model: number }; result: void; event: never };
  /** Settles when the model's device is lost; never after it was freed. */
  lost: { params: { model: number }; result: PackedError; event: never };
  session: { params: { model: number; options: SessionOptions }; result: number; event: never };
  /** `session` is missing for the conversation that a model keeps for itself. */
  answer: { params: { model: number; session?: number; request: AnswerRequest }; result: void; event: GenerateEvent };
  /** Encodes an image or audio clip; requests name the result by its number until it is forgotten. */
  encode: { params: { model: number; medium: PlainMedium }; result: number; event: never };
  /** Makes images that were encoded one video; their own numbers are forgotten. */
  encodeVideo: { params: { model: number; images: number[]; seconds: number[] }; result: number; event: never };
  forget: { params: { model: number; medium: number }; result: void; event: never };
  tokens: { params: { model: number; session: number }; result: Uint32Array; event: never };
  save: { params: { model: number; session: number }; result: Uint8Array; event: never };
  restore: { params: { model: number; session: number; saved: Uint8Array }; result: void; event: never };
  freeSession: { params: { model: number; session: number }; result: void; event: never };
  tokenize: {
    params: { model: number; text: string; special: boolean; bos: boolean };
    result: Uint32Array;
    event: never;
  };
  detokenize: { params: { model: number; ids: Uint32Array }; result: string; event: never };
  embed: { params: { model: number; request: EmbedRequest }; result: PlainVectors; event: never };
  memory: { params: { model: number }; result: MemoryReport; event: never };
  bench: { params: { model: number } & BenchRequest; result: BenchResult; event: never };
  benchEncoders: { params: { model: number } & EncoderBenchRequest; result: EncoderBench; event: never };
  freeEncoders: { params: { model: number }; result: void; event: never };
  freeModel: { params: { model: number }; result: void; event: never };
  served: { params: void; result: ServedModel[]; event: never };
  storage: { params: void; result: StorageReport; event: never };
  remove: { params: { id: string }; result: void; event: never };
  /** Copies a file that the user picked into this browser's storage. */
  keepFile: {
    params: { file: Blob | FileSystemFileHandle; name?: string };
    result: StoredModel;
    event: { done: number; total: number };
  };
  selfTest: { params: { most: number | null }; result: OpResult[]; event: OpResult };
}

export type Kind = keyof Requests;

export interface CallOptions<K extends Kind> {
  signal?: AbortSignal;
  onEvent?: (event: Requests[K]["event"]) => void;
}

/** Either side of the boundary: something that answers requests. */
export interface Transport {
  call<K extends Kind>(
    kind: K,
    params: Requests[K]["params"],
    options?: CallOptions<K>,
  ): Promise<Requests[K]["result"]>;
  close(): void;
  /** Whether functions can be passed to it. */
  readonly isInProcess?: boolean;
  /** False once it was closed or broke: nothing it is asked for will come. */
  readonly alive: boolean;
}

/** From the page to the worker. */
export type ToWorker =
  | { type: "settings"; settings: Settings }
  | { type: "call"; id: number; kind: Kind; params: unknown }
  | { type: "abort"; id: number };

/** From the worker to the page. */
export type FromWorker =
  | { type: "event"; id: number; event: unknown }
  | { type: "result"; id: number; result: unknown }
  | { type: "error"; id: number; error: PackedError };
