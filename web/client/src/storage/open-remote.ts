// A file on a server: stored, downloaded and kept, or only read.

import { QuotaError, RullamaError } from "../errors.js";
import type { ServedModel } from "../types.js";
import { BlobSource } from "./blob.js";
import { Download } from "./download.js";
import { FollowingSource } from "./follow.js";
import { HttpSource, probe } from "./http.js";
import { ifFree, share, useLock, writeLock } from "./locks.js";
import type { StoredRecord } from "./opfs.js";
import {
  deleteEntry,
  listRecords,
  modelFolder,
  namesOf,
  newRecord,
  noRoom,
  partLengths,
  readRecord,
  roomFor,
  writeRecord,
} from "./opfs.js";
import { PartsSource } from "./parts.js";
import { readElsewhere } from "./read-remote.js";
import { extentOf } from "./ranges.js";
import type { Version } from "./request.js";
import type { Tuning } from "./tuning.js";
import type { ByteSource, OpenOptions, Opened } from "./types.js";

/** A file on a server, and what is known of it beforehand. */
export interface RemoteFile {
  url: string;
  name: string;
  sha256?: string;
  info?: ServedModel;
}

/** Whether downloads can be kept here: private files need a secure context and are missing in some private windows. */
export async function canKeep(): Promise<boolean> {
  const { locks, storage } = (globalThis.navigator ?? {}) as Partial<Navigator>;
  if (locks === undefined || storage?.getDirectory === undefined) return false;
  return storage.getDirectory().then(
    () => true,
    () => false,
  );
}

/** Opens a file on a server: the copy that is stored, else over the network, kept or not. */
export async function openRemote(remote: RemoteFile, options: OpenOptions, tuning: Tuning): Promise<Opened> {
  const keeping = await canKeep();
  const stored = keeping ? await findStored(remote) : undefined;
  const strict = options.sha256 !== undefined;
  if (stored) return { ...stored, name: remote.name, info: remote.info ?? stored.info, strict };
  const shared = await openShared(remote, options);
  if (shared) return shared;
  const version = await probe(remote.url, tuning, options.signal);
  if (version.size === 0) throw new RullamaError("bad_file", `${remote.url} is empty`);
  if (options.keep && keeping) return openKept(remote, version, options, tuning);
  const source = options.brief
    ? new HttpSource(remote.url, version, tuning, options.signal)
    : await readElsewhere(remote.url, version, tuning, options.signal);
  const failure = new RullamaError(
    "storage",
    "this browser does not let this page keep files; the model is not stored",
  );
  const outcome = options.keep ? Promise.reject(failure) : Promise.resolve();
  outcome.catch(() => {});
  const verified = remote.sha256 === undefined ? Promise.resolve() : Promise.reject(unverified(remote, "is not kept"));
  verified.catch(() => {});
  return { source, name: remote.name, info: remote.info, verified, stored: outcome, strict };
}

/** The copy in Cross-Origin Storage, where there is one that can be read. */
async function openShared(remote: RemoteFile, { sharedFiles, sha256 }: OpenOptions): Promise<Opened | undefined> {
  const found = sharedFiles?.find((shared) => shared.sha256 === remote.sha256);
  const file = await found?.file.getFile().catch(() => undefined);
  if (!file) return undefined;
  const settled = { verified: Promise.resolve(), stored: Promise.resolve(), strict: sha256 !== undefined };
  return { source: new BlobSource(file), name: remote.name, info: remote.info, ...settled };
}

/** A whole copy of a file by its digest, or else by its address. */
export async function findStored(remote: RemoteFile): Promise<Opened | undefined> {
  const { url, sha256 } = remote;
  for (const record of await listRecords()) {
    const same = sha256 === undefined ? record.source === url : record.sha256 === sha256;
    const opened = record.complete && same ? await openStored(record.id, remote) : undefined;
    if (opened) return opened;
  }
  return undefined;
}

/** Opens a stored model; undefined where it is not whole (any more): browsers and crashes take files. */
export async function openStored(id: string, remote?: RemoteFile): Promise<Opened | undefined> {
  const release = await share(useLock(id));
  try {
    const record = await readRecord(id);
    const folder = await modelFolder(id, false);
    if (record?.complete && folder) {
      const extent = extentOf(await partLengths(folder), record.size, record.partBytes);
      if (extent.readable === record.size) {
        const current = knownAs(record, remote);
        await ifFree(writeLock(id), () => writeRecord(current).catch(() => {}));
        const source = releasing(new PartsSource(folder, record.size, record.partBytes), release);
        const [name = id] = current.names;
        const settled = { verified: Promise.resolve(), stored: Promise.resolve(), strict: false };
        return { source, name, id, info: current.info, ...settled };
      }
      await ifFree(writeLock(id), () => writeRecord({ ...record, complete: false }));
    }
    release();
    return undefined;
  } catch (error) {
    release();
    throw error;
  }
}

