// Names and addresses of Hugging Face: `hf.co/user/repo:Q4_K_M`, `https://huggingface.co/user/repo/blob/main/x.gguf`.

import { CancelledError, NetworkError, NotFoundError } from "../errors.js";
import type { ServedModel } from "../types.js";
import { partNames, splitPart } from "./split-names.js";
import type { Tuning } from "./tuning.js";
import { headersFor } from "./tuning.js";

export const HUB = "https://huggingface.co";
const PART = /^[\w.-]{1,96}$/u;
/** Chosen where a name says nothing: small, and close to the original. */
const USUAL_QUANTS = ["Q4_K_M", "Q4_K_S", "Q4_0", "Q8_0"];

/** A repository, or a file of it. */
export interface HubPlace {
  repository: string;
  revision: string;
  /** A file of it, where one is named. */
  file?: string;
  /** A quantisation, where one is named. */
  quant?: string;
}

/** A file that a repository offers. */
export interface HubFile {
  path: string;
  size: number;
  /** SHA-256 of large files, as the hub states it. */
  sha256?: string;
}

/** What a text names at Hugging Face; undefined where it is something else. Names without the host (`user/repo`) only with `bare`. */
export function hubPlace(text: string, bare = false): HubPlace | undefined {
  const given = text.trim();
  const named = given.replace(/^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\//iu, "");
  if (named === given && (!bare || /^[a-z]+:\/\//iu.test(named))) return undefined;
  const [path = "", quant] = named.replace(/[?#].*$/u, "").split(":", 2);
  const [owner = "", repo = "", kind, revision = "main", ...rest] = path.replace(/\/+$/u, "").split("/");
  if (!PART.test(owner) || !PART.test(repo) || /^\.+$/u.test(owner) || /^\.+$/u.test(repo)) return undefined;
  const place: HubPlace = { repository: `${owner}/${repo}`, revision, ...(quant ? { quant } : {}) };
  if (kind === undefined || kind === "tree") return place;
  if (!["blob", "resolve", "raw"].includes(kind) || rest.length === 0) return undefined;
  return { ...place, file: rest.map(decoded).join("/") };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Where a file can be read from. */
export function hubAddress({ repository, revision }: Pick<HubPlace, "repository" | "revision">, file: string): string {
  return `${HUB}/${repository}/resolve/${revision}/${file.split("/").map(encodeURIComponent).join("/")}`;
}

/** The GGUF files of a repository, those of the wanted quantisation first. */
export async function hubFiles(place: HubPlace, tuning?: Tuning, signal?: AbortSignal): Promise<HubFile[]> {
  const { repository, revision, quant } = place;
  const address = `${HUB}/api/models/${repository}/tree/${encodeURIComponent(revision)}?recursive=true`;
  const listed = await listing(address, repository, tuning, signal);
  const files = listed.flatMap((one: unknown): HubFile[] => {
    const { path, size, type, lfs } = (one ?? {}) as Record<string, unknown>;
    const fine = type === "file" && typeof path === "string" && typeof size === "number" && size > 0;
    if (!fine || !/\.gguf$/iu.test(path)) return [];
    const { oid } = (lfs ?? {}) as { oid?: unknown };
    const sha256 = typeof oid === "string" && /^[0-9a-f]{64}$/iu.test(oid) ? oid.toLowerCase() : undefined;
    return [{ path, size, ...(sha256 ? { sha256 } : {}) }];
  });
  const wanted = (path: string) => quant !== undefined && path.toLowerCase().includes(quant.toLowerCase());
  return files.sort((a, b) => Number(wanted(b.path)) - Number(wanted(a.path)) || a.size - b.size);
}

async function listing(address: string, repository: string, tuning?: Tuning, signal?: AbortSignal): Promise<unknown[]> {
  const init: RequestInit = { credentials: "omit", referrerPolicy: "no-referrer", ...(signal ? { signal } : {}) };
  const headers = tuning ? headersFor(address, tuning) : {};
  let response: Response;
  try {
    response = await (tuning?.fetch ?? fetch)(address, { ...init, headers });
  } catch (error) {
    if (signal?.aborted) throw new CancelledError("cancelled", { cause: error });
    throw new NetworkError("Hugging Face could not be reached", undefined, { cause: error });
  }
  if (response.status === 401 || response.status === 403 || response.status === 404) {
    const advice = "check its name; private and gated repositories need { token }";
    throw new NotFoundError(`Hugging Face does not show ${repository} (status ${response.status}): ${advice}`);
  }
  if (!response.ok) throw new NetworkError(`Hugging Face answered with status ${response.status}`, response.status);
  const listed: unknown = await response.json().catch(() => undefined);
  if (Array.isArray(listed)) return listed;
  throw new NetworkError(`Hugging Face did not list the files of ${repository}`, response.status);
}

/** Whether a file holds a model's encoders, not a model. */
export const isProjector = (path: string): boolean => /(?:^|\/)mmproj[^/]*$/iu.test(path);

/** The model that a name means, with its projector, as a host would list it. */
export async function hubModel(
  name: string,
  place: HubPlace,
  tuning: Tuning,
  signal?: AbortSignal,
): Promise<ServedModel> {
  const files = await hubFiles(place, tuning, signal);
  const models = files.filter(({ path }) => !isProjector(path));
  const chosen = place.file === undefined ? choose(models, place) : models.find(({ path }) => path === place.file);
  if (!chosen) {
    const known = models.map(({ path }) => path).join(", ");
    throw new NotFoundError(
      `${place.repository} has no GGUF file ${place.file ?? place.quant ?? ""}; it has ${known || "none"}`,
    );
  }
  const parts = partsOf(chosen, models, place);
  const projectors = files.filter(({ path }) => isProjector(path));
  const projector = projectors.find(({ path }) => /f16/iu.test(path) && !/bf16/iu.test(path)) ?? projectors[0];
  const layer = (kind: string, { path, size, sha256 }: HubFile) => ({
    kind,
    digest: sha256 ?? null,
    size,
    url: hubAddress(place, path),
  });
  return {
    name,
    size: parts.reduce((sum, { size }) => sum + size, 0),
    layers: [...parts.map((part) => layer("model", part)), ...(projector ? [layer("projector", projector)] : [])],
  };
}

/** All parts of a split model, or the one file. */
export function partsOf(file: HubFile, files: readonly HubFile[], { repository }: HubPlace): HubFile[] {
  return (partNames(file.path) ?? [file.path]).map((path) => {
    const found = files.find((other) => other.path === path);
    if (!found) throw new NotFoundError(`${repository} has no ${path}, which is a part of ${file.path}`);
    return found;
  });
}

function choose(models: HubFile[], { quant }: HubPlace): HubFile | undefined {
  const of = (wanted: string) => {
    const named = new RegExp(`(?:^|[-._/])${wanted.replaceAll(/[^\w]/gu, "\\$&")}(?=[-._/]|$)`, "iu");
    const found = models.filter(({ path }) => named.test(path));
    return found.find(({ path }) => !splitPart(path)) ?? found[0];
  };
  if (quant !== undefined) return of(quant);
  for (const usual of USUAL_QUANTS) {
    const found = of(usual);
    if (found) return found;
  }
  return models.find(({ path }) => !splitPart(path)) ?? models[0];
}
