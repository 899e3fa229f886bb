// Calls a function at most once per interval: at once, and once more for what came meanwhile.

export interface Throttled {
  (): void;
  /** Does what is waiting now. */
  flush(): void;
}

export function throttle(interval: number, work: () => void, now: () => number = () => performance.now()): Throttled {
  let last = -Infinity;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = () => {
    clearTimeout(timer);
    timer = undefined;
    last = now();
    work();
  };
  const call = () => {
    // Checked by the clock as well: browsers hold back the timers of tabs in the background.
    if (now() - last >= interval) run();
    else timer ??= setTimeout(run, interval - (now() - last));
  };
  return Object.assign(call, {
    flush: () => {
      if (timer !== undefined) run();
    },
  });
}
