// An embedding model of the AI SDK.

import type { ChatModel } from "../chat-model.js";
import type { EmbedOptions } from "../types.js";
import { apiError } from "./errors.js";
import type { Warning } from "./types.js";

interface EmbedCall {
  values: string[];
  abortSignal?: AbortSignal;
  providerOptions?: Record<string, Record<string, unknown>>;
}

export class EmbeddingModel {
  readonly specificationVersion = "v3";
  readonly provider = "rullama";
  readonly maxEmbeddingsPerCall = 256;
  readonly supportsParallelCalls = false;

  constructor(
    readonly modelId: string,
    private readonly load: () => Promise<ChatModel>,
  ) {}

  async doEmbed({ values, abortSignal, providerOptions }: EmbedCall): Promise<{
    embeddings: number[][];
    usage: { tokens: number };
    warnings: Warning[];
  }> {
    abortSignal?.throwIfAborted();
    try {
      const model = await this.load();
      const own = providerOptions?.["rullama"] as Pick<EmbedOptions, "purpose" | "dimensions"> | undefined;
      const { vectors, tokens, cut } = await model.embed(values, {
        ...own,
        ...(abortSignal ? { signal: abortSignal } : {}),
      });
      const message = `${cut} of the texts are longer than the model's context, and were cut`;
      const warnings: Warning[] = cut > 0 ? [{ type: "other", message }] : [];
      return { embeddings: vectors.map((vector) => [...vector]), usage: { tokens }, warnings };
    } catch (error) {
      throw abortSignal?.aborted ? abortSignal.reason : apiError(error, this.modelId);
    }
  }
}
