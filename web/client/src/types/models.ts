// Models: what is in a file, what it takes, and whether that fits.

import type { DenoisingOptions, SamplingOptions } from "./generation.js";

/** What a file holds: a decoder, a text embedding model, a block diffusion model, or a drafter for speculative decoding. */
export type ModelKind = "decoder" | "embedding" | "diffusion" | "drafter";

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
  /** What it runs on here; missing where it runs elsewhere (`remote`). */
  runsOn?: "gpu" | "cpu";
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
  /** All of it together: what must fit on the GPU, or into the wasm's memory of a model on the CPU. */
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
  /** What it would run on. */
  runsOn: "gpu" | "cpu";
  memory: MemoryUse;
  /** Bytes a buffer or all buffers may take, as far as the browser tells. */
  verdict: "fits" | "tight" | "too-large";
  /** Sentences for a person. */
  warnings: string[];
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
