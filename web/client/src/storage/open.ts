// From what the user names to bytes: files, stored models, addresses, names.

import { ChecksumError, RullamaError } from "../errors.js";
import type { ModelSource, PickedFile, ServedModel } from "../types.js";
import { BlobSource } from "./blob.js";
import { HUB, type HubPlace, hubAddress, hubModel, hubPlace } from "./hugging-face.js";
import { digestOf, layersOf, modelLayers, sameName, servedModels, unknownName } from "./names.js";
import { type RemoteFile, canKeep, findStored, openRemote, openStored } from "./open-remote.js";
import { type StoredRecord, listRecords, namesOf } from "./opfs.js";
import { joinParts } from "./split.js";
import { orderParts, partAddresses, partNames, splitPart, wholeName } from "./split-names.js";
import { TUNING, type Tuning } from "./tuning.js";
import type { OpenOptions, Opened } from "./types.js";

/** Finds a model and makes it readable; reading may begin long before a download ends. */
export async function openModel(source: ModelSource, options: OpenOptions, tuning = TUNING): Promise<Opened> {
  const wanted = options.sha256 ?? options.digest;
  const sha256 = wanted === undefined ? undefined : digestOf(wanted);
  if (typeof source === "object" && !(source instanceof URL)) {
    const files = await Promise.all(filesOf(source).map((file) => ("getFile" in file ? file.getFile() : file)));
    return openFiles(files, sha256, options);
  }
  const host = options.host ?? self.location.origin;
  const place = hubPlace(String(source));
  if (place) return openHub(String(source), place, sha256, options, tuning);
  const address = addressOf(source, host);
  if (address === undefined) return openName(String(source), host, sha256, options, tuning);
  return openAddress(address, sha256, options, tuning);
}

const filesOf = (source: PickedFile | readonly PickedFile[]): readonly PickedFile[] =>
  Array.isArray(source) ? (source as readonly PickedFile[]) : [source as PickedFile];

/** A file that was picked, or all parts of a split model. */
async function openFiles(files: Blob[], sha256: string | undefined, options: OpenOptions): Promise<Opened> {
  const [first] = files;
  if (first && files.length === 1) return openBlob(first, sha256, options);
  const named = files.map((file) => (file instanceof File ? file : new File([file], "file")));
  const parts = orderParts(named);
  return openParts(
    wholeName(parts[0]!.name),
    parts.map((file) => () => readBlob(file, undefined, options)),
    options,
  );
}

/** A file at an address; where it is a part of a split model, all of them. */
function openAddress(address: URL, sha256: string | undefined, options: OpenOptions, tuning: Tuning): Promise<Opened> {
  const name = options.name ?? fileName(address);
  const parts = partAddresses(address);
  if (!parts) return openRemote({ url: address.href, name, sha256 }, options, tuning);
  const files = parts.map((part) => ({ url: part.href, name: fileName(part) }));
  return openRemoteParts(options.name ?? wholeName(name), files, options, tuning);
}

function openRemoteParts(name: string, files: RemoteFile[], options: OpenOptions, tuning: Tuning): Promise<Opened> {
  const open = files.map((file) => (more: OpenOptions) => openRemote(file, more, tuning));
  return openParts(name, open, options);
}

