// Whether a model fits: browsers do not say how much memory a GPU has, so this is what can be told.

import type { DeviceReport, FitReport, LoadOptions, MemoryUse } from "./types.js";

const GB = 1e9;
/** From here on a device of unknown size may refuse. */
const SURE = 2 * GB;

function gb(bytes: number): string {
  return `${(bytes / GB).toFixed(1)} GB`;
}

/** What the wasm's memory has room for, beside everything else in it. */
const CPU_MOST = 3.5 * GB;
/** From here on a CPU writes slower than people read. */
const CPU_READABLE = 0.6 * GB;

/** What a load with these options runs on. */
export function runsOn({ webgpu }: Pick<DeviceReport, "webgpu">, { device = "auto" }: Pick<LoadOptions, "device">) {
  if (device !== "auto") return device;
  return webgpu ? "gpu" : "cpu";
}

function fitCpu(
  { gpu: need }: Pick<MemoryUse, "gpu">,
  { reason }: DeviceReport,
  { gpuMemory = Infinity }: Pick<LoadOptions, "gpuMemory">,
  deviceMemory = 8,
): Pick<FitReport, "verdict" | "warnings"> {
  // Browsers tell no more than 8, in powers of two.
  const most = Math.min(gpuMemory, CPU_MOST, deviceMemory < 8 ? deviceMemory * GB * 0.7 : Infinity);
  if (need > most) {
    const warning = `It takes ${gb(need)} of memory, and on the CPU a page has ${gb(most)}.`;
    return { verdict: "too-large", warnings: [...(reason === undefined ? [] : [reason]), warning] };
  }
  if (need > CPU_READABLE) {
    return { verdict: "tight", warnings: ["It runs on the CPU, slower than people read: a GPU would be faster."] };
  }
  return { verdict: "fits", warnings: ["It runs on the CPU: a GPU would be faster."] };
}

/** A verdict and its reasons. */
export function fit(
  memory: Pick<MemoryUse, "gpu">,
  device: DeviceReport,
  options: Pick<LoadOptions, "gpuMemory" | "device">,
  deviceMemory: number | undefined,
): Pick<FitReport, "verdict" | "warnings"> {
  if (runsOn(device, options) === "cpu") return fitCpu(memory, device, options, deviceMemory);
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
