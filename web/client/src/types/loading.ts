// Loading: where a model is, how it is loaded, and how far that is.

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

export interface LoadOptions {
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
  /** Most tokens of prompt and answer together, for the fit check and as default of sessions. */
  context?: number;
  /**
   * What the model runs on: the GPU, the CPU, or (`auto`, the default) the GPU where WebGPU works and the CPU elsewhere, which is fast enough
   * for small models such as Gemma 3 270M. `info.runsOn` tells which it became. On the CPU nothing is trained.
   */
  device?: "auto" | "gpu" | "cpu";
  /** How caches keep numbers. */
  cache?: "f32" | "f16" | "q8";
  /**
   * Where the per-layer embedding table of E2B and E4B lies: on the GPU, or in the file, which takes less than half of the memory but is
   * less than half as fast. By default on the GPU if it fits there; in the file on phones, tablets and machines with less than 8 GB.
   */
  table?: "auto" | "gpu" | "file";
  /** Refuse models that need more bytes on the GPU, or on the CPU in the wasm's memory, of which there are never more than 3.5 GB. */
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
  /** Address of `guidance_bg.wasm`, which constrained replies need; beside this module by default. */
  guidanceWasm?: string | URL;
  /** Address of `template_bg.wasm`, which models whose chat template must be run need; beside this module by default. */
  templateWasm?: string | URL;
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
