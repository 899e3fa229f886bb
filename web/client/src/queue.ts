// One thing after the other.

import { CancelledError } from "./errors.js";

/**
 * Runs jobs in the order they came; one that is aborted while it waits never begins. Shared jobs run at the same time, unless they have the same
 * key; all others run alone.
 */
export class Queue {
  /** Settles when everything so far has ended. */
  private last: Promise<void> = Promise.resolve();
  /** Settles when the last job that runs alone has ended. */
  private lastAlone: Promise<void> = Promise.resolve();
  /** The last shared job of each key. */
  private readonly lastOf = new Map<unknown, Promise<void>>();

  run<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const [result, ended] = runAfter(this.last, job, signal);
    this.last = this.lastAlone = ended;
    return result;
  }

  /** Runs a job beside other shared ones; without a key, beside all of them. */
  share<T>(job: () => Promise<T>, key?: unknown, signal?: AbortSignal): Promise<T> {
    const before = [this.lastAlone, this.lastOf.get(key)];
    const [result, ended] = runAfter(
      Promise.all(before).then(() => {}),
      job,
      signal,
    );
    this.last = Promise.all([this.last, ended]).then(() => {});
    if (key !== undefined) {
      this.lastOf.set(key, ended);
      void ended.then(() => this.lastOf.get(key) === ended && this.lastOf.delete(key));
    }
    return result;
  }
}

/** Runs a job after a promise; returns its result, and what settles when it and what was before it have ended. */
function runAfter<T>(before: Promise<void>, job: () => Promise<T>, signal?: AbortSignal): [Promise<T>, Promise<void>] {
  const result = (async () => {
    await beforeAbort(before, signal);
    if (signal?.aborted) throw new CancelledError();
    return job();
  })();
  // The next one waits for this one and, where this one gave up waiting, for those before it.
  return [result, Promise.allSettled([before, result]).then(() => {})];
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
