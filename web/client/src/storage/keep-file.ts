// Keeps a file that the user picked: copied into this browser's storage, from where it is loaded by its name.

import { CancelledError, QuotaError, RullamaError } from "../errors.js";
import type { StoredModel } from "../types.js";
import { useLock, writeLock } from "./locks.js";
import {
  listRecords,
  modelFolder,
  newRecord,
  noRoom,
  partLengths,
  roomFor,
  storageError,
  writeRecord,
} from "./opfs.js";
import { canKeep } from "./open-remote.js";
import { PartsWriter } from "./parts.js";
import { extentOf } from "./ranges.js";
import { TUNING, type Tuning } from "./tuning.js";

export interface KeepFileOptions {
  /** What to load it by; its file name where absent. */
  name?: string;
  onProgress?: (done: number, total: number) => void;
  signal?: AbortSignal;
}

/** Copies a file. One that is stored already, with the same name, size and time, is not copied again. */
export async function keepFile(
  file: Blob,
  options: KeepFileOptions = {},
  tuning: Tuning = TUNING,
): Promise<StoredModel> {
  if (!(await canKeep())) {
    throw new RullamaError("storage", "this browser does not let this page keep files; pick the file again next time");
  }
  const name = options.name ?? (file instanceof File ? file.name : "");
  if (name === "") throw new RullamaError("bad_options", "a blob without a name needs { name }");
  const id = await idOf(file, name);
  const copied = navigator.locks.request(writeLock(id), options.signal ? { signal: options.signal } : {}, () =>
    navigator.locks.request(useLock(id), { mode: "shared" }, () => copy(file, id, name, options, tuning)),
  );
  return copied.catch((error: unknown) => {
    throw options.signal?.aborted ? new CancelledError("cancelled", { cause: error }) : error;
  });
}

async function copy(
  file: Blob,
  id: string,
  name: string,
  options: KeepFileOptions,
  tuning: Tuning,
): Promise<StoredModel> {
  const found = (await listRecords()).find((record) => record.id === id);
  const folder = (await modelFolder(id, true))!;
  const { size } = file;
  const fresh = newRecord({
    id,
    names: [name],
    served: [name],
    source: `file:${name}`,
    size,
    partBytes: tuning.partBytes,
  });
  const record = found?.size === size ? found : fresh;
  const { readable, written } = extentOf(await partLengths(folder), size, record.partBytes);
  if (!record.complete || readable < size) {
    const free = await roomFor(size - written);
    if (free !== undefined && free < size - written)
      throw new QuotaError(noRoom(size - written, free), size - written, free);
    await writeRecord({ ...record, complete: false });
    await write(file, folder, record.partBytes, readable, options);
  }
  const kept = { ...record, complete: true, used: Date.now() };
  await writeRecord(kept);
  const { source, added, used } = kept;
  return { id, name, names: [name], source, bytes: size, have: size, complete: true, added, used };
}

async function write(
  file: Blob,
  folder: FileSystemDirectoryHandle,
  partBytes: number,
  from: number,
  { onProgress, signal }: KeepFileOptions,
): Promise<void> {
  const parts = new PartsWriter(folder, file.size, partBytes, from);
  try {
    for (let at = from; at < file.size; at += partBytes) {
      signal?.throwIfAborted();
      const bytes = new Uint8Array(await file.slice(at, at + partBytes).arrayBuffer());
      await parts.write(bytes, at);
      onProgress?.(at + bytes.length, file.size);
    }
  } catch (error) {
    if (signal?.aborted) throw error;
    throw await storageError(error, file.size - parts.readable);
  } finally {
    await parts.close();
  }
}

async function idOf(file: Blob, name: string): Promise<string> {
  const time = file instanceof File ? file.lastModified : 0;
  const text = new TextEncoder().encode(["file", name, file.size, time].join("\n"));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
  return `file-${[...digest.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
