// Models that are known to run, with files that their publishers offer. Sizes are those of the files; what a model really takes here is
// read from its header before it is loaded.

/** What a model can do, beyond text. */
export type Ability = "images" | "audio" | "thinking" | "search" | "diffusion";

export interface KnownModel {
  /** What people call it. */
  name: string;
  /** Its repository at Hugging Face, by whom it is published. */
  repository: string;
  file: string;
  /** Its vision and audio encoders, in a file of their own. */
  projector?: string;
  /** Bytes of the file, about. */
  size: number;
  /** Bytes of GPU memory with a context of 4,096 tokens, about. */
  memory: number;
  abilities: Ability[];
}

/** Smallest first. */
export const KNOWN: readonly KnownModel[] = [
  {
    name: "Gemma 4 E2B",
    repository: "unsloth/gemma-4-E2B-it-GGUF",
    file: "gemma-4-E2B-it-Q4_K_M.gguf",
    projector: "mmproj-F16.gguf",
    size: 3.11e9,
    memory: 1.9e9,
    abilities: ["images", "audio", "thinking"],
  },
  {
    name: "Gemma 4 E4B",
    repository: "unsloth/gemma-4-E4B-it-GGUF",
    file: "gemma-4-E4B-it-Q4_K_M.gguf",
    projector: "mmproj-F16.gguf",
    size: 4.98e9,
    memory: 3.4e9,
    abilities: ["images", "audio", "thinking"],
  },
  {
    name: "Gemma 4 12B",
    repository: "unsloth/gemma-4-12b-it-GGUF",
    file: "gemma-4-12b-it-Q4_K_M.gguf",
    size: 7.2e9,
    memory: 8e9,
    abilities: ["thinking"],
  },
  {
    name: "Gemma 4 26B-A4B",
    repository: "unsloth/gemma-4-26B-A4B-it-GGUF",
    file: "gemma-4-26B-A4B-it-UD-Q4_K_M.gguf",
    size: 16.9e9,
    memory: 17.5e9,
    abilities: ["thinking"],
  },
  {
    name: "DiffusionGemma 26B-A4B",
    repository: "unsloth/diffusiongemma-26B-A4B-it-GGUF",
    file: "diffusiongemma-26B-A4B-it-Q4_K_M.gguf",
    size: 16.8e9,
    memory: 17.5e9,
    abilities: ["diffusion"],
  },
  {
    name: "EmbeddingGemma 300M",
    repository: "ggml-org/embeddinggemma-300M-GGUF",
    file: "embeddinggemma-300M-Q8_0.gguf",
    size: 0.334e9,
    memory: 0.4e9,
    abilities: ["search"],
  },
];

/** The model that people are offered first: small, and able to do most things. */
export const FIRST = KNOWN[0]!;

/** Whether a name is that of the demo model. */
export const isDemo = (name: string): boolean => /^demo(?::|$)/u.test(name);

/** What the demo model was trained to answer. It knows English alone, so these are never translated. */
export const DEMO_PROMPTS = [
  "What is 23 + 45?",
  "What is the capital of France?",
  "Spell the word lamp.",
  "What can you do?",
] as const;
