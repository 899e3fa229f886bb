// Workers of this package: found beside this module, or where they were said to be, also on another origin.

/** The engine's worker. */
export function startEngine(script?: string): Worker {
  if (script !== undefined) return ofAnyOrigin(script);
  try {
    // Bundlers look for exactly this.
    return new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "rullama" });
  } catch {
    return ofAnyOrigin(new URL("./worker.js", import.meta.url).href);
  }
}

/** A worker that hashes one file; its name tells it where the wasm is. */
export function startHashing(wasm?: string): Worker {
  try {
    return new Worker(new URL("./hash-worker.js", import.meta.url), { type: "module", name: wasm ?? "" });
  } catch {
    return ofAnyOrigin(new URL("./hash-worker.js", import.meta.url).href, wasm ?? "");
  }
}

/** Workers must be of the page's origin; a script of that origin may import one from elsewhere. */
function ofAnyOrigin(script: string, name = "rullama"): Worker {
  const url = new URL(script, globalThis.location.href).href;
  const { protocol } = globalThis.location;
  if (protocol !== "blob:" && new URL(url).origin === globalThis.location.origin) {
    return new Worker(url, { type: "module", name });
  }
  const blob = new Blob([`import ${JSON.stringify(url)};`], { type: "text/javascript" });
  const address = URL.createObjectURL(blob);
  try {
    return new Worker(address, { type: "module", name });
  } finally {
    // Its fetch has begun by then; a second is more than enough.
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  }
}
