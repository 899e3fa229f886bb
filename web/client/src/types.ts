// The words of the public interface: what goes in, what comes out. Everything here is plain data that can be posted to a worker.

import type { ResponseFormat, ToolChoice } from "./constraint.js";
import type { AdapterChoice } from "./training-types.js";

/**
 * A model's place: a name (`gemma4:e2b`, looked up in this browser's storage, then at `host`), a name or page of Hugging Face
 * (`hf.co/user/repo:Q4_K_M`), the address of a GGUF file, or a file itself. Of a model that is split, `…-00001-of-00003.gguf`, the address
 * of one part stands for all; as files, all of them are passed.
 */
export type ModelSource = string | URL | PickedFile | readonly PickedFile[];

/** A file that the user chose. */
export type PickedFile = Blob | FileSystemFileHandle;

/** How far loading is. Bytes count the whole file for downloads and the weights for uploads. */
export interface Progress {
  /** `open`: reading the header; `load`: weights are read (and downloaded) and put on the GPU; `verify`: the checksum is waited for. */
  phase: "open" | "load" | "verify";
  loaded: number;
  total: number;
  /** Bytes of the file that came over the network so far, where it is a download. */
  downloaded?: number;
  downloadTotal?: number;
  /** Bytes per second over the last seconds. */
  speed: number;
  /** Seconds left at this speed; undefined while nobody knows. */
  eta?: number;
  /** Seconds in which the engine had nothing to do but to wait for bytes. */
  waited: number;
}

/** What a file holds: a decoder, a text embedding model, a block diffusion model, or a drafter for speculative decoding. */
export type ModelKind = "decoder" | "embedding" | "diffusion" | "drafter";

export interface LoadOptions {
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
  /** Most tokens of prompt and answer together, for the fit check and as default of sessions. */
  context?: number;
  /** How caches keep numbers. */
  cache?: "f32" | "f16" | "q8";
  /** Where the table of per-layer inputs lies: on the GPU, where it was read from, or as there is room. */
  table?: "auto" | "gpu" | "file";
  /** Refuse models that need more bytes on the GPU. */
  gpuMemory?: number;
  /** Keep downloads in this browser's storage for the next time and for offline use (default), or not. */
  keep?: boolean;
  /**
   * SHA-256 of the file as 64 hex digits, checked before a download counts as complete. What cannot be checked (`keep: false`, a
   * private window, a full disk) is refused with code `unverified`. Names bring their own, which is checked where that can be done.
   */
  sha256?: string;
  /** Wait for the checksum before the model is handed out (default), or check while it is used already. */
  verify?: "before" | "background";
  /**
   * A projector file (`mmproj`) with the model's vision and audio encoders, where its own file has none. It is read when the first
   * image or audio clip comes. Names bring theirs.
   */
  projector?: ModelSource;
  /** Run with or without optional GPU features; all that the adapter offers by default. For tests and for working around drivers. */
  features?: { subgroups?: boolean; f16?: boolean; matrix?: boolean };
  powerPreference?: "high-performance" | "low-power";
  /**
   * Guesses several tokens and checks them at once, which changes no answer: the file of the model's drafter, `ngram` to guess from what
   * was said before, or `off`. Without it, a model of `rullama serve` uses the drafter it comes with.
   */
  draft?: ModelSource | "ngram" | "off";
  /** Most tokens to draft at a time: 1 to 7, 6 by default. */
  draftTokens?: number;
  /** Headers of requests for the model's file, such as `authorization`; sent to its own origin alone. */
  headers?: Record<string, string>;
  /** An access token of Hugging Face, for private and gated repositories; sent nowhere else. */
  token?: string;
  /**
   * Use Cross-Origin Storage where the browser offers it (default): a model that another site has stored there is not downloaded again, and
   * one that was downloaded here is shared. What needs `token` or `headers` is never shared.
   */
  crossOriginStorage?: boolean;
  /** In place of the global `fetch`; only with `worker: false`, as functions cannot be posted to a worker. */
  fetch?: typeof fetch;
  /** Draft even where that is estimated to be slower. For tests and measurements. */
  draftAlways?: boolean;
}

