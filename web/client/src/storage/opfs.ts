// Folders and records in the origin's private file system: `rullama/models/<id>/record.json` and the parts beside it.

import { QuotaError, RullamaError } from "../errors.js";
import type { ServedModel } from "../types.js";
import { ownFolder, writeFile } from "./private-files.js";
import { partIndex, partName } from "./ranges.js";
import { sleep } from "./request.js";
import { type SyncHandle, openSync } from "./sync-access.js";

const RECORD = "record.json";
/** Beside the models: shows how long a file may become, and goes at once. */
const ROOM = "room";
/** Raised when records or parts change their meaning; others are not read and count as leftovers. */
const FORMAT = 1;
/** A tab that died, or is about to close, keeps its files for a moment. */
export const LOCKED_TRIES = 50;
export const LOCKED_PAUSE_MS = 100;

/** What is known of a stored model. `complete` is written last, after everything was checked. */
export interface StoredRecord {
  format: typeof FORMAT;
  id: string;
  /** What to call it in lists, the last one first: names, and file names of addresses, which anybody may choose. */
  names: string[];
  /** Names under which a host offered it. Only by these it is found; see `namesOf`. */
  served?: string[];
  /** Address of the file. */
  source: string;
  size: number;
  etag?: string;
  lastModified?: string;
  /** Lower-case hex digits. */
  sha256?: string;
  partBytes: number;
  complete: boolean;
  added: number;
  used: number;
  /** What the name brought. */
  info?: ServedModel;
}

/**
 * The names that a record answers to. An address is none: a file at some address that ends in `gemma4:e2b` is not that model. Records of
 * earlier versions did not tell the two apart, but hold the entry of the host that offered them last.
 */
export function namesOf({ served, info }: StoredRecord): string[] {
  return served ?? (info ? [info.name] : []);
}

export function newRecord(fields: Omit<StoredRecord, "format" | "complete" | "added" | "used">): StoredRecord {
  const now = Date.now();
  return { ...fields, format: FORMAT, complete: false, added: now, used: now };
}

/** The folder of all models. */
export async function modelsFolder(): Promise<FileSystemDirectoryHandle> {
  return ownFolder("models");
}

/** A model's folder; undefined where there is none and none is to be made. */
export async function modelFolder(id: string, create: boolean): Promise<FileSystemDirectoryHandle | undefined> {
  const models = await modelsFolder();
  try {
    return await models.getDirectoryHandle(id, { create });
  } catch (error) {
    if (!create && isNamed(error, "NotFoundError", "TypeError", "TypeMismatchError")) return undefined;
    throw error;
  }
}

/** A model's record; undefined where there is none that can be used. */
export async function readRecord(id: string): Promise<StoredRecord | undefined> {
  const folder = await modelFolder(id, false);
  if (!folder) return undefined;
  try {
    const file = await (await folder.getFileHandle(RECORD)).getFile();
    const value: unknown = JSON.parse(await file.text());
    return isRecord(value) && value.id === id ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || isNamed(error, "NotFoundError")) return undefined;
    throw error;
  }
}

/** Writes a record. Only the holder of the model's write lock may. */
export async function writeRecord(record: StoredRecord): Promise<void> {
  const folder = await modelFolder(record.id, true);
  const handle = await folder!.getFileHandle(RECORD, { create: true });
  await writeFile(handle, new TextEncoder().encode(JSON.stringify(record)));
}

/** Ids of everything in the models' folder, whatever it is. */
export async function listEntries(): Promise<string[]> {
  const names: string[] = [];
  for await (const name of (await modelsFolder()).keys()) names.push(name);
  return names.sort();
}

export async function listRecords(): Promise<StoredRecord[]> {
  const records = await Promise.all((await listEntries()).map(readRecord));
  return records.filter((record) => record !== undefined);
}

/**
 * Deletes a model's folder with all that is in it; nothing happens where there is none. The record goes first: without one,
 * nobody takes what may be left for a model.
 */
export async function deleteEntry(id: string): Promise<void> {
  const models = await modelsFolder();
  for (let tries = 1; ; tries++) {
    try {
      const folder = await modelFolder(id, false);
      await folder?.removeEntry(RECORD).catch(ignoreMissing);
      await models.removeEntry(id, { recursive: true });
      return;
    } catch (error) {
      if (isNamed(error, "NotFoundError")) return;
      if (!isNamed(error, "NoModificationAllowedError") || tries >= LOCKED_TRIES) throw error;
      await sleep(LOCKED_PAUSE_MS);
    }
  }
}

