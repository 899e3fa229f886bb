// One thing after the other.

import { CancelledError } from "./errors.js";

/** Runs jobs in the order they came; one that is aborted while it waits never begins. */
export class Queue {
  private last: Promise<void> = Promise.resolve();

  run<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const before = this.last;
    const result = (async () => {
      await beforeAbort(before, signal);
      if (signal?.aborted) throw new CancelledError();
      return job();
    })();
    // The next one waits for this one and, where this one gave up waiting, for those before it.
    this.last = Promise.allSettled([before, result]).then(() => {});
    return result;
  }
}

/** Settles with a promise, or when the signal aborts before that; nothing stays with a signal that outlives the promise. */
export async function beforeAbort(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return promise;
  let wake = () => {};
  const aborted = new Promise<void>((resolve) => (wake = resolve));
  if (signal.aborted) wake();
  signal.addEventListener("abort", wake);
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", wake);
  }
}
