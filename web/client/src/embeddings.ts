// Vectors in the shape of OpenAI's interface: `model.embeddings.create`.

import { RullamaError } from "./errors.js";
import type { CreateEmbeddingResponse, EmbeddingCreateParams } from "./openai-types.js";
import type { EmbedOptions, Embedded } from "./types.js";

/** What a model must be able to do. */
export interface Embeds {
  readonly info?: { name?: string; remote?: object };
  embed(input: string | string[], options?: EmbedOptions): Promise<Embedded>;
}

export class Embeddings {
  constructor(private readonly model: Embeds & { readonly info: { name: string } }) {}

  /** A vector for each text. */
  async create(
    params: EmbeddingCreateParams,
    options: Pick<EmbedOptions, "signal"> = {},
  ): Promise<CreateEmbeddingResponse> {
    const { input, dimensions, encoding_format: format = "float", purpose } = params;
    if (format !== "float" && format !== "base64") {
      throw new RullamaError("bad_options", `encoding_format must be float or base64, not ${String(format)}`);
    }
    const { vectors, tokens } = await this.model.embed(input, {
      ...options,
      ...(dimensions === undefined ? {} : { dimensions }),
      ...(purpose === undefined ? {} : { purpose }),
    });
    return {
      object: "list",
      data: vectors.map((vector, index) => ({
        object: "embedding",
        index,
        embedding: format === "float" ? [...vector] : base64(vector),
      })),
      model: params.model ?? this.model.info.name,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    };
  }
}

/** The numbers' bytes, lowest first, as OpenAI sends them. */
function base64(vector: Float32Array): string {
  const bytes = new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
