// The browser's GPU: what it offers, and a device with everything on it that kernels can use. Where there is none, the CPU.

import { NoWebGpuError, RullamaError } from "./errors.js";
import { MATRIX_FEATURES, compilesMatrixUnits, listedMatrixUnits } from "./matrix-units.js";
import { Queue } from "./queue.js";
import type { DeviceReport, LoadOptions, WebGpuAbsence } from "./types.js";
import { turn } from "./turn.js";
import type { Device } from "./wasm/rullama.js";

type DeviceClass = typeof Device;

/** wgpu's name for the devices it asks for, by which we know ours from others of the page. */
const LABEL = "rullama";
/** `GPUShaderStage.COMPUTE`, which the library's types leave out. */
const COMPUTE = 0x4;
const LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
] as const;

const ABSENT: Record<WebGpuAbsence, string> = {
  insecure: "WebGPU needs https (or localhost): this page was opened without.",
  unsupported: "There is no WebGPU here: use a current Chrome, Edge, Safari 26 or Firefox.",
  no_adapter:
    "The browser has WebGPU but offers no GPU: switch on hardware acceleration in its settings, or update the GPU's driver.",
};

/** The adapter, or why there is none. */
async function findAdapter(powerPreference: GPUPowerPreference): Promise<GPUAdapter | WebGpuAbsence> {
  if (!("gpu" in (globalThis.navigator ?? {}))) {
    return globalThis.isSecureContext === false ? "insecure" : "unsupported";
  }
  return (await navigator.gpu.requestAdapter({ powerPreference })) ?? "no_adapter";
}

/** Widths of subgroups, where kernels can use them: they take `subgroup_id`, a language extension younger than subgroups. */
function subgroupsOf(adapter: GPUAdapter): { min: number; max: number } | undefined {
  const usable = adapter.features.has("subgroups") && navigator.gpu.wgslLanguageFeatures.has("subgroup_id");
  const { subgroupMinSize: min, subgroupMaxSize: max } = adapter.info;
  return usable && min > 0 ? { min, max } : undefined;
}

/**
 * Whether products of packed bytes are single instructions. Browsers have the function everywhere, as far as they are new enough; the
 * instruction is reached through Vulkan and Direct3D, while Metal has none, and no browser tells which of them it uses.
 */
function hasPackedDot(): boolean {
  const known = navigator.gpu.wgslLanguageFeatures.has("packed_4x8_integer_dot_product");
  return known && !/Mac OS|iPhone|iPad/.test(navigator.userAgent);
}

function nameOf({ info }: GPUAdapter): string {
  const words = [info.vendor, info.architecture || info.device].filter((word) => word !== "");
  return info.description || words.join(" ") || "a GPU without a name";
}

function isSoftware({ info }: GPUAdapter): boolean {
  return info.isFallbackAdapter || /swiftshader|llvmpipe|lavapipe/i.test(`${info.architecture} ${info.description}`);
}

/** What this browser's GPU offers. */
export async function deviceReport(): Promise<DeviceReport> {
  const adapter = await findAdapter("high-performance");
  if (typeof adapter === "string")
    return { webgpu: false, reason: ABSENT[adapter], why: adapter, features: [], limits: {} };
  const { info, limits } = adapter;
  const subgroups = subgroupsOf(adapter);
  return {
    webgpu: true,
    vendor: info.vendor,
    architecture: info.architecture,
    description: nameOf(adapter),
    fallback: isSoftware(adapter),
    features: [...adapter.features].sort(),
    limits: Object.fromEntries(LIMITS.map((name) => [name, limits[name]])),
    ...(subgroups ? { subgroups } : {}),
    matrixUnits: subgroups !== undefined && listedMatrixUnits(adapter) !== undefined,
  };
}

/** A device as both sides know it. */
export interface OpenDevice {
  engine: Device;
  /** Missing where it is the CPU. */
  browser?: GPUDevice;
  /** Why it is the CPU, where that was not asked for. */
  noGpu?: NoWebGpuError;
}

type DeviceOptions = Pick<LoadOptions, "features" | "powerPreference" | "device">;

const opening = new Queue();

/** Opens a device of its own for a model. */
export async function openDevice(wasm: DeviceClass, options: DeviceOptions): Promise<OpenDevice> {
  const { device = "auto" } = options;
  if (device === "cpu") return { engine: wasm.cpu(turn) };
  try {
    return await openGpu(wasm, options);
  } catch (error) {
    if (device === "gpu" || !(error instanceof NoWebGpuError)) throw error;
    return { engine: wasm.cpu(turn), noGpu: error };
  }
}

