// Compiles composed kernels with Dawn, Chrome's WebGPU, on its null device: needs neither a GPU nor a browser.
// Chrome's compiler refuses what naga lets through, barriers in non-uniform control flow above all.
//
//   node check-wgsl.mjs DIR      DIR/list.json names the files, their constants and their bindings
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { create, globals } from "webgpu";

const FAULT = `
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
var<workgroup> sh_ones: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) index: u32) {
    if index < 32u {
        sh_ones[index] = 1.0;
        workgroupBarrier();
    }
    y[index] = sh_ones[index];
}`;

// Collected while one of its devices lives, the instance takes the process down. Matrix units are offered to those alone who allow
// what is not finished.
const gpu = create(["backend=null", "enable-dawn-features=allow_unsafe_apis"]);

/** A device with all that kernels may ask for. */
async function openDevice() {
  const adapter = await gpu.requestAdapter();
  if (!adapter) throw new Error("Dawn has no null adapter here");
  const wanted = ["subgroups", "shader-f16", "timestamp-query", "chromium-experimental-subgroup-matrix"];
  const missing = wanted.filter((name) => !adapter.features.has(name));
  if (missing.length > 0) throw new Error(`Dawn's null adapter lacks ${missing.join(", ")}`);
  const requiredLimits = {};
  for (const name of ["maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX",
    "maxStorageBuffersPerShaderStage"]) {
    requiredLimits[name] = adapter.limits[name];
  }
  return adapter.requestDevice({ requiredFeatures: wanted, requiredLimits });
}

/**
 * The null device offers little more than the floor, and its subgroups have up to 128 lanes. A variant for a larger one is compiled as text, which is where types and
 * uniform control flow are checked; that it fits the device it is meant for is checked against that device's facts in Rust.
 */
const BEYOND = new RegExp(
  [
    "exceeds the maximum allowed",
    "exceeds the maximum per-stage limit",
    "larger than the maximum allowed",
    "must be a multiple of the device maxSubgroupSize",
  ].join("|"),
);

/** What the compiler says against a kernel; nothing if it is fine. */
async function problemsOf(device, { text, constants, written }) {
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: text });
  const { messages } = await module.getCompilationInfo();
  const storage = written.map((w) => (w ? "storage" : "read-only-storage"));
  const entries = ["uniform", "uniform", ...storage].map((type, binding) => ({
    binding,
    visibility: globals.GPUShaderStage.COMPUTE,
    buffer: { type },
  }));
  const layout = device.createPipelineLayout({ bindGroupLayouts: [device.createBindGroupLayout({ entries })] });
  device.createComputePipeline({ layout, compute: { module, entryPoint: "main", constants } });
  const scope = await device.popErrorScope();
  const errors = messages.filter((m) => m.type === "error").map((m) => `line ${m.lineNum}: ${m.message}`);
  if (errors.length === 0 && scope && !BEYOND.test(scope.message)) errors.push(scope.message);
  return errors;
}

async function main(folder) {
  const device = await openDevice();
  const planted = await problemsOf(device, { text: FAULT, constants: {}, written: [true] });
  if (!planted.some((message) => message.includes("uniform control flow"))) {
    throw new Error(`the planted fault was not found: ${JSON.stringify(planted)}`);
  }
  const list = JSON.parse(await readFile(join(folder, "list.json"), "utf8"));
  if (list.length === 0) throw new Error(`${folder}/list.json is empty`);
  let failed = 0;
  for (const variant of list) {
    const text = await readFile(join(folder, variant.file), "utf8");
    const problems = await problemsOf(device, { ...variant, text });
    if (problems.length > 0) {
      failed += 1;
      console.error(`${variant.file} (${variant.label}):\n  ${problems.join("\n  ")}`);
    }
  }
  console.log(`Dawn compiled ${list.length - failed} of ${list.length} kernel variants (and refused the planted fault)`);
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv[2]);
