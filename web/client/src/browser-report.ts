// A report of this browser and its GPU, for people to copy and send: nothing is sent from here.

import { deviceReport } from "./device.js";
import type { DeviceReport, OpResult, StorageReport } from "./types.js";

/** What is known of a browser, a GPU and the kernels on it. */
export interface BrowserReport {
  userAgent: string;
  isSecure: boolean;
  isIsolated: boolean;
  cores?: number;
  /** Gigabytes, as far as the browser tells. */
  memory?: number;
  /** As this thread sees it. */
  page: DeviceReport;
  /** As the engine's thread sees it, or why that is not known. */
  engine: DeviceReport | { error: string };
  storage: { privateFiles: boolean; locks: boolean; persisted?: boolean; usage?: number; quota?: number };
  /** What the self-test found, where it ran. */
  tests?: TestSummary;
}

export interface TestSummary {
  /** Cases of the whole run; fewer have run where it was stopped, or failed with `error`. */
  total: number;
  passed: number;
  skipped: number;
  failed: Pick<OpResult, "op" | "name" | "featureLevel" | "message">[];
  error?: string;
}

/** What is needed of an engine. */
interface Examined {
  device(): Promise<DeviceReport>;
  storage(): Promise<StorageReport>;
}

/** Looks at this browser; `results` and `error` are those of a self-test that ran before. */
export async function browserReport(
  engine: Examined,
  { results, error }: { results?: readonly OpResult[]; error?: unknown } = {},
): Promise<BrowserReport> {
  const { userAgent, hardwareConcurrency, locks, storage, deviceMemory } = (globalThis.navigator ??
    {}) as Partial<Navigator> & { deviceMemory?: number };
  const kept = await engine.storage().catch(() => undefined);
  const page = await deviceReport().catch((problem: unknown): DeviceReport => {
    return { webgpu: false, reason: wordsOf(problem), features: [], limits: {} };
  });
  return {
    userAgent: userAgent ?? "unknown",
    isSecure: globalThis.isSecureContext ?? false,
    isIsolated: globalThis.crossOriginIsolated ?? false,
    ...(hardwareConcurrency === undefined ? {} : { cores: hardwareConcurrency }),
    ...(deviceMemory === undefined ? {} : { memory: deviceMemory }),
    page,
    engine: await engine.device().catch((problem: unknown) => ({ error: wordsOf(problem) })),
    storage: {
      privateFiles: typeof storage?.getDirectory === "function",
      locks: locks !== undefined,
      ...(kept ? { persisted: kept.persisted, usage: kept.usage, quota: kept.quota } : {}),
    },
    ...(results ? { tests: summary(results, error) } : {}),
  };
}

function summary(results: readonly OpResult[], error: unknown): TestSummary {
  const count = (verdict: OpResult["verdict"]) => results.filter((one) => one.verdict === verdict).length;
  const failed = results.filter(({ verdict }) => verdict === "failed");
  return {
    total: results[0]?.total ?? results.length,
    passed: count("passed"),
    skipped: count("skipped"),
    failed: failed.map(({ op, name, featureLevel, message }) => ({ op, name, featureLevel, message })),
    ...(error === undefined ? {} : { error: wordsOf(error) }),
  };
}

const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** The report as text: one line for a person, and all of it as JSON. */
export function reportText(report: BrowserReport): string {
  const { page, engine, tests } = report;
  const gpu = page.webgpu ? (page.description ?? "a GPU without a name") : `no WebGPU (${page.reason ?? "unknown"})`;
  const lacks = "webgpu" in engine && engine.webgpu === page.webgpu ? "" : "; the worker sees something else";
  const ran = tests ? tests.passed + tests.skipped + tests.failed.length : 0;
  const tested = tests
    ? `${tests.passed} of ${tests.total} cases passed, ${tests.failed.length} failed, ${tests.total - ran} did not run`
    : "no self-test";
  return `rullama on ${gpu}${lacks}: ${tested}\n\n\`\`\`json\n${JSON.stringify(report, undefined, 2)}\n\`\`\`\n`;
}
