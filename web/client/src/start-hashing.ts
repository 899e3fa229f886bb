// Starts the worker that hashes a file.

import { workerOfAnyOrigin } from "./start-worker.js";

/** A worker that hashes one file; its name tells it where the wasm is. */
export function startHashing(wasm?: string): Worker {
  try {
    return new Worker(new URL("./hash-worker.js", import.meta.url), { type: "module", name: wasm ?? "" });
  } catch {
    return workerOfAnyOrigin(new URL("./hash-worker.js", import.meta.url).href, wasm ?? "");
  }
}
