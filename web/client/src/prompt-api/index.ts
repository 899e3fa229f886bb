// The browsers' Prompt API with a model of this package: `LanguageModel.create()`, and one line to install it where the browser has none.

import type { EngineOptions, LoadOptions, ModelSource } from "../types.js";
import { type LanguageModelClass, languageModelOf } from "./language-model.js";
import { type ModelProvider, providerOf } from "./provider.js";
import { Monitor } from "./monitor.js";
import { LanguageModelParams, isExtension } from "./raw-sampling.js";
import { LanguageModelToolCall, LanguageModelToolError, LanguageModelToolSuccess } from "./tool-values.js";

export type * from "./types.js";
export { type LanguageModelClass, type LanguageModelSession, languageModelOf } from "./language-model.js";
export { type ModelProvider, providerOf } from "./provider.js";
export type { LanguageModelParams } from "./raw-sampling.js";
export {
  LanguageModelToolCall,
  LanguageModelToolError,
  LanguageModelToolSuccess,
  type ToolResultContent,
} from "./tool-values.js";

/** The model of sessions for which `useModel` named none: Gemma 4 E2B, 3.1 GB. */
export const DEFAULT_MODEL = "hf.co/unsloth/gemma-4-E2B-it-GGUF:Q4_K_M";

let provider: ModelProvider | undefined;
const current = (): ModelProvider => (provider ??= providerOf(DEFAULT_MODEL));

/** Chooses the model of sessions that are created from now on. Nothing is fetched before that. */
export function useModel(source: ModelSource, options: LoadOptions & EngineOptions = {}): void {
  provider = providerOf(source, options);
}

/** The Prompt API's class. */
export const LanguageModel: LanguageModelClass = languageModelOf({
  availability: () => current().availability(),
  hasEncoders: async () => current().hasEncoders?.(),
  load: (onProgress, signal) => current().load(onProgress, signal),
});

/** Where browsers have the interface: windows in secure contexts. Runtimes without pages know neither. */
function isExposed(): boolean {
  const { WorkerGlobalScope: Scope } = globalThis as { WorkerGlobalScope?: new () => object };
  return globalThis.isSecureContext !== false && !(typeof Scope === "function" && globalThis instanceof Scope);
}

/**
 * Makes it `globalThis.LanguageModel`, with the classes around it, and returns true. Returns false where the browser has one, and in workers
 * and insecure pages, where browsers have none; `force` installs it there, too.
 */
export function install(options: { force?: boolean } = {}): boolean {
  if (!options.force && ("LanguageModel" in globalThis || !isExposed())) return false;
  const globals = {
    LanguageModel,
    LanguageModelToolCall,
    LanguageModelToolSuccess,
    LanguageModelToolError,
    CreateMonitor: Monitor,
    ...(isExtension() ? { LanguageModelParams } : {}),
  };
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  }
  return true;
}
