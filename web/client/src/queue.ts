// One thing after the other.

import { CancelledError } from "./errors.js";

/** Runs jobs in the order they came; one that is aborted while it waits never begins. */
export class Queue {
  private last: Promise<void> = Promise.resolve();

  run<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const before = this.last;
    const result = (async () => {
      await Promise.race([before, aborted(signal)]);
      if (signal?.aborted) throw new CancelledError();
      return job();
    })();
    // The next one waits for this one and, where this one gave up waiting, for those before it.
    this.last = Promise.allSettled([before, result]).then(() => {});
    return result;
  }
}

/** Settles when the signal aborts; never without one. */
export function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) resolve();
    else signal?.addEventListener("abort", () => resolve(), { once: true });
  });
}