/** A record as it is after this use: what its last name brought counts. */
function knownAs(record: StoredRecord, remote: RemoteFile | undefined): StoredRecord {
  const first = (name: string | undefined, names: string[]) =>
    name === undefined ? names : [name, ...names.filter((other) => other !== name)];
  const names = first(remote?.name, record.names);
  const served = first(remote?.info?.name, namesOf(record));
  return { ...record, names, served, info: remote?.info ?? record.info, used: Date.now() };
}

/** Opens a file that is downloaded and kept. */
async function openKept(remote: RemoteFile, version: Version, options: OpenOptions, tuning: Tuning): Promise<Opened> {
  const id = await idOf(remote, version);
  const release = await share(useLock(id), options.signal);
  try {
    const found = await readRecord(id);
    const { url, sha256, info } = remote;
    const fresh = { id, names: [], source: url, sha256, info, ...version, partBytes: tuning.partBytes };
    const record = found?.size === version.size ? found : newRecord(fresh);
    await deleteOldVersions(remote, id);
    const here = await modelFolder(id, false);
    const lengths = here && record === found ? await partLengths(here) : new Map<number, number>();
    const { readable, written } = extentOf(lengths, record.size, record.partBytes);
    await checkRoom(record.size - written);
    const parts = new PartsSource((await modelFolder(id, true))!, record.size, record.partBytes);
    const { hash, onDownload } = options;
    // A found record's address and validators may be another server's.
    const { etag, lastModified } = version;
    const current = { ...knownAs(record, remote), source: url, etag, lastModified };
    const download = new Download({ record: current, version, readable, parts, hash, tuning, onDownload });
    const direct = new HttpSource(remote.url, version, tuning);
    const source = new FollowingSource(download, parts, direct, tuning);
    // Again: a tab that was closed or reloaded may have held its old version until now.
    const ended = download.outcome.then(() => deleteOldVersions(remote, id)).catch(() => {});
    // In use until it is closed and the writer has put its files away.
    const closing = releasing(source, () => void ended.then(release));
    options.signal?.addEventListener("abort", () => closing.close(), { once: true });
    if (options.signal?.aborted) closing.close();
    const verified = verdict(download.outcome, remote);
    const strict = options.sha256 !== undefined;
    return { source: closing, name: remote.name, id, info: remote.info, verified, stored: download.outcome, strict };
  } catch (error) {
    release();
    throw error;
  }
}

/** Where keeping fails, reading goes on without it, and there is no whole file to check. */
function verdict(outcome: Promise<void>, remote: RemoteFile): Promise<void> {
  if (remote.sha256 === undefined) return Promise.resolve();
  const verified = outcome.catch((error: unknown) => {
    const lost = error instanceof RullamaError && (error.code === "quota" || error.code === "storage");
    throw lost ? unverified(remote, "could not be kept", error) : error;
  });
  verified.catch(() => {});
  return verified;
}

function unverified({ url }: RemoteFile, why: string, cause?: unknown): RullamaError {
  const advice = "a download is checked as it is kept: load it with keep: true where there is room, or without sha256";
  return new RullamaError("unverified", `the SHA-256 of ${url} cannot be checked, as the file ${why}; ${advice}`, {
    cause,
  });
}

/**
 * Waits for a file's checksum. Where only a name brought the digest, the host that gave both is trusted with what cannot be checked;
 * a digest of the caller's own is a condition.
 */
export async function checked({ verified, strict }: Pick<Opened, "verified" | "strict">): Promise<void> {
  try {
    await verified;
  } catch (error) {
    if (strict || !(error instanceof RullamaError) || error.code !== "unverified") throw error;
  }
}

/** Without a digest, each version of the file at an address is a model of its own: a changed file starts anew. */
async function idOf({ url, sha256 }: RemoteFile, version: Version): Promise<string> {
  if (sha256 !== undefined) return `sha256-${sha256}`;
  const text = [url, version.size, version.etag ?? version.lastModified ?? ""].join("\n");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return `url-${[...digest.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** What an address held before is of no use to anybody who does not read it right now. */
async function deleteOldVersions({ url, sha256 }: RemoteFile, id: string): Promise<void> {
  if (sha256 !== undefined) return;
  for (const record of await listRecords()) {
    if (record.source !== url || record.id === id || record.sha256 !== undefined) continue;
    await ifFree(useLock(record.id), () => deleteEntry(record.id));
  }
}

async function checkRoom(needed: number): Promise<void> {
  const free = await roomFor(needed);
  if (free !== undefined && free < needed) throw new QuotaError(noRoom(needed, free), needed, free);
}

/** A source that gives something back when it is closed. */
function releasing(source: ByteSource, release: () => void): ByteSource {
  return {
    size: source.size,
    read: (offset, length) => source.read(offset, length),
    giveBack: (bytes) => source.giveBack?.(bytes),
    close() {
      source.close();
      release();
    },
  };
}
