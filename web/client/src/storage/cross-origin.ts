// Cross-Origin Storage, a proposal of the WICG: files that all sites share, known by their SHA-256. Windows alone may ask for them, so this
// runs in the page, and the engine gets handles. Whatever fails here, the ordinary storage does.

import type { LoadOptions, ModelSource, ServedModel } from "../types.js";
import { hubFiles, hubModel, hubPlace } from "./hugging-face.js";
import { digestOf, sameName, servedModels } from "./names.js";
import { modelFolder, readRecord } from "./opfs.js";
import { partCount, partName } from "./ranges.js";
import { TUNING } from "./tuning.js";

interface Hash {
  algorithm: "SHA-256";
  value: string;
}

interface RequestOptions {
  create?: boolean;
  origins?: "*" | string[];
}

/** Today's method, and the one before it. */
interface CrossOriginStorage {
  requestFileHandle?(hash: Hash, options?: RequestOptions): Promise<FileSystemFileHandle>;
  requestFileHandles?(hashes: Hash[], options?: RequestOptions): Promise<FileSystemFileHandle[]>;
}

/** A file that was found there. */
export interface SharedFile {
  sha256: string;
  file: FileSystemFileHandle;
}

type RequestHandle = (sha256: string, options?: RequestOptions) => Promise<FileSystemFileHandle>;

/** How to ask for a file; undefined where nothing like that is offered. */
export function handleRequest(): RequestHandle | undefined {
  const storage = (globalThis.navigator as { crossOriginStorage?: CrossOriginStorage } | undefined)?.crossOriginStorage;
  const hash = (value: string): Hash => ({ algorithm: "SHA-256", value });
  if (typeof storage?.requestFileHandle === "function") {
    return async (sha256, options) => storage.requestFileHandle!(hash(sha256), options);
  }
  if (typeof storage?.requestFileHandles !== "function") return undefined;
  return async (sha256, options) => {
    const [handle] = await storage.requestFileHandles!([hash(sha256)], options);
    if (!handle) throw new DOMException("no handle came", "NotFoundError");
    return handle;
  };
}

/** The files that are shared already, of these digests. */
export async function findShared(digests: readonly string[]): Promise<SharedFile[]> {
  const request = handleRequest();
  if (!request) return [];
  const found = digests.map(async (sha256): Promise<SharedFile[]> => {
    try {
      const file = await request(sha256);
      // A handle may be of a file that is not there any more.
      await file.getFile();
      return [{ sha256, file }];
    } catch {
      return [];
    }
  });
  return (await Promise.all(found)).flat();
}

/** Shares a file with all sites; says whether it did. The browser checks the digest. */
export async function shareFile(sha256: string, pieces: AsyncIterable<Blob>): Promise<boolean> {
  const request = handleRequest();
  if (!request) return false;
  let writable: FileSystemWritableFileStream | undefined;
  try {
    const handle = await request(sha256, { create: true, origins: "*" });
    writable = await handle.createWritable();
    for await (const piece of pieces) await writable.write(piece);
    await writable.close();
    return true;
  } catch {
    await writable?.abort().catch(() => {});
    return false;
  }
}

/** Shares a model that is whole in this browser's storage. */
export async function shareStored(sha256: string): Promise<boolean> {
  const id = `sha256-${sha256}`;
  const record = await readRecord(id).catch(() => undefined);
  const folder = record?.complete ? await modelFolder(id, false) : undefined;
  if (!record || !folder) return false;
  async function* pieces(): AsyncGenerator<Blob> {
    for (let index = 0; index < partCount(record!.size, record!.partBytes); index++) {
      yield await (await folder!.getFileHandle(partName(index))).getFile();
    }
  }
  return shareFile(sha256, pieces());
}

/** The digests of a model's files as far as they can be known before anything is read; none where nobody tells. */
export async function digestsOf(source: ModelSource, host: string, options: LoadOptions = {}): Promise<string[]> {
  const { sha256, signal } = options;
  if (sha256 !== undefined) return [digestOf(sha256)];
  if (typeof source !== "string" && !(source instanceof URL)) return [];
  const text = String(source);
  try {
    const place = hubPlace(text);
    if (place?.file !== undefined) {
      const file = (await hubFiles(place, TUNING, signal)).find(({ path }) => path === place.file);
      return file?.sha256 === undefined ? [] : [file.sha256];
    }
    if (place) return layerDigests(await hubModel(text, place, TUNING, signal));
    if (/^(?:\.{0,2}\/|[a-z][a-z0-9+.-]*:\/\/)/iu.test(text)) return [];
    const model = (await servedModels(host, signal))?.find(({ name }) => sameName(name, text));
    return model ? layerDigests(model) : [];
  } catch {
    return [];
  }
}

function layerDigests({ layers }: ServedModel): string[] {
  return layers.flatMap(({ digest }) => (digest === null ? [] : [digestOf(digest)]));
}

/** Whether a model may be shared: what needs a token or headers is not everybody's. */
export function isPublic({ token, headers, keep, crossOriginStorage }: LoadOptions): boolean {
  const isPrivate = token !== undefined || Object.keys(headers ?? {}).length > 0;
  return !isPrivate && keep !== false && crossOriginStorage !== false;
}
