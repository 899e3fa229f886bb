// The words of the public interface, by subject: what goes in, what comes out. Everything here is plain data that can be posted to a worker.

export type * from "./types/loading.js";
export type * from "./types/models.js";
export type * from "./types/media.js";
export type * from "./types/generation.js";
export type * from "./types/embeddings.js";
export type * from "./types/storage.js";
export type * from "./types/device.js";
export type * from "./types/error-codes.js";