/** Opens all parts of a split model, and makes them one. */
async function openParts(
  name: string,
  open: ((options: OpenOptions) => Promise<Opened>)[],
  options: OpenOptions,
): Promise<Opened> {
  if (options.sha256 !== undefined) {
    const advice = "a name of Hugging Face brings the SHA-256 of each part";
    throw new RullamaError("bad_options", `${name} has ${open.length} parts, and sha256 is of one file: ${advice}`);
  }
  const [have, totals] = [open.map(() => 0), open.map(() => 0)];
  const sum = (numbers: number[]) => numbers.reduce((all, number) => all + number, 0);
  const results = await Promise.allSettled(
    open.map((one, index) => {
      const onDownload = (done: number, total: number) => {
        [have[index], totals[index]] = [done, total];
        options.onDownload?.(sum(have), sum(totals));
      };
      return one({ ...options, ...(options.onDownload ? { onDownload } : {}) });
    }),
  );
  const opened = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const failed = results.find((result) => result.status === "rejected");
  if (!failed) return joinParts(opened, name);
  for (const { source } of opened) source.close();
  throw failed.reason;
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
  const split = blob instanceof File ? splitPart(blob.name) : undefined;
  if (!split) return readBlob(blob, sha256, options);
  const advice = "pick all of them together, and pass them as a list";
  throw new RullamaError("bad_options", `${(blob as File).name} is one of ${split.of} files of a model: ${advice}`);
}

async function readBlob(blob: Blob, sha256: string | undefined, options: OpenOptions): Promise<Opened> {
  const name = blob instanceof File ? blob.name : "file";
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

/** A whole copy of what was loaded by this name before; where it is that of a part which was kept, all parts. */
async function openNamed(
  name: string,
  sha256: string | undefined,
  records: StoredRecord[],
): Promise<Opened | undefined> {
  const names = partNames(name);
  if (!names) return openNamedFile(name, sha256, records);
  return joinFound(
    wholeName(name),
    names.map((one) => openNamedFile(one, undefined, records)),
  );
}

/** The model of stored parts; undefined where one is not here. */
async function joinFound(name: string, parts: Promise<Opened | undefined>[]): Promise<Opened | undefined> {
  const found = await Promise.all(parts);
  const opened = found.filter((part) => part !== undefined);
  if (opened.length === found.length) return joinParts(opened, name);
  for (const { source } of opened) source.close();
  return undefined;
}

async function openNamedFile(
  name: string,
  sha256: string | undefined,
  records: StoredRecord[],
): Promise<Opened | undefined> {
  const named = records.filter((record) => record.complete && namesOf(record).some((known) => sameName(known, name)));
  for (const record of named.sort((a, b) => b.added - a.added)) {
    if (sha256 !== undefined && record.sha256 !== sha256) continue;
    // A split model is known by the record of its first part, which lists all of them.
    const layers = record.info ? layersOf(record.info, "model", record.source) : [];
    const files = layers.map((layer, at) => ({ ...layer, name: at === 0 ? name : fileName(new URL(layer.url)) }));
    const opened = files.length > 1 ? await joinFound(name, files.map(findStored)) : await openStored(record.id);
    if (opened) return { ...opened, name, info: record.info ?? opened.info };
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
    return openAddress(new URL(hubAddress(place, place.file)), sha256, options, tuning);
  }
  const stored = await openNamed(name, sha256, (await canKeep()) ? await listRecords() : []);
  if (stored) return stored;
  const model = await hubModel(name, place, tuning, options.signal);
  return openLayers(name, model, HUB, sha256, options, tuning);
}

/** The model's file, or its parts; the first one is known by the model's name. */
function openLayers(
  name: string,
  model: ServedModel,
  host: string,
  sha256: string | undefined,
  options: OpenOptions,
  tuning: Tuning,
): Promise<Opened> {
  const [first, ...rest] = modelLayers(model, host);
  const whole = { ...first, sha256: first.sha256 ?? sha256, name, info: model };
  if (rest.length === 0) return openRemote(whole, options, tuning);
  const others = rest.map((layer) => ({ ...layer, name: fileName(new URL(layer.url)) }));
  return openRemoteParts(name, [{ ...whole, sha256: first.sha256 }, ...others], options, tuning);
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
  const [layer] = modelLayers(model, host);
  if (sha256 !== undefined && layer.sha256 !== undefined && sha256 !== layer.sha256) {
    throw new RullamaError("checksum", `${host} offers another file as ${name}: its SHA-256 is ${layer.sha256}`);
  }
  return openLayers(model.name, model, host, sha256, options, tuning);
}
