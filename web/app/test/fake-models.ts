// What the fake engine says of a model, from its name alone.

import type { Capability, FitReport, ModelKind, ModelSource } from "rullama";
import { FakeError, settings } from "./fake.js";

export function nameOf(source: ModelSource): string {
  if (typeof source === "string") return source;
  if (source instanceof URL) return source.href;
  return "name" in source && typeof source.name === "string" ? source.name : "file";
}

/** Models are what their names say. */
function kindOf(name: string): ModelKind {
  const known = (["embedding", "diffusion", "drafter"] as const).find((kind) => name.includes(kind));
  return known ?? "decoder";
}

export function describe(source: ModelSource): FitReport {
  const name = nameOf(source);
  const kind = kindOf(name);
  if (name.endsWith(".txt")) throw new FakeError("bad_file");
  if (name.startsWith("mmproj")) throw new FakeError("projector");
  const weights = settings().served?.find((model) => model.name === name)?.size ?? 3_600_000_000;
  return {
    info: {
      kind,
      name,
      title: "Gemma Fake",
      architecture: "gemma4",
      parameters: 5_100_000_000,
      quantization: "Q4_K",
      fileBytes: weights,
      layers: 35,
      vocabulary: 262_144,
      trainedContext: 131_072,
      thinking: kind === "decoder",
      capabilities: abilities(name),
      // As they come from files: single precision, and null for what a file does not say.
      defaults: { temperature: 1, topK: 64, topP: 0.949999988079071, minP: null as unknown as number },
      ...(settings().system === undefined ? {} : { system: settings().system }),
    },
    memory: {
      weights,
      caches: 64e6,
      work: 32e6,
      gpu: weights + 96e6,
      tableOnGpu: false,
      ...(sees(name) ? { encoders: 300e6 } : {}),
    },
    runsOn: settings().webgpu === false ? "cpu" : "gpu",
    verdict: settings().verdict ?? "fits",
    warnings: settings().warnings ?? [],
  };
}

/** Models take images and audio, but for those that are called otherwise. */
export const sees = (name: string) => kindOf(name) === "decoder" && !name.includes("text-only");

function abilities(name: string): Capability[] {
  if (kindOf(name) !== "decoder") return ["text"];
  const encoders = sees(name) ? (["images", ...(name.includes("no-audio") ? [] : ["audio" as const])] as const) : [];
  return ["text", ...encoders, ...(name.includes("no-tools") ? [] : ["tools" as const])];
}
