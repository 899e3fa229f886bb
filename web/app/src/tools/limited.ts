// Work with a time limit, which can be stopped.

/** Does something for at most `limit` milliseconds, or until a signal aborts; what does not listen to its signal is left alone then. */
export async function limited<T>(
  work: (signal: AbortSignal) => Promise<T> | T,
  limit: number,
  signal: AbortSignal,
): Promise<T> {
  signal.throwIfAborted();
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(new Error(`no result within ${limit / 1000} seconds`)), limit);
  const all = AbortSignal.any([signal, stop.signal]);
  try {
    const aborted = new Promise<never>((_, reject) => {
      all.addEventListener("abort", () => reject(all.reason as Error), { once: true });
    });
    return await Promise.race([work(all), aborted]);
  } finally {
    clearTimeout(late);
  }
}
