// Starts the engine's worker: found beside this module, or where it was said to be. In a file of its own: the worker must not refer to
// itself, or bundlers build it again for each level (Turbopack never ends).

import { workerOfAnyOrigin } from "./start-worker.js";

/** The engine's worker. */
export function startEngine(script?: string): Worker {
  if (script !== undefined) return workerOfAnyOrigin(script);
  try {
    // Bundlers look for exactly this.
    return new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "rullama" });
  } catch {
    return workerOfAnyOrigin(new URL("./worker.js", import.meta.url).href);
  }
}
