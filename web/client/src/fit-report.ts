// Before a load: what a model is, what it takes with the files that come with it, and whether that fits.

import { deviceReport } from "./device.js";
import { fit, runsOn } from "./fit.js";
import { readable } from "./load-model.js";
import type { PlainLoadOptions, PlainSource } from "./protocol.js";
import { type Opened, layerOf } from "./storage/index.js";
import { openWithTemplate } from "./template.js";
import type { DeviceReport, FitReport, MemoryUse } from "./types.js";
import { companionBytes } from "./wasm/rullama.js";

/** What the wasm says of a file. */
interface Inspected {
  info: Omit<FitReport["info"], "name" | "system">;
  memory: { withTable: MemoryUse; withoutTable: MemoryUse };
  /** Bytes of the encoders inside. */
  encoders: number;
}

/** Opens a file for a look at its header. */
export type OpenBriefly = (source: PlainSource, digest?: { sha256?: string }) => Promise<Opened>;

export interface FitContext {
  options: PlainLoadOptions;
  /** The options in the engine's words, for the CPU or the GPU. */
  words: (cpu: boolean) => string;
  /** Where the layers of a served model are. */
  host: string;
  open: OpenBriefly;
  templateWasm?: string;
}

export async function fitReport(opened: Opened, context: FitContext): Promise<FitReport> {
  const { options } = context;
  const device = await deviceReport();
  const place = runsOn(device, options);
  const found = await inspect(opened, context, place === "cpu");
  const decides = found.info.kind === "decoder";
  const projector = decides ? await bytesOf("projector", options.projector, opened, context) : undefined;
  const drafts = decides && options.draft !== "off" && options.draft !== "ngram";
  const drafter = drafts ? await bytesOf("drafter", options.draft, opened, context) : undefined;
  const { withTable, withoutTable } = found.memory;
  const use = tableFits(options, withTable, device) ? withTable : withoutTable;
  const encoders = projector ?? found.encoders;
  const memory: MemoryUse = {
    ...use,
    gpu: use.gpu + encoders + (drafter ?? 0),
    ...(encoders > 0 ? { encoders } : {}),
    ...(drafter === undefined ? {} : { drafter }),
  };
  const system = opened.info?.system;
  const info = { ...found.info, name: opened.name, ...(system ? { system } : {}) };
  const { deviceMemory } = (globalThis.navigator ?? {}) as { deviceMemory?: number };
  // Where the table may stay in the file, a GPU without room for it will do.
  const least = options.table === "fits" ? { gpu: memory.gpu - use.gpu + withoutTable.gpu } : memory;
  return { info, memory, runsOn: place, ...fit(least, device, options, deviceMemory) };
}

async function inspect(opened: Opened, { words, templateWasm }: FitContext, cpu: boolean): Promise<Inspected> {
  const header = await openWithTemplate(readable(opened), templateWasm);
  try {
    return JSON.parse(header.inspect(words(cpu))) as Inspected;
  } finally {
    header.free();
  }
}

/** What a file beside the model's takes: one that was given, or the one that the model's name brings. */
async function bytesOf(
  kind: "projector" | "drafter",
  given: PlainSource | undefined,
  opened: Opened,
  { host, open }: FitContext,
): Promise<number | undefined> {
  if (given !== undefined) return bytesOfFile(await open(given));
  const layer = opened.info && layerOf(opened.info, kind, host);
  if (!layer) return undefined;
  // The model answers without what it cannot have.
  return open(layer.url, layer)
    .then(bytesOfFile)
    .catch(() => undefined);
}

async function bytesOfFile(file: Opened): Promise<number> {
  try {
    return await companionBytes(readable(file));
  } finally {
    file.source.close();
  }
}

/** Whether the per-layer embedding table will go to the GPU, if the GPU has the memory. */
function tableFits({ table, gpuMemory }: PlainLoadOptions, { gpu }: MemoryUse, { fallback }: DeviceReport): boolean {
  return table === "gpu" || (table === "fits" && !fallback && gpu <= (gpuMemory ?? Infinity));
}
