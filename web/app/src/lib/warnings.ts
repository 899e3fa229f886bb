// Why a model may not fit, in the language of the app: the package says it in English sentences.

import { t } from "../text/index.svelte.js";
import { bytes } from "./format.js";

const UNKNOWN = /^It takes ([\d.]+) GB of GPU memory; browsers do not say how much there is\.$/u;
const SMALL = /^It takes ([\d.]+) GB, and this device has about ([\d.]+) GB of memory in all\.$/u;
/** Of `deviceReport`, where there is none. */
const ABSENT = /\bWebGPU\b/u;
const CPU_MEMORY = /^It takes ([\d.]+) GB of memory, and on the CPU a page has ([\d.]+) GB\.$/u;
const ON_CPU = /^It runs on the CPU(, slower than people read)?: a GPU would be faster\.$/u;
const SOFTWARE = /^No GPU found: emulated on the CPU/u;

const size = (gigabytes: string | undefined) => bytes(Number(gigabytes) * 1e9);

/** A warning of a fit report; one that is not known stays as it is. */
export function warningText(warning: string): string {
  const [, needed] = UNKNOWN.exec(warning) ?? [];
  if (needed !== undefined) return t("fit.unknownMemory", { size: size(needed) });
  const [, taken, total] = SMALL.exec(warning) ?? [];
  if (taken !== undefined) return t("fit.smallDevice", { size: size(taken), total: size(total) });
  if (ABSENT.test(warning)) return t("failure.no_webgpu.title");
  const [, onCpu, most] = CPU_MEMORY.exec(warning) ?? [];
  if (onCpu !== undefined) return t("fit.cpuMemory", { size: size(onCpu), total: size(most) });
  const cpu = ON_CPU.exec(warning);
  if (cpu) return t(cpu[1] === undefined ? "fit.onCpu" : "fit.slowOnCpu");
  return SOFTWARE.test(warning) ? t("device.software") : warning;
}
