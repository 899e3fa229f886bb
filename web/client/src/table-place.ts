// Where the per-layer embedding table of E2B and E4B goes by default: more than half of the file, of which a token reads one row.

/** What a browser tells of the machine. */
export type Machine = Partial<Pick<Navigator, "userAgent" | "maxTouchPoints">> & {
  /** GB, in powers of two; Chromium only. */
  deviceMemory?: number;
};

/**
 * To the GPU if it fits: with the table in the file, every token waits for the browser's storage, and decode is less than half as fast.
 * Phones, tablets and machines with little memory keep it in the file; there, a tab that takes too much is ended without an error.
 */
export function tablePlace(gpuMemory: number | undefined, machine: Machine = {}): "fits" | "file" {
  const { deviceMemory = 8 } = machine;
  return gpuMemory !== undefined || (deviceMemory >= 8 && !isHandheld(machine)) ? "fits" : "file";
}

function isHandheld({ userAgent = "", maxTouchPoints = 0 }: Machine): boolean {
  // iPads say that they are Macs, which have no touch screen.
  return /Android|iPhone|iPad|iPod|Mobile/.test(userAgent) || (/Macintosh/.test(userAgent) && maxTouchPoints > 1);
}
