// A golden model, its adapter, and what was written down about both.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileBody } from "../support/body.ts";
import type { TestServer } from "../support/server.ts";
import { GOLDENS } from "./goldens.ts";

export const MODEL = "/goldens/gguf/micro-e2b-Q8_0.gguf";
export const ADAPTER_GGUF = "/goldens/gguf/micro-e2b-lora-F32.gguf";
export const ADAPTER_FOLDER = "/goldens/lora/micro-e2b-Q8_0-adapter/";

/** Serves them all. */
export async function serveLora(server: TestServer): Promise<void> {
  const files = [
    MODEL,
    ADAPTER_GGUF,
    `${ADAPTER_FOLDER}adapter_config.json`,
    `${ADAPTER_FOLDER}adapter_model.safetensors`,
  ];
  for (const path of files) server.file(path, await fileBody(join(GOLDENS, path.replace("/goldens/", ""))));
}

interface Entry {
  dtype: "F32" | "F64" | "I32";
  shape: number[];
  data_offsets: [number, number];
}

const READ = {
  F32: (bytes: Buffer, at: number) => bytes.readFloatLE(at),
  F64: (bytes: Buffer, at: number) => bytes.readDoubleLE(at),
  I32: (bytes: Buffer, at: number) => bytes.readInt32LE(at),
};

/** Tensors of a safetensors file by name. */
export function tensorsOf(bytes: Buffer): Map<string, { shape: number[]; numbers: number[] }> {
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString("utf8", 8, start)) as Record<string, Entry>;
  const tensors = new Map<string, { shape: number[]; numbers: number[] }>();
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const size = entry.dtype === "F64" ? 8 : 4;
    const [from, to] = entry.data_offsets;
    const read = READ[entry.dtype];
    const numbers = Array.from({ length: (to - from) / size }, (_, i) => read(bytes, start + from + size * i));
    tensors.set(name, { shape: entry.shape, numbers });
  }
  return tensors;
}

export async function loraGolden(): Promise<(name: string) => number[]> {
  const tensors = tensorsOf(await readFile(join(GOLDENS, "lora/micro-e2b-Q8_0-lora.safetensors")));
  return (name) => tensors.get(name)!.numbers;
}

/** Logarithms of the probabilities behind a row of logits. */
export function logSoftmax(logits: number[]): number[] {
  const most = Math.max(...logits);
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - most), 0);
  return logits.map((logit) => logit - most - Math.log(sum));
}
