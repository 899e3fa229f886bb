// Names of models: which the host offers, whether two are the same, and which one was meant.

import { CancelledError, NetworkError, NotFoundError, RullamaError } from "../errors.js";
import type { ServedModel } from "../types.js";

/** A host that does not list its models within this time has none for us. */
const PATIENCE_MS = 20_000;

/** Models that a `rullama serve` at `host` offers; undefined where something else answers there. */
export async function servedModels(host: string, signal?: AbortSignal): Promise<ServedModel[] | undefined> {
  const url = new URL("/rullama/models", host).href;
  let response: Response;
  try {
    const limit = AbortSignal.timeout(PATIENCE_MS);
    response = await fetch(url, { cache: "no-store", signal: signal ? AbortSignal.any([signal, limit]) : limit });
  } catch (error) {
    if (signal?.aborted) throw new CancelledError("cancelled", { cause: error });
    throw new NetworkError(`${host} could not be asked for its models; is it running?`, undefined, { cause: error });
  }
  if (!response.ok) return undefined;
  try {
    const { models } = (await response.json()) as { models?: unknown };
    return Array.isArray(models) ? models.filter(isServed) : undefined;
  } catch {
    return undefined;
  }
}

/** A name without a tag means the tag `latest`, as everywhere in this field. */
export function sameName(a: string, b: string): boolean {
  const full = (name: string) => (name.includes(":") ? name : `${name}:latest`).toLowerCase();
  return full(a) === full(b);
}

/** A file on a server. */
export interface Layer {
  url: string;
  sha256?: string;
}

/** The files of a served name: one, or the parts of a split model. */
export function modelLayers(model: ServedModel, host: string): [Layer, ...Layer[]] {
  if (model.error !== undefined) {
    throw new RullamaError("bad_file", `${host} cannot offer ${model.name}: ${model.error}`);
  }
  const [first, ...rest] = layersOf(model, "model", host);
  if (!first) throw new RullamaError("bad_file", `${model.name} at ${host} has no model file`);
  return [first, ...rest];
}

/** The file of a served name's layer of a kind, where it has one. */
export function layerOf(model: ServedModel, kind: string, host: string): Layer | undefined {
  return layersOf(model, kind, host)[0];
}

/** The files of all its layers of a kind, in order. */
export function layersOf(model: ServedModel, kind: string, host: string): Layer[] {
  return model.layers
    .filter((layer) => layer.kind === kind)
    .map(({ url, digest }) => ({
      url: new URL(url, host).href,
      ...(typeof digest === "string" ? { sha256: digestOf(digest) } : {}),
    }));
}

/** The 64 hex digits of a SHA-256, in lower case. */
export function digestOf(text: string): string {
  const match = /^(?:sha256[:-])?([0-9a-f]{64})$/i.exec(text);
  if (!match?.[1]) throw new RullamaError("bad_options", `\`${text}\` is not a SHA-256: 64 hex digits are`);
  return match[1].toLowerCase();
}

/** The error for a name that nobody knows. */
export function unknownName(name: string, known: string[], where: string): NotFoundError {
  const similar = similarNames(name, known);
  const hint = similar.length > 0 ? `; did you mean ${similar.join(" or ")}?` : "";
  return new NotFoundError(`no model called ${name} is stored in this browser, and ${where}${hint}`, similar);
}

/** Up to three names that come close, the nearest first. */
export function similarNames(name: string, known: string[]): string[] {
  const [family = ""] = name.toLowerCase().split(":");
  const near = [...new Set(known)].map((other) => ({
    other,
    distance: editDistance(name.toLowerCase(), other.toLowerCase()),
  }));
  return near
    .filter(
      ({ other, distance }) => distance <= Math.max(2, name.length / 4) || other.toLowerCase().split(":")[0] === family,
    )
    .sort((a, b) => a.distance - b.distance || (a.other < b.other ? -1 : 1))
    .slice(0, 3)
    .map(({ other }) => other);
}

/** Letters to insert, delete or replace to get from one text to the other. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

function isServed(value: unknown): value is ServedModel {
  const model = value as Partial<ServedModel> | null;
  return (
    typeof model?.name === "string" &&
    (typeof model.error === "string" ||
      (Array.isArray(model.layers) &&
        model.layers.every(
          (layer: unknown) =>
            typeof (layer as { url?: unknown } | null)?.url === "string" &&
            typeof (layer as { kind?: unknown }).kind === "string",
        )))
  );
}
