// Models of families that run, with files that their publishers offer. Sizes are those of the files; what a model really takes here is
// read from its header before it is loaded. Digests are the hub's, which are looked up with the file.

import { hubAddress, hubFiles, hubPlace, isProjector, partsOf } from "./storage/hugging-face.js";
import { splitPart } from "./storage/split-names.js";

export { type HubFile, type HubPlace, hubAddress, hubFiles, hubPlace, isProjector } from "./storage/hugging-face.js";
export { splitPart } from "./storage/split-names.js";
export { fit } from "./fit.js";

/** What a model can do, beyond text. */
export type Ability = "images" | "audio" | "tools" | "thinking" | "search" | "diffusion" | "training";

/** A model of the catalogue. */
export interface CatalogueModel {
  /** What people call it. */
  name: string;
  /** Its repository at Hugging Face. */
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

/** The recommended ones first, then by size. */
export const CATALOGUE: readonly CatalogueModel[] = [
  {
    name: "Gemma 4 E2B",
    repository: "unsloth/gemma-4-E2B-it-GGUF",
    file: "gemma-4-E2B-it-Q4_K_M.gguf",
    projector: "mmproj-F16.gguf",
    size: 3.11e9,
    memory: 1.9e9,
    abilities: ["images", "audio", "tools", "thinking", "training"],
  },
  {
    name: "Gemma 4 E4B",
    repository: "unsloth/gemma-4-E4B-it-GGUF",
    file: "gemma-4-E4B-it-Q4_K_M.gguf",
    projector: "mmproj-F16.gguf",
    size: 4.98e9,
    memory: 3.4e9,
    abilities: ["images", "audio", "tools", "thinking", "training"],
  },
  {
    name: "Gemma 3 270M",
    repository: "ggml-org/gemma-3-270m-it-GGUF",
    file: "gemma-3-270m-it-Q8_0.gguf",
    size: 0.292e9,
    memory: 0.4e9,
    abilities: ["training"],
  },
  {
    name: "FunctionGemma 270M",
    repository: "unsloth/functiongemma-270m-it-GGUF",
    file: "functiongemma-270m-it-Q8_0.gguf",
    size: 0.292e9,
    memory: 0.4e9,
    abilities: ["tools", "training"],
  },
  {
    name: "Gemma 3 4B",
    repository: "ggml-org/gemma-3-4b-it-GGUF",
    file: "gemma-3-4b-it-Q4_K_M.gguf",
    projector: "mmproj-model-f16.gguf",
    size: 2.49e9,
    memory: 3.2e9,
    abilities: ["images", "training"],
  },
  {
    name: "Qwen 3 0.6B",
    repository: "Qwen/Qwen3-0.6B-GGUF",
    file: "Qwen3-0.6B-Q8_0.gguf",
    size: 0.639e9,
    memory: 1.1e9,
    abilities: ["tools", "thinking", "training"],
  },
  {
    name: "Llama 3.2 1B",
    repository: "unsloth/Llama-3.2-1B-Instruct-GGUF",
    file: "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
    size: 0.808e9,
    memory: 1.1e9,
    abilities: ["tools", "training"],
  },
  {
    name: "SmolLM2 360M",
    repository: "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF",
    file: "smollm2-360m-instruct-q8_0.gguf",
    size: 0.386e9,
    memory: 0.7e9,
    abilities: ["training"],
  },
  {
    name: "Gemma 4 12B",
    repository: "unsloth/gemma-4-12b-it-GGUF",
    file: "gemma-4-12b-it-Q4_K_M.gguf",
    size: 7.2e9,
    memory: 8e9,
    abilities: ["tools", "thinking", "training"],
  },
  {
    name: "Gemma 4 26B-A4B",
    repository: "unsloth/gemma-4-26B-A4B-it-GGUF",
    file: "gemma-4-26B-A4B-it-UD-Q4_K_M.gguf",
    size: 16.9e9,
    memory: 17.5e9,
    abilities: ["tools", "thinking", "training"],
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

/** The model to offer first: small, and able to do most things. */
export const RECOMMENDED = CATALOGUE[0]!;

/** The name to load a model of the catalogue by: its projector comes with it. */
export function sourceOf({ repository, file }: CatalogueModel): string {
  const quant = /(Q\d\w*|F16|BF16|F32)\.gguf$/iu.exec(file)?.[1];
  return quant === undefined ? hubAddress({ repository, revision: "main" }, file) : `hf.co/${repository}:${quant}`;
}

/** Whether a model fits into so many bytes of GPU memory, about. */
export const fitsInto = ({ memory }: CatalogueModel, bytes: number): boolean => memory <= bytes;

/**
 * A catalogue of your own: the models of a repository that can be loaded in a browser, with sizes and digests. One that is split has the
 * address of its first part, and the size of all.
 */
export async function filesOfRepository(repository: string, signal?: AbortSignal) {
  const place = hubPlace(repository, true);
  if (!place) throw new TypeError(`${repository} is no repository of Hugging Face`);
  const files = await hubFiles(place, undefined, signal);
  return files
    .filter(({ path }) => !isProjector(path) && (splitPart(path)?.part ?? 1) === 1)
    .map((file) => {
      const url = hubAddress(place, file.path);
      if (!splitPart(file.path)) return { ...file, url };
      const size = partsOf(file, files, place).reduce((sum, part) => sum + part.size, 0);
      return { path: file.path, size, url };
    });
}
