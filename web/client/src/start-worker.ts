// Workers whose scripts may be on another origin.

/** Workers must be of the page's origin; a script of that origin may import one from elsewhere. */
export function workerOfAnyOrigin(script: string, name = "rullama"): Worker {
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
