// The words of adapters and training: plain data that can be posted to a worker.

/**
 * An adapter: a file (GGUF or safetensors) or its bytes, the files of a PEFT folder, an address of a file or (with `/` at its end) of
 * a PEFT folder, or one that this browser keeps.
 */
export type AdapterSource =
  Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | URL | string | FileList | readonly File[] | { stored: string };

/** What an adapter is. */
export interface AdapterInfo {
  /** What requests name it by. */
  id: string;
  name: string;
  format: "peft" | "gguf" | "rullama";
  /** The largest inner size of its pairs. */
  rank: number;
  alpha: number;
  parameters: number;
  /** Kinds of weights it changes: `attn_q`, `ffn_down`, … */
  targets: string[];
  /** The base model its file names, where it names one. */
  baseModel?: string | null;
  /** Tensors it would change that the model does not compute. */
  withoutEffect: string[];
}

export interface AddAdapterOptions {
  /** For people; the file's name where absent. */
  name?: string;
  /** What requests name it by; one that is there already is replaced. Made up where absent. */
  id?: string;
  /** Keep its files in this browser's storage for the next time; not by default. */
  keep?: boolean;
}

/** An adapter to answer with, and how much of it: 1 where absent. */
export interface AdapterChoice {
  id: string;
  weight?: number;
}

/** An adapter in this browser's storage. */
export interface StoredAdapter extends Omit<AdapterInfo, "withoutEffect"> {
  /** The model it was made for or added to. */
  model: string;
  bytes: number;
  /** Milliseconds since 1970. */
  added: number;
}

/** A file of an adapter. */
export interface AdapterFile {
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** How to train; what is absent is as with `rullama train`. */
export interface TrainingOptions {
  /** What the adapter is called. */
  name?: string;
  /** An adapter of the model to begin with, instead of a new one. */
  init?: string;
  /** The inner size of its pairs: 16 where absent. */
  rank?: number;
  /** Its products are multiplied with alpha / rank; twice the rank where absent. */
  alpha?: number;
  /** Weights that get a pair, such as `q_proj` or `ffn_down`; all of attention and feed-forward where absent. */
  targets?: string[];
  /** Updates; without it, as many as `epochs` asks for. */
  steps?: number;
  /** How often every example is seen: 3 where absent. */
  epochs?: number;
  /** The highest learning rate: 2e-4 where absent. */
  learningRate?: number;
  schedule?: "cosine" | "linear" | "constant";
  /** Steps in which the rate rises from zero. */
  warmup?: number;
  weightDecay?: number;
  /** The longest all gradients may be together, 1 where absent; `null` for no limit. */
  clip?: number | null;
  /** Sequences of a step; 4, or as many as there are, where absent. */
  batch?: number;
  /** Share of an adapter's inputs that is left out. */
  dropout?: number;
  seed?: number;
  /** Most tokens of a sequence; longer examples are cut. 1024 where absent. */
  sequenceLength?: number;
  /** Put short examples together into sequences; they do not see each other. */
  pack?: boolean;
  /** Join prompts and completions as they are, without the model's template. */
  raw?: boolean;
  /** Share of the examples that is only measured. */
  evalSplit?: number;
  evalEvery?: number;
  /** End after this many evaluations that are no better than one before them. */
  earlyStop?: number;
  /** GPU memory for all of it, the model included: as many layers are computed twice as that asks for. 8 GB where absent. */
  memory?: number;
  /** Steps between two checkpoints in this browser's storage, 25 where absent; 0 for none. */
  checkpointEvery?: number;
  /** Keep the adapter in this browser's storage when it is done (default), or not. */
  keep?: boolean;
}

/** Lines of JSON: `{"messages":[…]}`, `{"prompt":…,"completion":…}`, `{"text":…}` or `{"ids":[…],"n_prompt":k}`. */
export type TrainingData = string | Blob;

/** A span of an example's text: given, or learned from what is given. */
export interface TextSpan {
  text: string;
  learned: boolean;
}

/** What would be trained on, and what that takes. */
export interface TrainingReport {
  examples: number;
  tokens: number;
  /** Of these, tokens that are learned. */
  learned: number;
  /** Tokens of the longest example. */
  longest: number;
  /** Examples that are too long and were cut. */
  cut: number;
  /** Examples that had nothing left to learn then. */
  dropped: number;
  /** Lines that cannot be used (the first hundred), and how many they are. */
  badLines: { line: number; message: string }[];
  bad: number;
  /** The first examples. */
  preview: { tokens: number; learned: number; spans: TextSpan[] }[];
  /** Why it cannot be trained like this, though the data is good. */
  problem?: string;
  steps?: number;
  batch?: number;
  /** Examples set aside for evaluation. */
  evaluated?: number;
  memory?: TrainingMemory;
  verdict?: "fits" | "tight" | "too-large";
  /** Sentences for a person. */
  warnings: string[];
}

/** Bytes on the GPU while it trains. */
export interface TrainingMemory {
  model: number;
  /** The adapter, its gradients and moments. */
  adapter: number;
  /** Activations of a step. */
  work: number;
  /** All of it together. */
  gpu: number;
  /** Layers that are computed a second time so that it fits. */
  layersComputedTwice: number;
}

/** How far a training is. */
export interface TrainingProgress {
  state: "running" | "paused" | "done" | "failed";
  /** Updates so far, of so many. */
  step: number;
  steps: number;
  /** The mean loss before the last update. */
  loss: number;
  /** The last loss of the examples set aside, where there are any. */
  evalLoss?: number;
  learningRate: number;
  /** Tokens that went through the model, per second over the last steps. */
  tokensPerSecond: number;
  /** Seconds left at this speed. */
  eta: number;
  /** The step of the last checkpoint. */
  saved?: number;
}

/** What a training has come to. */
export interface TrainingResult {
  /** Ready to answer with. */
  adapter: AdapterInfo;
  steps: number;
  /** The loss after the last update. */
  loss: number;
  /** Whether it ended because evaluations got no better. */
  early: boolean;
}

/** A training that can go on. */
export interface SavedTraining {
  id: string;
  name: string;
  /** The name of the model it belongs to. */
  model: string;
  options: TrainingOptions;
  step: number;
  steps: number;
  loss?: number;
  /** Milliseconds since 1970. */
  begun: number;
  saved: number;
}
