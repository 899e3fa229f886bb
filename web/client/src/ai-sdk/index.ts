// A provider for Vercel's AI SDK, versions 6 and 7: language and embedding models in this tab, without a server.

import type { ChatModel } from "../chat-model.js";
import { EmbeddingModel } from "./embedding-model.js";
import { LanguageModel } from "./language-model.js";

export { EmbeddingModel as RullamaEmbeddingModel } from "./embedding-model.js";
export { LanguageModel as RullamaLanguageModel } from "./language-model.js";

/** A model, or what loads it when it is first needed. */
export type ModelOrLoader = ChatModel | ((id: string) => ChatModel | Promise<ChatModel>);

export interface RullamaProvider {
  (id?: string): LanguageModel;
  readonly specificationVersion: "v3";
  languageModel(id?: string): LanguageModel;
  embeddingModel(id?: string): EmbeddingModel;
  textEmbeddingModel(id?: string): EmbeddingModel;
  imageModel(id: string): never;
}

/** A provider: `generateText({ model: createRullama(model)(), prompt })`. Each name is loaded once. */
export function createRullama(models: ModelOrLoader): RullamaProvider {
  const loaded = new Map<string, Promise<ChatModel>>();
  const find = (id: string): Promise<ChatModel> => {
    if (typeof models !== "function") return Promise.resolve(models);
    const known = loaded.get(id);
    if (known) return known;
    const model = Promise.resolve(models(id));
    loaded.set(id, model);
    // A load that failed is tried again.
    model.catch(() => loaded.delete(id));
    return model;
  };
  const nameOf = (id: string | undefined) => id ?? (typeof models === "function" ? "default" : models.info.name);
  const languageModel = (id?: string) => new LanguageModel(nameOf(id), () => find(nameOf(id)));
  const embeddingModel = (id?: string) => new EmbeddingModel(nameOf(id), () => find(nameOf(id)));
  const imageModel = (id: string): never => {
    throw new Error(`rullama has no image model ${id}`);
  };
  const rest = {
    specificationVersion: "v3" as const,
    languageModel,
    embeddingModel,
    textEmbeddingModel: embeddingModel,
    imageModel,
  };
  return Object.assign((id?: string) => languageModel(id), rest);
}
