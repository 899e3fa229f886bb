// Waiting for a device. Browsers look whether one is done every millisecond or two, and whenever something else is asked of it.

/** Who waits longer than so many milliseconds does not notice one more. */
const MOST = 100;

/**
 * What `work` ends with, where somebody waits for it: meanwhile the browser is asked for errors that there are none of, again and again, so
 * that it looks. Each question waits for the answer to the one before, so neither side is ever busy with more than one.
 */
export async function nudged<T>(
  device: Pick<GPUDevice, "pushErrorScope" | "popErrorScope">,
  work: Promise<T>,
  isInVain: () => boolean,
): Promise<T> {
  const end = performance.now() + MOST;
  let done = false;
  const ask = async () => {
    while (!done && !isInVain() && performance.now() < end) {
      device.pushErrorScope("validation");
      await device.popErrorScope();
    }
  };
  // A device that is lost has no answers; who waits hears of that elsewhere.
  ask().catch(() => {});
  try {
    return await work;
  } finally {
    done = true;
  }
}
