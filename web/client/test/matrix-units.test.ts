import { describe, expect, it } from "vitest";
import { create } from "webgpu";
import { MATRIX_FEATURES, TRIALS, compilesMatrixUnits, listedMatrixUnits } from "../src/matrix-units.js";
import type { MatrixUnits } from "../src/matrix-units.js";

const HALVES = { componentType: "f16", resultComponentType: "f32", M: 16, N: 16, K: 16 };
const BYTES = { componentType: "i8", resultComponentType: "i32", M: 16, N: 16, K: 32 };
const SORTS: MatrixUnits[] = ["halves", "bytes"];

/** An adapter with all that kernels by matrix units of halves need, but for what is said. */
function adapter({
  features = MATRIX_FEATURES.halves as string[],
  lanes = [32, 32],
  configs = [HALVES] as unknown,
} = {}) {
  const info = { subgroupMinSize: lanes[0], subgroupMaxSize: lanes[1], subgroupMatrixConfigs: configs };
  return { features: new Set(features), info } as unknown as GPUAdapter;
}

describe("an adapter's matrix units", () => {
  it("are there where all is that kernels need, halves first", () => {
    const unsigned = { componentType: "u8", resultComponentType: "u32", M: 16, N: 16, K: 32 };
    const features = MATRIX_FEATURES.bytes as string[];
    expect(listedMatrixUnits(adapter())).toBe("halves");
    expect(listedMatrixUnits(adapter({ configs: [unsigned, BYTES, HALVES] }))).toBe("halves");
    expect(listedMatrixUnits(adapter({ configs: [unsigned, BYTES] }))).toBe("bytes");
    expect(listedMatrixUnits(adapter({ configs: [BYTES, HALVES], features }))).toBe("bytes");
    expect(listedMatrixUnits(adapter({ configs: [unsigned] }))).toBe(undefined);
  });

  it("are not there without each of the features", () => {
    for (const missing of MATRIX_FEATURES.halves) {
      const features = MATRIX_FEATURES.halves.filter((name) => name !== missing);
      expect(listedMatrixUnits(adapter({ features })), missing).toBe(undefined);
    }
  });

  it("are of no use in other sizes, with other sums, or where subgroups have other widths", () => {
    for (const other of [{ M: 8 }, { N: 8 }, { K: 8 }, { componentType: "f32" }, { resultComponentType: "f16" }]) {
      const configs = [HALVES, BYTES].map((config) => ({ ...config, ...other }));
      expect(listedMatrixUnits(adapter({ configs })), JSON.stringify(other)).toBe(undefined);
    }
    for (const configs of [[], undefined]) {
      expect(listedMatrixUnits(adapter({ configs: configs ?? null }))).toBe(undefined);
    }
    for (const lanes of [
      [16, 32],
      [32, 64],
      [64, 64],
    ]) {
      expect(listedMatrixUnits(adapter({ lanes })), `${lanes}`).toBe(undefined);
    }
  });
});

/** An adapter whose device answers so, and whether that was given back. */
function trying(pipeline: () => Promise<unknown>, refused: unknown = null) {
  const tried = { destroyed: false, features: [] as string[] };
  const device = {
    pushErrorScope: () => {},
    popErrorScope: async () => refused,
    createShaderModule: () => ({}),
    createComputePipelineAsync: pipeline,
    destroy: () => {
      tried.destroyed = true;
    },
  };
  const requestDevice = async ({ requiredFeatures }: { requiredFeatures: string[] }) => {
    tried.features = requiredFeatures;
    return device;
  };
  return { tried, adapter: { requestDevice } as unknown as GPUAdapter };
}

describe("the trial of matrix units", () => {
  it("succeeds where the kernel compiles, and gives the device back", async () => {
    const { tried, adapter } = trying(async () => ({}));
    expect(await compilesMatrixUnits(adapter, "bytes")).toBe(true);
    expect(tried).toEqual({ destroyed: true, features: MATRIX_FEATURES.bytes });
  });

  it("fails, and throws nothing, where it does not", async () => {
    for (const { tried, adapter } of [
      trying(() => Promise.reject(new Error("no such call"))),
      trying(async () => ({}), { message: "line 1: no such call" }),
    ]) {
      expect(await compilesMatrixUnits(adapter, "halves")).toBe(false);
      expect(tried.destroyed).toBe(true);
    }
  });

  it("fails where there is no device with such units", async () => {
    const requestDevice = () => Promise.reject(new TypeError("no such feature"));
    expect(await compilesMatrixUnits({ requestDevice }, "bytes")).toBe(false);
  });

  it("is of a kernel that Chromium's compiler knows", async () => {
    const gpu = create(["backend=null", "enable-dawn-features=allow_unsafe_apis"]);
    const adapter = await gpu.requestAdapter();
    const device = await adapter?.requestDevice({ requiredFeatures: MATRIX_FEATURES.halves });
    for (const sort of SORTS) {
      const info = await device?.createShaderModule({ code: TRIALS[sort] }).getCompilationInfo();
      expect(info?.messages.map(({ message }) => message)).toEqual([]);
    }
    device?.destroy();
  });
});
