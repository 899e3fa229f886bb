// From a file to a loaded model: the kind of the file decides its class.

import { type OpenDevice, openDevice } from "./device.js";
import { NoWebGpuError, RullamaError, rullamaError } from "./errors.js";
import { LoadedEmbedder } from "./loaded-embedder.js";
import { LoadedGenerator } from "./loaded-generator.js";
import { LoadedDecoder } from "./loaded-decoder.js";
import type { LoadedResources, ModelFiles } from "./on-device.js";
import type { PlainLoadOptions } from "./protocol.js";
import { type Opened, checked } from "./storage/index.js";
import { openWithTemplate } from "./template.js";
import type { ModelInfo, ModelKind } from "./types.js";
import { type BytesOf, Denoiser, type Denoising, Device, Embedder, Header, Model } from "./wasm/rullama.js";

export type LoadedDenoiser = LoadedGenerator<Denoiser, Denoising>;
export type LoadedModel = LoadedDecoder | LoadedDenoiser | LoadedEmbedder;

/** A drafter, guesses from the text, or nothing. */
export type Drafts = { from: "drafter"; opened: Opened; own: boolean } | { from: "ngram" } | undefined;

export interface Loading {
  opened: Opened;
  drafts: Drafts;
  /** Adapters that its name brings. */
  adapters: Opened[];
  options: PlainLoadOptions;
  /** The options in the engine's words. */
  words: string;
  /** Told bytes done, bytes in all and milliseconds that were waited for them; true ends it. */
  each: (done: number, total: number, waited: number) => boolean;
  heap: () => number;
  files: ModelFiles;
  guidanceWasm?: string;
  templateWasm?: string;
  /** What is waited for before it is handed out. */
  verify: () => Promise<void>;
}

/** Loads a file and what drafts for it. */
export async function loadModel(loading: Loading): Promise<LoadedModel> {
  const { opened, options, verify, templateWasm } = loading;
  const header = await openWithTemplate(readable(opened), templateWasm);
  const kind = header.kind() as ModelKind;
  if (kind === "drafter") {
    header.free();
    throw new RullamaError(
      "unsupported_model",
      `${opened.name} is a drafter: load the model it belongs to with { draft: … } and this file`,
    );
  }
  const device = await openDevice(Device, options);
  try {
    const model = await loadKind(kind, header, device.engine, loading).catch((error: unknown) => {
      throw device.noGpu ? notOnCpu(device.noGpu, error) : error;
    });
    try {
      const draft = model instanceof Model ? await draftFor(model, loading) : {};
      await verify();
      const resources = { ...resourcesOf(loading, model.info(), { ...draft, runsOn: runsOn(device) }), device };
      if (model instanceof Model) return await withAdapters(new LoadedDecoder(resources, model), loading.adapters);
      if (model instanceof Embedder) return new LoadedEmbedder(resources, model);
      return new LoadedGenerator(resources, model);
    } catch (error) {
      model.free();
      throw error;
    }
  } catch (error) {
    device.engine.destroy();
    device.engine.free();
    throw error;
  }
}

function runsOn({ browser }: OpenDevice): "gpu" | "cpu" {
  return browser ? "gpu" : "cpu";
}

/** What is too large for the CPU alone lacks the GPU. */
function notOnCpu(noGpu: NoWebGpuError, error: unknown): unknown {
  const problem = rullamaError(error);
  if (problem.code !== "does_not_fit" && problem.code !== "no_webgpu") return error;
  const message = `${noGpu.message} The CPU alone cannot run it: ${problem.message}`;
  return new NoWebGpuError(message, noGpu.why, { cause: error });
}

/** Adds what its name brings: without it, another model would answer. */
async function withAdapters(held: LoadedDecoder, adapters: Opened[]): Promise<LoadedDecoder> {
  for (const opened of adapters) {
    try {
      await held.adapters.addOwn(readable(opened));
      await checked(opened);
    } finally {
      opened.source.close();
    }
  }
  return held;
}

function loadKind(kind: ModelKind, header: Header, device: Device, { words, each }: Loading) {
  if (kind === "embedding") return Embedder.load(header, device, words, each);
  if (kind === "diffusion") return Denoiser.load(header, device, words, each);
  return Model.load(header, device, words, each);
}

/** Gives a model what drafts for it. The one it comes with may be of no use: that is no reason not to answer. */
async function draftFor(
  model: Model,
  { drafts, options: { draftTokens, draftAlways = false } }: Loading,
): Promise<Pick<ModelInfo, "draft" | "draftProblem">> {
  if (drafts === undefined) return {};
  if (draftTokens !== undefined && !(Number.isInteger(draftTokens) && draftTokens >= 1 && draftTokens <= 7)) {
    throw new RullamaError("bad_options", "draftTokens must be a number from 1 to 7");
  }
  if (drafts.from === "ngram") {
    model.draftFromText(draftTokens, draftAlways);
    return { draft: { from: "ngram" } };
  }
  const { opened, own } = drafts;
  try {
    await model.draft(await Header.open(readable(opened)), draftTokens, draftAlways);
    await checked(opened);
    return { draft: { from: "drafter", name: opened.name } };
  } catch (error) {
    if (!own) throw error;
    return { draftProblem: `The model's own drafter is not used: ${rullamaError(error).message}` };
  } finally {
    opened.source.close();
  }
}

function resourcesOf(
  { opened, heap, files, guidanceWasm }: Loading,
  told: string,
  more: Pick<ModelInfo, "draft" | "draftProblem" | "runsOn">,
): Omit<LoadedResources, "device"> {
  const system = opened.info?.system;
  const info: ModelInfo = {
    ...(JSON.parse(told) as Omit<ModelInfo, "name" | "system">),
    name: opened.name,
    ...(system ? { system } : {}),
    ...more,
  };
  const module = guidanceWasm === undefined ? {} : { guidanceWasm };
  return { info, verified: opened.verified, heap, files, ...module };
}

/** What the engine reads from. */
export function readable({ source, name }: Opened): BytesOf {
  return {
    name,
    size: source.size,
    read: (offset, length) => source.read(offset, length),
    done: (bytes) => source.giveBack?.(bytes),
  };
}