/** Where the engine runs and where its parts are found. */
export interface EngineOptions {
  /** Run in a worker (default) or in this thread. OPFS needs a worker in some browsers. */
  worker?: boolean;
  /** Address of `rullama_bg.wasm`; beside this module by default. */
  wasm?: string | URL;
  /** Address of the worker's script; beside this module by default. */
  workerScript?: string | URL;
  /** A `rullama serve` that knows names; this page's origin by default. */
  host?: string | URL;
  /**
   * Share one engine, and so one copy of each model, with the other tabs of this origin that say so too. When the tab that runs it is
   * closed, another takes over, and calls under way fail with `interrupted`.
   */
  shared?: boolean;
}

/** A capability of a model. */
export type Capability = "text" | "images" | "audio" | "tools" | "thinking" | "embeddings" | "training";

/** What is in a model's file and what it takes. */
export interface ModelInfo {
  kind: ModelKind;
  /** The name or file name it was loaded by. */
  name: string;
  /** `general.name` of the file, where it has one. */
  title?: string;
  architecture: string;
  parameters: number;
  /** The most common block format of its weights, e.g. `Q4_K`. */
  quantization: string;
  fileBytes: number;
  layers: number;
  vocabulary: number;
  /** Tokens it was trained for. */
  trainedContext: number;
  /** Tokens of this load's sessions. */
  context: number;
  /** Whether its template lets it think first. */
  thinking: boolean;
  /** What it can do, as its file says; encoders in a file of their own add `images` and `audio`. */
  capabilities?: Capability[];
  memory: MemoryUse;
  device: string;
  /** Sampling defaults: hints of the file under the parameters its name brings. */
  defaults: SamplingOptions & DenoisingOptions;
  /** System prompt its name brings. */
  system?: string;
  /** Numbers of a vector, of models that make them. */
  dimensions?: number;
  /** Tokens of a block, of diffusion models. */
  canvas?: number;
  /** What drafts for it. */
  draft?: { from: "drafter" | "ngram"; name?: string };
  /** Why the drafter that it comes with is not used. */
  draftProblem?: string;
  /** Where it runs, where that is not in this tab; `reason` says why, where `load` fell back to it. */
  remote?: { url: string; dialect: "ollama" | "openai"; reason?: string };
}

/** What a load will take or takes, in bytes. */
export interface MemoryUse {
  weights: number;
  caches: number;
  /** Activations of the largest run. */
  work: number;
  /** All of it together: what must fit on the GPU. */
  gpu: number;
  /** Whether the table of per-layer inputs is among the weights. */
  tableOnGpu: boolean;
  /** Before a load: vision and audio encoders, which the first image or audio clip loads. */
  encoders?: number;
  /** Before a load: the drafter. */
  drafter?: number;
}

/** Before loading: what a model is, what it takes here, and whether that fits. */
export interface FitReport {
  info: Omit<ModelInfo, "memory" | "device" | "context">;
  memory: MemoryUse;
  /** Bytes a buffer or all buffers may take, as far as the browser tells. */
  verdict: "fits" | "tight" | "too-large";
  /** Sentences for a person. */
  warnings: string[];
}

export interface SamplingOptions {
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  typicalP?: number;
  repeatPenalty?: number;
  repeatLastN?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  /** Random where absent; the one used is in the usage. */
  seed?: number;
  /** Most tokens of the answer; no limit but the context's where absent. */
  maxTokens?: number;
  stop?: string | string[];
  /** Token id → added to its logit. */
  logitBias?: Record<number, number>;
  /** Report log-probabilities of each token and of this many alternatives (0 to 20). */
  logprobs?: number;
}

export interface ToolCall {
  name: string;
  arguments: Record<string, unknown>;
}

/** An image: a file, its bytes, its address (`data:` and `blob:` too), or pixels. */
export type ImageSource = Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | URL | string | ImageBitmap | ImageData;

/** An audio clip: a file, its bytes, its address, what Web Audio decoded, or samples (channels one beside the other). */
export type AudioSource =
  | Blob
  | ArrayBuffer
  | Uint8Array<ArrayBuffer>
  | URL
  | string
  | AudioBuffer
  | { samples: Float32Array<ArrayBuffer>; sampleRate: number; channels?: number };

/** A video: a file, its bytes or its address. Its frames are encoded, its audio track is not. */
export type VideoSource = Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | URL | string;

/** Most soft tokens of an image: more show finer detail. */
export type ImageTokens = 70 | 140 | 280 | 560 | 1120;

/** A piece of a message. The last two are OpenAI's. What was encoded is remembered for the same object or address. */
export type ContentPart =
  | { type: "text"; text: string }
  | { type: "image"; image: ImageSource; tokens?: ImageTokens }
  | { type: "audio"; audio: AudioSource }
  | { type: "video"; video: VideoSource }
  | { type: "image_url"; image_url: string | { url: string; detail?: "low" | "high" | "auto" } }
  | { type: "input_audio"; input_audio: { data: string; format?: string } };

