// Embeddings.

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
  /** Not with a model on a server: put its words in front of the texts yourself. */
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
