// Whether a model fits: browsers do not say how much memory a GPU has, so this is what can be told.

import type { DeviceReport, FitReport, LoadOptions, MemoryUse } from "./types.js";

const GB = 1e9;
/** From here on a device of unknown size may refuse. */
const SURE = 2 * GB;

function gb(bytes: number): string {
  return `${(bytes / GB).toFixed(1)} GB`;
}

/** A verdict and its reasons. */
export function fit(
  memory: Pick<MemoryUse, "gpu">,
  device: DeviceReport,
  options: Pick<LoadOptions, "gpuMemory">,
  deviceMemory: number | undefined,
): Pick<FitReport, "verdict" | "warnings"> {
  const warnings: string[] = [];
  let verdict: FitReport["verdict"] = "fits";
  const worse = (next: FitReport["verdict"], warning: string) => {
    const order = ["fits", "tight", "too-large"] as const;
    if (order.indexOf(next) > order.indexOf(verdict)) verdict = next;
    warnings.push(warning);
  };
  if (!device.webgpu) worse("too-large", device.reason ?? "There is no WebGPU here.");
  if (device.fallback) worse("tight", "No GPU found: emulated on the CPU, very slow.");
  if (options.gpuMemory !== undefined && memory.gpu > options.gpuMemory) {
    worse("too-large", `It takes ${gb(memory.gpu)} of GPU memory, but may use ${gb(options.gpuMemory)}.`);
  } else if (deviceMemory !== undefined && deviceMemory < 8 && memory.gpu > deviceMemory * GB * 0.7) {
    // Browsers tell this in powers of two and never more than 8.
    worse("too-large", `It takes ${gb(memory.gpu)}, and this device has about ${deviceMemory} GB of memory in all.`);
  } else if (memory.gpu > SURE && options.gpuMemory === undefined) {
    worse("tight", `It takes ${gb(memory.gpu)} of GPU memory; browsers do not say how much there is.`);
  }
  return { verdict, warnings };
}
