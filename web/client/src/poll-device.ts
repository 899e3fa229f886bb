// Polls a device while a result is awaited: browsers check every millisecond or two whether it is done, and at each call.

/** Polling stops after this many milliseconds: a longer wait hides one more. */
const MOST = 100;

/**
 * Awaits `work` and meanwhile pops empty error scopes, which makes the browser check the device. Each call waits for the one before, so
 * that at most one is under way.
 */
export async function pollWhile<T>(
  device: Pick<GPUDevice, "pushErrorScope" | "popErrorScope">,
  work: Promise<T>,
  isOver: () => boolean,
): Promise<T> {
  const end = performance.now() + MOST;
  let done = false;
  const poll = async () => {
    while (!done && !isOver() && performance.now() < end) {
      device.pushErrorScope("validation");
      await device.popErrorScope();
    }
  };
  // A lost device answers nothing; `work` fails by itself.
  poll().catch(() => {});
  try {
    return await work;
  } finally {
    done = true;
  }
}
