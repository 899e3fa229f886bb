// What the tests' functions find in the page and in the worker: the storage, and small helpers around it.
import { RullamaError } from "../../client/src/errors.js";
import * as crossOrigin from "../../client/src/storage/cross-origin.js";
import * as storage from "../../client/src/storage/index.js";
import { TUNING, type Tuning } from "../../client/src/storage/tuning.js";
import type { ByteSource, HashPieces, OpenOptions, Opened } from "../../client/src/storage/types.js";
import type { ModelSource } from "../../client/src/types.js";

/** Small parts and short pauses. */
const QUICK: Tuning = {
  ...TUNING,
  partBytes: 1 << 16,
  skipBytes: 1 << 12,
  streamBytes: 1 << 16,
  smallRead: 1 << 10,
  waitAhead: 1 << 18,
  stallMs: 15_000,
  tries: 4,
  backoffMs: 20,
  mostBackoffMs: 100,
  reportMs: 0,
};

export const hex = (bytes: ArrayBuffer) =>
  [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export const sha256 = async (bytes: BufferSource) => hex(await crypto.subtle.digest("SHA-256", bytes));

const hashCollected: HashPieces = async (pieces) => {
  const all: Blob[] = [];
  for await (const piece of pieces) all.push(piece);
  return sha256(await new Blob(all).arrayBuffer());
};

/** A failure as the tests see it. */
export interface Failed {
  code: string;
  message: string;
  fields: Record<string, unknown>;
}

export const lab = {
  storage,
  crossOrigin,
  sha256,
  models: new storage.ModelStorage(),
  opened: [] as Opened[],
  /** Progress of the last opening. */
  heard: [] as number[],

  /** Opens a model and remembers it under the number it returns. */
  async open(source: ModelSource, options: Partial<OpenOptions> = {}, tuning: Partial<Tuning> = {}): Promise<number> {
    lab.heard = [];
    const defaults = { keep: true, hash: hashCollected, onDownload: (have: number) => void lab.heard.push(have) };
    const opened = await storage.openModel(source, { ...defaults, ...options }, { ...QUICK, ...tuning });
    return lab.opened.push(opened) - 1;
  },

  model(number: number): Opened {
    const opened = lab.opened[number];
    if (!opened) throw new Error(`nothing was opened under ${number}`);
    return opened;
  },

  /** The digest of everything from `start` to `end`, read in pieces. */
  async digest(number: number, start = 0, end = lab.model(number).source.size, step = 100_000): Promise<string> {
    const { source } = lab.model(number);
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    for (let at = start; at < end; at += step) pieces.push(await source.read(at, Math.min(step, end - at)));
    return sha256(await new Blob(pieces).arrayBuffer());
  },

  /** How a promise ends: with nothing, or how it failed. */
  async ends(promise: Promise<unknown>): Promise<Failed | undefined> {
    try {
      await promise;
      return undefined;
    } catch (error) {
      if (!(error instanceof RullamaError)) throw error;
      const { code, message, ...fields } = error;
      return { code, message: message || String(error), fields: JSON.parse(JSON.stringify(fields)) };
    }
  },

  /** Whether it is still open after a moment. */
  async pending(promise: Promise<unknown>, ms = 300): Promise<boolean> {
    const timeout = new Promise<true>((resolve) => setTimeout(() => resolve(true), ms));
    return Promise.race([
      promise.then(
        () => false as const,
        () => false as const,
      ),
      timeout,
    ]);
  },

  /** Files in the storage with their lengths. */
  async files(folder?: FileSystemDirectoryHandle): Promise<Record<string, number>> {
    const found: Record<string, number> = {};
    for await (const [name, handle] of (folder ?? (await navigator.storage.getDirectory())).entries()) {
      if (handle.kind === "file") {
        found[name] = (await (handle as FileSystemFileHandle).getFile()).size;
        continue;
      }
      const inside = await lab.files(handle as FileSystemDirectoryHandle);
      for (const [path, size] of Object.entries(inside)) found[`${name}/${path}`] = size;
    }
    return found;
  },
};

export type Lab = typeof lab;
export type { ByteSource };
