// Bookkeeping of a file that is kept in parts: pure functions.

import { RullamaError } from "../errors.js";

/** A stretch inside one part. */
export interface Piece {
  part: number;
  start: number;
  length: number;
}

export function partCount(size: number, partBytes: number): number {
  return Math.ceil(size / partBytes);
}

/** Bytes that part `index` has when it is full. */
export function partLength(index: number, size: number, partBytes: number): number {
  return Math.max(0, Math.min(partBytes, size - index * partBytes));
}

/** Names sort like numbers. */
export function partName(index: number): string {
  return `${String(index).padStart(6, "0")}.part`;
}

/** The number in a part's name; undefined for other names. */
export function partIndex(name: string): number | undefined {
  const match = /^(\d{6,})\.part$/.exec(name);
  const index = match ? Number(match[1]) : undefined;
  return index !== undefined && partName(index) === name ? index : undefined;
}

/** How far a download is, from the lengths of its parts. */
export interface Extent {
  /** Bytes from the file's start in full parts: what can be read. */
  readable: number;
  /** Bytes from the file's start altogether: where writing goes on. */
  written: number;
  /** Parts that do not continue this, or are longer than they may be: of no use. */
  useless: number[];
}

export function extentOf(lengths: ReadonlyMap<number, number>, size: number, partBytes: number): Extent {
  let readable = 0;
  let written = 0;
  let next = 0;
  for (; next < partCount(size, partBytes); next++) {
    const full = partLength(next, size, partBytes);
    const length = lengths.get(next) ?? 0;
    if (length > full) break;
    written += length;
    if (length < full) {
      if (length > 0) next++;
      break;
    }
    readable += length;
  }
  return { readable, written, useless: [...lengths.keys()].filter((index) => index >= next).sort((a, b) => a - b) };
}

/** The parts that hold `length` bytes from `offset` on, in order. */
export function piecesOf(offset: number, length: number, partBytes: number): Piece[] {
  const pieces: Piece[] = [];
  for (let at = offset; at < offset + length;) {
    const part = Math.floor(at / partBytes);
    const start = at - part * partBytes;
    const taken = Math.min(partBytes - start, offset + length - at);
    pieces.push({ part, start, length: taken });
    at += taken;
  }
  return pieces;
}

/** Refuses reads outside of a file. */
export function checkRead(offset: number, length: number, size: number): void {
  const valid = Number.isSafeInteger(offset) && Number.isSafeInteger(length) && offset >= 0 && length >= 0;
  if (!valid || offset + length > size) {
    throw new RullamaError("bad_file", `bytes ${offset} to ${offset + length} are outside of a file of ${size} bytes`);
  }
}

/**
 * Whether a read that the writer has not reached should ask the network itself. Waiting costs nothing where all bytes are
 * needed in the end, while a direct request fetches them twice: so only reads far ahead go there, and only as long as what is
 * fetched twice stays a small share of the file.
 */
export function goDirect(
  read: { end: number; length: number },
  state: { readable: number; size: number; fetchedTwice: number },
  limits: { waitAhead: number; twiceShare: number },
): boolean {
  const far = read.end - state.readable > limits.waitAhead;
  return far && state.fetchedTwice + read.length <= state.size / limits.twiceShare;
}
