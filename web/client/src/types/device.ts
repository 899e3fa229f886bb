// The device: what it offers, whether it computes correctly, and how fast.

import type { MemoryReport } from "./models.js";

/** Why there is no WebGPU: a page without https, a browser without WebGPU, or a browser that offers no GPU. */
export type WebGpuAbsence = "insecure" | "unsupported" | "no_adapter";

/** What this browser's GPU offers. */
export interface DeviceReport {
  webgpu: boolean;
  /** Why there is no WebGPU, for a person. */
  reason?: string;
  /** The same for programs. */
  why?: WebGpuAbsence;
  vendor?: string;
  architecture?: string;
  description?: string;
  fallback?: boolean;
  features: string[];
  limits: Record<string, number>;
  subgroups?: { min: number; max: number };
  /** It lists matrix units that kernels can use. Whether they do is tried when a device is opened. */
  matrixUnits?: boolean;
}

export interface OpResult {
  op: string;
  name: string;
  /** Which of the device's features the kernels used: `all`, or fewer. */
  featureLevel: string;
  verdict: "passed" | "failed" | "skipped";
  message: string;
  /** Cases of the whole run. */
  total?: number;
}

export interface BenchResult {
  device: string;
  promptTokens: number;
  prefillTokensPerSecond: number;
  answerTokens: number;
  decodeTokensPerSecond: number;
  timeToFirstToken: number;
  dispatchesPerToken: number;
  memory: MemoryReport;
}

/** How long a tower takes from pixels or samples to soft tokens. */
export interface EncoderTimes {
  softTokens: number;
  /** The first time, in milliseconds: the tower is loaded and its kernels are compiled. */
  cold: number;
  /** Each time after that, in milliseconds. */
  milliseconds: number[];
}

export interface EncoderBench {
  image?: EncoderTimes;
  audio?: EncoderTimes & { seconds: number };
}
