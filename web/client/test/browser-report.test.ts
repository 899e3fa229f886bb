import { afterEach, describe, expect, it, vi } from "vitest";
import { browserReport, deviceReport, reportText } from "../src/index.js";
import type { DeviceReport, OpResult, StorageReport } from "../src/types.js";

const GPU: DeviceReport = {
  webgpu: true,
  description: "a GPU",
  features: ["shader-f16"],
  limits: { maxBufferSize: 5 },
};
const STORED: StorageReport = { models: [], usage: 1, quota: 2, persisted: false };
const engine = (more = {}) => ({ device: async () => GPU, storage: async () => STORED, ...more });
const result = (verdict: OpResult["verdict"], name: string): OpResult => ({
  op: "softmax",
  name,
  featureLevel: "all",
  verdict,
  message: verdict === "failed" ? "off by 1" : "",
  total: 4,
});

/** A browser whose GPU has neither subgroups nor large bindings. */
function browser() {
  const adapter = {
    info: { vendor: "v", architecture: "a", device: "", description: "" },
    features: new Set(["timestamp-query"]),
    limits: { maxBufferSize: 1 << 28, maxStorageBufferBindingSize: 1 << 27 },
  };
  vi.stubGlobal("navigator", {
    userAgent: "Phone/1",
    hardwareConcurrency: 8,
    storage: { getDirectory() {} },
    locks: {},
    gpu: { requestAdapter: async () => adapter, wgslLanguageFeatures: new Set() },
  });
}

afterEach(() => vi.unstubAllGlobals());

describe("a report", () => {
  it("holds the browser, its GPU in both threads, its storage and what failed", async () => {
    browser();
    const results = [result("passed", "a"), result("failed", "b"), result("skipped", "c")];
    const report = await browserReport(engine(), { results });
    expect(report).toMatchObject({
      userAgent: "Phone/1",
      cores: 8,
      page: { webgpu: true, description: "v a", limits: { maxStorageBufferBindingSize: 1 << 27 } },
      engine: GPU,
      storage: { privateFiles: true, locks: true, persisted: false, usage: 1, quota: 2 },
      tests: {
        total: 4,
        passed: 1,
        skipped: 1,
        failed: [{ op: "softmax", name: "b", featureLevel: "all", message: "off by 1" }],
      },
    });
    expect(report.page).not.toHaveProperty("subgroups");
    const text = reportText(report);
    expect(text.split("\n")[0]).toBe("rullama on v a: 1 of 4 cases passed, 1 failed, 1 did not run");
    expect(JSON.parse(/```json\n([\s\S]*)```/u.exec(text)![1]!)).toEqual(report);
  });

  it("is made where hardly anything works, and says why", async () => {
    vi.stubGlobal("navigator", {});
    expect(await deviceReport()).toMatchObject({ webgpu: false, features: [] });
    const broken = engine({
      device: () => Promise.reject(new Error("the worker broke")),
      storage: () => Promise.reject(new Error("no storage")),
    });
    const report = await browserReport(broken, { results: [], error: new Error("device lost") });
    expect(report).toMatchObject({
      engine: { error: "the worker broke" },
      storage: { privateFiles: false, locks: false },
      tests: { total: 0, error: "device lost" },
    });
    expect(reportText(report)).toMatch(/^rullama on no WebGPU \(.*\); the worker sees something else: 0 of 0/u);
    expect(reportText(await browserReport(broken))).toContain("no self-test");
  });
});