/** A message of a conversation. One of role `system` takes the place of the model's own system prompt; an empty one clears it. */
export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string | ContentPart[];
  /** What the model thought before this answer. */
  thinking?: string;
  toolCalls?: ToolCall[];
  /** For role `tool`: which tool answers. */
  toolName?: string;
  /** For a last message of role `assistant`: the reply continues this text, without repeating it. */
  prefix?: boolean;
}

/** A tool in the shape of OpenAI's and Ollama's interfaces. */
export interface Tool {
  type: "function";
  function: { name: string; description?: string; parameters?: Record<string, unknown> };
  /** Runs it. Its result, or what it throws, is shown to the model, which then goes on; without it, a call ends the reply. */
  execute?: (input: Record<string, unknown>, options: { signal?: AbortSignal }) => unknown;
}

/** How a DiffusionGemma denoises its blocks; other models ignore it. */
export interface DenoisingOptions {
  /** Steps that a block may take. */
  steps?: number;
  /** Entropy, in nats, that places accepted in one step may have together: more is faster and worse. */
  entropyBound?: number;
  /** Blocks to write, at most; 4 by default. */
  blocks?: number;
}

export interface GenerateOptions extends SamplingOptions, DenoisingOptions {
  /** Report the canvas of a DiffusionGemma after each step: events `canvas` in place of `step`. */
  canvas?: boolean;
  /** Let the model think first. */
  think?: boolean;
  tools?: Tool[];
  toolChoice?: ToolChoice;
  /** Most rounds of calls of tools with an `execute`; 8 by default. A further call ends the reply. */
  maxToolRounds?: number;
  /** Asked before such a tool runs; false refuses the call. */
  confirmToolCall?: (call: ToolCall) => boolean | Promise<boolean>;
  /** What the reply must look like; what cannot be enforced is refused with `bad_options`. */
  format?: ResponseFormat;
  /** Adapters of the model to answer with, several at once; none where absent. */
  adapters?: AdapterChoice[];
  signal?: AbortSignal;
}

export interface TokenLogprob {
  id: number;
  token: string;
  bytes: number[];
  logprob: number;
}

/** A denoising step of a block. */
export interface DenoisingStep {
  /** Blocks before this one. */
  block: number;
  /** From 1 to `steps`, at most. */
  step: number;
  steps: number;
  /** Mean entropy of the places, in nats. */
  entropy: number;
  /** Places that kept what was drawn. */
  accepted: number;
}

/** A place of a canvas: its likeliest token, and whether it stays for the next step. */
export interface CanvasToken {
  text: string;
  settled: boolean;
}

/** Before the prompt: an attachment of the messages is decoded, or its soft tokens are computed. */
export interface MediaEvent {
  type: "media";
  kind: "image" | "audio" | "video";
  phase: "decode" | "encode";
  /** Which one, of so many. */
  index: number;
  total: number;
}

/** Something that happened while an answer was made; `done` is always the last one. */
export type GenerateEvent =
  | MediaEvent
  | { type: "prefill"; done: number; total: number }
  | { type: "text"; text: string }
  | { type: "thinking"; text: string }
  | { type: "tool_call"; index: number; call: ToolCall }
  | { type: "bad_call"; raw: string }
  /** A tool with an `execute` has run, failed (then `content` says why) or was refused. */
  | { type: "tool_result"; call: ToolCall; content: string; isError: boolean }
  | { type: "logprobs"; token: TokenLogprob; top: TokenLogprob[] }
  | ({ type: "step" } & DenoisingStep)
  | ({ type: "canvas"; tokens: CanvasToken[] } & DenoisingStep)
  | { type: "done"; finish: Finish; usage: Usage };

/** Why an answer ended: the model ended it, the limit came, the context is full, somebody stopped it. */
export type Finish = "stop" | "length" | "context" | "cancelled";

export interface Usage {
  promptTokens: number;
  /** Of these, tokens that were in the caches already. */
  cachedTokens: number;
  answerTokens: number;
  /** Milliseconds. */
  timeToFirstToken: number;
  prefillTokensPerSecond: number;
  decodeTokensPerSecond: number;
  seed: number;
  /** Tokens of the context in use, of so many. */
  contextUsed: number;
  context: number;
  /** Of models that draft: tokens that were guessed, those that were right, and the runs that checked them. */
  drafts?: { runs: number; drafted: number; accepted: number };
  /** Of diffusion models: how many, and the steps they took together. */
  blocks?: number;
  steps?: number;
}

