// Who may do what with a stored model, across tabs: users share one lock, so that nobody deletes what is read; one writes.

/** Held shared while a model is open, and exclusively to delete it. */
export const useLock = (id: string) => `rullama/use/${id}`;
/** Held by the tab that downloads it or changes its record. */
export const writeLock = (id: string) => `rullama/write/${id}`;

/** Takes a lock together with others; the result gives it back. */
export async function share(name: string, signal?: AbortSignal): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const held = () => new Promise<void>((release) => resolve(() => release()));
    navigator.locks.request(name, { mode: "shared", ...(signal ? { signal } : {}) }, held).catch(reject);
  });
}

/** Runs `work` while nobody else holds the lock; says whether it could. */
export async function ifFree(name: string, work: () => Promise<void>): Promise<boolean> {
  return navigator.locks.request(name, { ifAvailable: true }, async (lock) => {
    if (lock) await work();
    return lock !== null;
  });
}