/** Opens a GPU for a model or a test. */
export function openGpu(wasm: DeviceClass, options: DeviceOptions): Promise<OpenDevice> {
  return opening.run(() => openNow(wasm, options));
}

async function openNow(wasm: DeviceClass, options: DeviceOptions): Promise<OpenDevice> {
  const powerPreference = options.powerPreference ?? "high-performance";
  const adapter = await findAdapter(powerPreference);
  if (typeof adapter === "string") throw new NoWebGpuError(ABSENT[adapter], adapter);
  const { subgroups: withSubgroups = true, f16 = true, matrix: withMatrix = true } = options.features ?? {};
  const subgroups = withSubgroups ? subgroupsOf(adapter) : undefined;
  const listed = withMatrix && f16 && subgroups !== undefined ? listedMatrixUnits(adapter) : undefined;
  const matrix = listed && (await compilesMatrixUnits(adapter, listed)) ? listed : undefined;
  const request = JSON.stringify({
    lowPower: powerPreference === "low-power",
    name: nameOf(adapter),
    software: isSoftware(adapter),
    subgroups: subgroups ? [subgroups.min, subgroups.max] : null,
    matrix: matrix === "halves",
    matrixInt8: matrix === "bytes",
    f16,
    packedDot: hasPackedDot(),
  });
  const watched = watchRequests(matrix ? MATRIX_FEATURES[matrix] : subgroups ? ["subgroups"] : []);
  const unnamed = nameScope();
  try {
    const engine = await wasm.open(request, (kernel: string) =>
      watched.device === undefined ? undefined : compileAhead(watched.device, JSON.parse(kernel) as Kernel),
    );
    if (!watched.device) throw new RullamaError("internal", "wgpu opened no device");
    return { engine, browser: watched.device };
  } finally {
    watched.stop();
    unnamed();
  }
}

/**
 * wgpu looks for `navigator.gpu` only in a window or a worker, which it knows by their classes: a runtime that has neither, such as Node
 * with Dawn, passes for a worker while a device is opened. Returns what undoes it.
 */
function nameScope(): () => void {
  if ("Window" in globalThis || "WorkerGlobalScope" in globalThis) return () => {};
  const scope = globalThis as { WorkerGlobalScope?: unknown };
  scope.WorkerGlobalScope = class {};
  return () => delete scope.WorkerGlobalScope;
}

/** A kernel, as the engine describes it. */
interface Kernel {
  label: string;
  text: string;
  constants: Record<string, number>;
  bindings: GPUBufferBindingType[];
}

/**
 * Compiles a kernel beside everything else: wgpu knows only the call behind which the whole device waits. Browsers know what they
 * have compiled by its content, so wgpu's own call is answered at once, as long as what is given here is held.
 */
async function compileAhead(device: GPUDevice, { label, text, constants, bindings }: Kernel): Promise<unknown> {
  const module = device.createShaderModule({ label, code: text });
  const entries = bindings.map((type, binding) => ({ binding, visibility: COMPUTE, buffer: { type } }));
  const layout = device.createPipelineLayout({ bindGroupLayouts: [device.createBindGroupLayout({ entries })] });
  const compute = { module, entryPoint: "main", constants };
  return [module, await device.createComputePipelineAsync({ label, layout, compute })];
}

/** wgpu asks browsers neither for subgroups nor for matrix units, so its requests get them added here on their way; and we see what comes back. */
function watchRequests(features: GPUFeatureName[]): { device?: GPUDevice; stop: () => void } {
  const original = GPUAdapter.prototype.requestDevice;
  const watched: { device?: GPUDevice; stop: () => void } = {
    stop: () => {
      GPUAdapter.prototype.requestDevice = original;
    },
  };
  GPUAdapter.prototype.requestDevice = async function (this: GPUAdapter, descriptor: GPUDeviceDescriptor = {}) {
    if (descriptor.label !== LABEL) return original.call(this, descriptor);
    const requiredFeatures = [...new Set([...(descriptor.requiredFeatures ?? []), ...features])];
    const device = await original.call(this, { ...descriptor, requiredFeatures });
    watched.device = device;
    return device;
  };
  return watched;
}
