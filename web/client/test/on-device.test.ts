import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import type { OpenDevice } from "../src/device.js";
import { OnDevice } from "../src/on-device.js";
import type { MemoryReport, ModelInfo } from "../src/types.js";

class Loaded extends OnDevice {
  memory(): MemoryReport {
    return { gpu: 0, wasmHeap: 0, sessions: 0 };
  }
  run<T>(job: () => Promise<T>): Promise<T> {
    return this.work(job);
  }
  protected release(): void {}
}

function loaded() {
  let lose: (info: GPUDeviceLostInfo) => void = () => {};
  const lost = new Promise<GPUDeviceLostInfo>((resolve) => (lose = resolve));
  const device = { browser: { lost }, engine: { destroy() {}, free() {} } } as unknown as OpenDevice;
  const files = { close() {} };
  const resources = { info: {} as ModelInfo, verified: Promise.resolve(), device, heap: () => 0, files };
  return {
    model: new Loaded(resources),
    lose: () => lose({ reason: "unknown", message: "gone" } as GPUDeviceLostInfo),
  };
}

/** Collects garbage, as far as the engine lets a test do that. */
async function collect(): Promise<void> {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  for (let round = 0; round < 5; round++) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    gc();
  }
}

describe("work on a device", () => {
  it("does not keep results while the model lives", async () => {
    const { model } = loaded();
    const kept = await (async () => {
      const result = await model.run(async () => new Float32Array(1 << 16));
      return new WeakRef(result);
    })();
    await model.run(async () => undefined);
    await collect();
    expect(kept.deref()).toBeUndefined();
  });

  it("fails when the device is lost, also calls that would never end", async () => {
    const { model, lose } = loaded();
    const stuck = model.run(() => new Promise<never>(() => {}));
    const next = model.run(async () => 1);
    await Promise.resolve();
    lose();
    await expect(stuck).rejects.toMatchObject({ code: "device_lost" });
    await expect(next).rejects.toMatchObject({ code: "device_lost" });
    expect(await model.lost).toMatchObject({ code: "device_lost" });
  });
});
