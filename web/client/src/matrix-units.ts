// Matrix units, which Chromium offers for trial: whether an adapter lists those that kernels use, and whether they compile.

/** Sorts of matrix units that kernels are written for: of halves, and of bytes where halves are not offered. */
export type MatrixUnits = "halves" | "bytes";

/** What kernels by matrix units of bytes need. Chromium's name for the units is not among the standard's. */
const BYTE_FEATURES = ["subgroups", "chromium-experimental-subgroup-matrix"] as GPUFeatureName[];

/** What kernels by matrix units need. */
export const MATRIX_FEATURES: Record<MatrixUnits, GPUFeatureName[]> = {
  halves: ["shader-f16", ...BYTE_FEATURES],
  bytes: BYTE_FEATURES,
};

/** What an adapter lists for them. */
const CONFIGS: Record<MatrixUnits, MatrixConfig> = {
  halves: { componentType: "f16", resultComponentType: "f32", M: 16, N: 16, K: 16 },
  bytes: { componentType: "i8", resultComponentType: "i32", M: 16, N: 16, K: 32 },
};

/** Lanes of a subgroup, for which kernels are cut. */
const LANES = 32;

/** A sort of matrices, as adapters list them. */
interface MatrixConfig {
  componentType: string;
  resultComponentType: string;
  M: number;
  N: number;
  K: number;
}

/** The calls that kernels make, with factors and sums of these types; `bring` says what lies in workgroup memory before them. */
function trial(types: {
  enable?: string;
  left: string;
  right: string;
  sums: string;
  x: string;
  bring?: string;
  load: string;
}) {
  const { enable = "", left, right, sums, x, bring = "", load } = types;
  return `${enable}
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);

alias Left = subgroup_matrix_left<${left}>;
alias Right = subgroup_matrix_right<${right}>;
struct Sums { block: subgroup_matrix_result<${sums}, 16, 16> }

@group(0) @binding(0) var<storage, read> x: array<${x}>;
@group(0) @binding(1) var<storage, read_write> y: array<${sums}>;
var<workgroup> sh_w: array<${x}, 96>;
var<workgroup> sh_y: array<${sums}, 256>;

fn multiply(sums: ptr<function, Sums>, at: u32) {
    ${load}
    (*sums).block = subgroupMatrixMultiplyAccumulate(left, right, (*sums).block);
}

@compute @workgroup_size(${LANES})
fn main(@builtin(local_invocation_index) lane: u32) {
    ${bring}
    var sums: Sums;
    multiply(&sums, 0u);
    subgroupMatrixStore<col_major>(&sh_y, 0u, sums.block, 16u);
    workgroupBarrier();
    y[lane] = sh_y[lane];
}`;
}

/** What is tried. It may change from one release of a browser to the next. */
export const TRIALS: Record<MatrixUnits, string> = {
  halves: trial({
    enable: "enable f16;",
    left: "f16, 16, 16",
    right: "f16, 16, 16",
    sums: "f32",
    x: "vec4<f16>",
    bring: `sh_w[lane] = x[lane];
    workgroupBarrier();`,
    load: `let left = subgroupMatrixLoad<Left, row_major>(&sh_w, at, 6u);
    let right = subgroupMatrixLoad<Right, col_major>(&x, at, 4u);`,
  }),
  bytes: trial({
    left: "i8, 32, 16",
    right: "i8, 16, 32",
    sums: "i32",
    x: "i32",
    load: `let left = subgroupMatrixLoad<Left, row_major>(&x, at, 8u);
    let right = subgroupMatrixLoad<Right, col_major>(&x, at, 8u);`,
  }),
};

/** The matrix units that an adapter lists and kernels are written for, by subgroups of 32 lanes. Halves come first: they are faster. */
export function listedMatrixUnits({ features, info }: Pick<GPUAdapter, "features" | "info">): MatrixUnits | undefined {
  const { subgroupMatrixConfigs: configs } = info as { subgroupMatrixConfigs?: Iterable<MatrixConfig> };
  const lanes = info.subgroupMinSize === LANES && info.subgroupMaxSize === LANES;
  const listed = [...(configs ?? [])];
  const isListed = (wanted: MatrixConfig) =>
    listed.some((config) =>
      (Object.keys(wanted) as (keyof MatrixConfig)[]).every((key) => config[key] === wanted[key]),
    );
  const sorts: MatrixUnits[] = lanes ? ["halves", "bytes"] : [];
  return sorts.find((sort) => MATRIX_FEATURES[sort].every((name) => features.has(name)) && isListed(CONFIGS[sort]));
}

/**
 * Whether kernels with these units compile, on a device that is given back: a model whose kernels did not would give no answer. The
 * adapter opens no other one afterwards.
 */
export async function compilesMatrixUnits(
  adapter: Pick<GPUAdapter, "requestDevice">,
  units: MatrixUnits,
): Promise<boolean> {
  const device = await adapter.requestDevice({ requiredFeatures: MATRIX_FEATURES[units] }).catch(() => undefined);
  if (!device) return false;
  try {
    device.pushErrorScope("validation");
    const module = device.createShaderModule({ code: TRIALS[units] });
    const made = device.createComputePipelineAsync({ layout: "auto", compute: { module, entryPoint: "main" } });
    // Both are asked for before either is waited for: the scope is that of the calls.
    const [refused] = await Promise.all([device.popErrorScope(), made]);
    return refused === null;
  } catch {
    return false;
  } finally {
    device.destroy();
  }
}
