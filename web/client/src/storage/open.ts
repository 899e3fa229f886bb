// From what the user names to bytes: files, stored models, addresses, names.

import { ChecksumError, QuotaError, RullamaError } from "../errors.js";
import type { ModelSource, ServedModel } from "../types.js";
import { BlobSource } from "./blob.js";
import { Download } from "./download.js";
import { FollowingSource } from "./follow.js";
import { HttpSource, probe } from "./http.js";
import { HUB, type HubPlace, hubAddress, hubModel, hubPlace, refuseSplit } from "./hugging-face.js";
import { ifFree, share, useLock, writeLock } from "./locks.js";
import { digestOf, modelLayer, sameName, servedModels, unknownName } from "./names.js";
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
import { TUNING, type Tuning } from "./tuning.js";
import type { ByteSource, OpenOptions, Opened } from "./types.js";

/** A file on a server, and what is known of it beforehand. */
interface RemoteFile {
  url: string;
  name: string;
  sha256?: string;
  info?: ServedModel;
}

/** Finds a model and makes it readable; reading may begin long before a download ends. */
export async function openModel(source: ModelSource, options: OpenOptions, tuning = TUNING): Promise<Opened> {
  const wanted = options.sha256 ?? options.digest;
  const sha256 = wanted === undefined ? undefined : digestOf(wanted);
  if (source instanceof Blob) return openBlob(source, sha256, options);
  if (typeof source === "object" && "getFile" in source) return openBlob(await source.getFile(), sha256, options);
  const host = options.host ?? self.location.origin;
  const place = hubPlace(String(source));
  if (place) return openHub(String(source), place, sha256, options, tuning);
  const address = addressOf(source, host);
  if (address === undefined) return openName(String(source), host, sha256, options, tuning);
  refuseSplit(fileName(address));
  return openRemote({ url: address.href, name: options.name ?? fileName(address), sha256 }, options, tuning);
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

function addressOf(source: string | URL, host: string): URL | undefined {
  if (typeof source !== "string") return checkAddress(source);
  if (/^https?:/i.test(source)) return checkAddress(new URL(source));
  if (/^(\/|\.\.?\/)/.test(source)) return checkAddress(new URL(source, host));
  return undefined;
}

function fileName(address: URL): string {
  const last = address.pathname.split("/").pop() ?? "";
  try {
    return decodeURIComponent(last) || address.host;
  } catch {
    return last;
  }
}

function checkAddress(address: URL): URL {
  if (address.protocol === "http:" || address.protocol === "https:") return address;
  throw new RullamaError("bad_options", `${address.href} is not an http(s) address; pass the file itself instead`);
}

async function openBlob(blob: Blob, sha256: string | undefined, options: OpenOptions): Promise<Opened> {
  const name = blob instanceof File ? blob.name : "file";
  refuseSplit(name);
  const settled = { verified: Promise.resolve(), stored: Promise.resolve() };
  const opened = { source: new BlobSource(blob), name, strict: options.sha256 !== undefined, ...settled };
  if (sha256 === undefined) return opened;
  const verified = checkBlob(blob, sha256, name, options);
  verified.catch(() => {});
  return { ...opened, verified };
}

async function checkBlob(blob: Blob, sha256: string, name: string, { hash, signal }: OpenOptions): Promise<void> {
  const actual = await hash(slices(blob), signal ?? new AbortController().signal);
  if (actual === sha256) return;
  throw new ChecksumError(`${name} does not have the SHA-256 it should have`, sha256, actual);
}

async function* slices(blob: Blob): AsyncGenerator<Blob> {
  for (let at = 0; at < blob.size; at += TUNING.partBytes) yield blob.slice(at, at + TUNING.partBytes);
}

/** A whole copy of what was loaded by this name before. */
async function openNamed(
  name: string,
  sha256: string | undefined,
  records: StoredRecord[],
): Promise<Opened | undefined> {
  const named = records.filter((record) => record.complete && namesOf(record).some((known) => sameName(known, name)));
  for (const record of named.sort((a, b) => b.added - a.added)) {
    if (sha256 !== undefined && record.sha256 !== sha256) continue;
    const opened = await openStored(record.id);
    if (opened) return { ...opened, name };
  }
  return undefined;
}

/** A file of Hugging Face. Its page says where the file is; a name is looked up there, unless it is stored. */
async function openHub(
  name: string,
  place: HubPlace,
  sha256: string | undefined,
  options: OpenOptions,
  tuning: Tuning,
): Promise<Opened> {
  if (place.file !== undefined) {
    refuseSplit(place.file);
    const url = hubAddress(place, place.file);
    return openRemote({ url, name: options.name ?? fileName(new URL(url)), sha256 }, options, tuning);
  }
  const stored = await openNamed(name, sha256, (await canKeep()) ? await listRecords() : []);
  if (stored) return stored;
  const model = await hubModel(name, place, tuning, options.signal);
  const layer = modelLayer(model, HUB);
  return openRemote({ ...layer, sha256: sha256 ?? layer.sha256, name, info: model }, options, tuning);
}

async function openName(
  name: string,
  host: string,
  sha256: string | undefined,
  options: OpenOptions,
  tuning: Tuning,
): Promise<Opened> {
  const records = (await canKeep()) ? await listRecords() : [];
  const stored = await openNamed(name, sha256, records);
  if (stored) return stored;
  const served = await servedModels(host, options.signal);
  const model = served?.find((offered) => sameName(offered.name, name));
  if (!model) {
    const known = [...(served ?? []).map((offered) => offered.name), ...records.flatMap(namesOf)];
    throw unknownName(name, known, served ? `${host} does not offer it` : `no rullama serves names at ${host}`);
  }
  const layer = modelLayer(model, host);
  if (sha256 !== undefined && layer.sha256 !== undefined && sha256 !== layer.sha256) {
    throw new RullamaError("checksum", `${host} offers another file as ${name}: its SHA-256 is ${layer.sha256}`);
  }
  return openRemote({ ...layer, sha256: layer.sha256 ?? sha256, name: model.name, info: model }, options, tuning);
}

async function openRemote(remote: RemoteFile, options: OpenOptions, tuning: Tuning): Promise<Opened> {
  const keeping = await canKeep();
  const stored = keeping ? await findStored(remote) : undefined;
  const strict = options.sha256 !== undefined;
  if (stored) return { ...stored, name: remote.name, info: remote.info ?? stored.info, strict };
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

/** A whole copy of a file by its digest, or else by its address. */
async function findStored(remote: RemoteFile): Promise<Opened | undefined> {
  const { url, sha256 } = remote;
  for (const record of await listRecords()) {
    const same = sha256 === undefined ? record.source === url : record.sha256 === sha256;
    const opened = record.complete && same ? await openStored(record.id, remote) : undefined;
    if (opened) return opened;
  }
  return undefined;
}

/** Opens a stored model; undefined where it is not whole (any more): browsers and crashes take files. */
async function openStored(id: string, remote?: RemoteFile): Promise<Opened | undefined> {
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