function ignoreMissing(error: unknown): void {
  if (!isNamed(error, "NotFoundError")) throw error;
}

/** Lengths of the parts in a folder by their numbers. */
export async function partLengths(folder: FileSystemDirectoryHandle): Promise<Map<number, number>> {
  const lengths = new Map<number, number>();
  const pending: Promise<void>[] = [];
  for await (const [name, handle] of folder.entries()) {
    const index = partIndex(name);
    if (index === undefined || handle.kind !== "file") continue;
    pending.push((handle as FileSystemFileHandle).getFile().then((file) => void lengths.set(index, file.size)));
  }
  await Promise.all(pending);
  return lengths;
}

export async function deletePart(folder: FileSystemDirectoryHandle, index: number): Promise<void> {
  await folder.removeEntry(partName(index));
}

/** Room left for this origin by the browser's own word; undefined where it does not tell. */
async function estimatedRoom(): Promise<number | undefined> {
  const { quota, usage } = await navigator.storage.estimate().catch((): StorageEstimate => ({}));
  return quota === undefined || usage === undefined ? undefined : Math.max(0, quota - usage);
}

/** A failure of the file system as ours: no room, or something else that concerns keeping alone. */
export async function storageError(error: unknown, needed: number): Promise<RullamaError> {
  if (error instanceof RullamaError) return error;
  if (isNamed(error, "QuotaExceededError")) {
    const free = (await roomFor(needed).catch(() => undefined)) ?? 0;
    return new QuotaError(noRoom(needed, free), needed, free, { cause: error });
  }
  const reason = error instanceof Error ? error.message : String(error);
  return new RullamaError("storage", `this browser's storage failed: ${reason}`, { cause: error });
}

/**
 * How many of `needed` bytes there is room for; undefined where nobody can tell.
 *
 * Browsers answer `estimate()` with made-up figures so that pages cannot tell devices apart: too high for a full disk, too low
 * for a large model. A file that is made this long (without writing it) tells the truth, where there are synchronous handles.
 */
export async function roomFor(needed: number): Promise<number | undefined> {
  const root = await navigator.storage.getDirectory();
  const own = await root.getDirectoryHandle("rullama", { create: true });
  const access = await openSync(await own.getFileHandle(ROOM, { create: true }), "readwrite").catch(() => undefined);
  if (!access) {
    await own.removeEntry(ROOM).catch(() => {});
    const room = await estimatedRoom();
    return room === undefined ? undefined : Math.min(room, needed);
  }
  try {
    if (fits(access, needed)) return needed;
    let [least, most] = [0, needed];
    while (most - least > needed / 256) {
      const middle = Math.floor((least + most) / 2);
      if (fits(access, middle)) least = middle;
      else most = middle;
    }
    return least;
  } catch {
    // Some file systems refuse long files for other reasons than room: then only writing can tell.
    const room = await estimatedRoom();
    return room === undefined ? undefined : Math.min(room, needed);
  } finally {
    release(access);
    await own.removeEntry(ROOM).catch(() => {});
  }
}

function release(access: SyncHandle): void {
  try {
    access.truncate(0);
  } catch {
    // The file is deleted next, whatever its length.
  }
  access.close();
}

function fits(access: SyncHandle, bytes: number): boolean {
  try {
    access.truncate(bytes);
    return true;
  } catch (error) {
    if (isNamed(error, "QuotaExceededError")) return false;
    throw error;
  }
}

/** The sentence for a quota that does not do. */
export function noRoom(needed: number, free: number): string {
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(2)} GB`;
  const advice = "remove a stored model, or load with keep: false to read it from the network each time";
  return `keeping this model takes ${gigabytes(needed)} more, but this site may store only ${gigabytes(free)}; ${advice}`;
}

export function isNamed(error: unknown, ...names: string[]): boolean {
  return error instanceof Error && names.includes(error.name);
}

function isRecord(value: unknown): value is StoredRecord {
  const record = value as Partial<Record<keyof StoredRecord, unknown>> | null;
  const count = (field: unknown) => Number.isSafeInteger(field) && (field as number) > 0;
  return (
    typeof record === "object" &&
    record !== null &&
    record.format === FORMAT &&
    typeof record.id === "string" &&
    Array.isArray(record.names) &&
    record.names.every((name) => typeof name === "string") &&
    (record.served === undefined ||
      (Array.isArray(record.served) && record.served.every((name) => typeof name === "string"))) &&
    typeof record.source === "string" &&
    typeof record.complete === "boolean" &&
    count(record.size) &&
    count(record.partBytes)
  );
}