/** What texts are for: models were trained with words of their own in front of each. */
export type EmbeddingPurpose =
  | "none"
  | "query"
  | "document"
  | "question-answering"
  | "fact-checking"
  | "classification"
  | "clustering"
  | "similarity"
  | "code-retrieval"
  | "summarization";

export interface EmbedOptions {
  purpose?: EmbeddingPurpose;
  /** Keep so many numbers of each vector; all of them by default. */
  dimensions?: number;
  signal?: AbortSignal;
}

/** Vectors of texts, each of length one. */
export interface Embedded {
  vectors: Float32Array<ArrayBuffer>[];
  /** Tokens of all texts. */
  tokens: number;
  /** Texts that were longer than the model reads, and were cut. */
  cut: number;
}

export interface SessionOptions {
  context?: number;
  cache?: "f32" | "f16" | "q8";
}

/** What the engine holds right now, in bytes. */
export interface MemoryReport {
  gpu: number;
  wasmHeap: number;
  sessions: number;
  /** Tabs that use the model, where tabs share an engine. */
  tabs?: number;
}

/** A model in this browser's storage. */
export interface StoredModel {
  /** Its key: `sha256-…`, or one made of its address. */
  id: string;
  /** What to call it; a file name for one that came from an address. */
  name: string;
  /** Names it can be loaded by; a file from an address has none. */
  names: string[];
  /** Where it came from: an address it can be loaded by, too. */
  source: string;
  bytes: number;
  /** Bytes that are here; less than `bytes` for a download that was cut. Such a one is deleted after two weeks without use. */
  have: number;
  /** Whether it is whole and its checksum (where there is one) was right. */
  complete: boolean;
  /** Milliseconds since 1970. */
  added: number;
  used: number;
}

export interface StorageReport {
  models: StoredModel[];
  usage: number;
  quota: number;
  /** Whether the browser promised not to evict it. */
  persisted: boolean;
}

/** A model that `rullama serve` offers. */
export interface ServedModel {
  name: string;
  size: number;
  modified?: string;
  layers: { kind: string; digest: string | null; size: number; url: string }[];
  parameters?: Record<string, unknown>;
  system?: string | null;
  /** Why it cannot be loaded. */
  error?: string;
}

/** What this browser's GPU offers. */
export interface DeviceReport {
  webgpu: boolean;
  /** Why there is no WebGPU, for a person. */
  reason?: string;
  vendor?: string;
  architecture?: string;
  description?: string;
  fallback?: boolean;
  features: string[];
  limits: Record<string, number>;
  subgroups?: { min: number; max: number };
  /** It lists matrix units that kernels can use. Whether they do is tried when a device is opened. */
  matrixUnits?: boolean;
}

export interface OpResult {
  op: string;
  name: string;
  play: string;
  verdict: "passed" | "failed" | "skipped";
  message: string;
  /** Cases of the whole run. */
  total?: number;
}

export interface BenchResult {
  device: string;
  promptTokens: number;
  prefillTokensPerSecond: number;
  answerTokens: number;
  decodeTokensPerSecond: number;
  timeToFirstToken: number;
  dispatchesPerToken: number;
  memory: MemoryReport;
}

/** How long a tower takes from pixels or samples to soft tokens. */
export interface EncoderTimes {
  softTokens: number;
  /** The first time, in milliseconds: the tower is loaded and its kernels are compiled. */
  cold: number;
  /** Each time after that, in milliseconds. */
  milliseconds: number[];
}

export interface EncoderBench {
  image?: EncoderTimes;
  audio?: EncoderTimes & { seconds: number };
}

/** Stable names of failures; each class of `errors.ts` has one. */
export type ErrorCode =
  | "no_webgpu"
  | "device_lost"
  | "interrupted"
  | "out_of_memory"
  | "does_not_fit"
  | "not_found"
  | "network"
  | "no_ranges"
  | "file_changed"
  | "checksum"
  | "unverified"
  | "quota"
  | "storage"
  | "bad_file"
  | "unsupported_model"
  | "projector"
  | "context_full"
  | "bad_options"
  | "bad_media"
  | "bad_adapter"
  | "bad_data"
  | "bad_checkpoint"
  | "diverged"
  | "cancelled"
  | "freed"
  | "internal";
