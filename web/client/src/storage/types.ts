// The words between storage and the rest of the client.

import type { ServedModel } from "../types.js";
import type { SharedFile } from "./cross-origin.js";

/** Bytes that can be read anywhere, wherever they lie. */
export interface ByteSource {
  readonly size: number;
  /** Exactly `length` bytes from `offset` on, in an array of their own. Reads may overlap and run at the same time. */
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Takes back an array that was read, for later reads; a caller that keeps it does not call this. */
  giveBack?(bytes: Uint8Array<ArrayBuffer>): void;
  /** Ends reads that wait, and the download behind it; what was downloaded stays for the next time. */
  close(): void;
}

/**
 * SHA-256 of a file that arrives in pieces, in order, as lower-case hex digits. It should run in a worker: see `hashing.ts`.
 * Each piece is up to a few dozen megabytes; the next one is asked for when this one was taken in.
 */
export type HashPieces = (pieces: AsyncIterable<Blob>, signal: AbortSignal) => Promise<string>;

export interface OpenOptions {
  /** Address of a `rullama serve` that knows names; this origin by default. */
  host?: string;
  /** Keep what is downloaded in this browser. */
  keep: boolean;
  /** Little will be read: not worth a worker. */
  brief?: boolean;
  /** SHA-256 that the file must have, 64 hex digits with or without `sha256:` before them. */
  sha256?: string;
  /** SHA-256 that a host's list gives for the file: checked where that can be done. */
  digest?: string;
  /** Ends opening, reading and the download behind it. */
  signal?: AbortSignal;
  /** Bytes of the file that are here by now, of so many. Not called for what needs no download. */
  onDownload?: (have: number, total: number) => void;
  hash: HashPieces;
  /** Files of Cross-Origin Storage, whose digests the browser checked. */
  sharedFiles?: readonly SharedFile[];
  /** What to call a file behind an address; its own name by default. */
  name?: string;
}

/** A model that can be read. */
export interface Opened {
  source: ByteSource;
  /** The name it was asked for by, or its file's name. */
  name: string;
  /** Its key in the storage, where it is (or is being) kept. */
  id?: string;
  /** What its name brings (parameters, system prompt), where a name was looked up. */
  info?: ServedModel;
  /**
   * Settles when the checksum was right; at once where no digest is known, or it was checked when it was stored. Rejects with
   * `checksum`, and with `unverified` where nothing is kept and so the whole file never passes by. See `checked`.
   */
  verified: Promise<void>;
  /** Whether the digest was the caller's own. */
  strict: boolean;
  /**
   * Settles when the file is whole in this browser; at once where it is already, or where nothing is kept. Rejects when the
   * download failed; with `quota` or `storage`, reading goes on from the network all the same.
   */
  stored: Promise<void>;
}
