// Splits a GGUF file, as `llama-gguf-split` does.

import { type HeaderEntry, readHeader, writeHeader } from "../../src/storage/gguf-header.js";
import type { ByteSource } from "../../src/storage/types.js";

export function bytesSource(bytes: Uint8Array): ByteSource {
  return { size: bytes.length, read: async (at, length) => bytes.slice(at, at + length), close() {} };
}

/** An entry of a whole number of 16 (type 2) or 32 (type 4) bits. */
export function entry(key: string, type: 2 | 4, number: number): HeaderEntry {
  const name = new TextEncoder().encode(key);
  const bytes = new Uint8Array(8 + name.length + 4 + type);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(name.length), true);
  bytes.set(name, 8);
  view.setUint32(8 + name.length, type, true);
  if (type === 2) view.setUint16(12 + name.length, number, true);
  else view.setUint32(12 + name.length, number, true);
  return { key, bytes, value: bytes.subarray(8 + name.length), integer: number };
}

/** The parts of a file, with about as many tensors in each. */
export async function splitFile(whole: Uint8Array, count: number): Promise<Uint8Array<ArrayBuffer>[]> {
  const { version, alignment, entries, tensors, dataStart } = await readHeader(bytesSource(whole), "whole");
  const ends = tensors.map(({ offset }) => offset).sort((a, b) => a - b);
  const endOf = (offset: number) => ends.find((end) => end > offset) ?? whole.length - dataStart;
  const each = Math.ceil(tensors.length / count);
  return Array.from({ length: count }, (_, number) => {
    const own = tensors.slice(number * each, (number + 1) * each);
    const data: Uint8Array[] = [];
    let at = 0;
    const placed = own.map((tensor) => {
      const bytes = whole.subarray(dataStart + tensor.offset, dataStart + endOf(tensor.offset));
      data.push(bytes);
      at += bytes.length;
      return { ...tensor, offset: at - bytes.length };
    });
    const about = [
      entry("split.no", 2, number),
      entry("split.count", 2, count),
      entry("split.tensors.count", 4, tensors.length),
    ];
    const header = writeHeader({
      version,
      alignment,
      entries: number === 0 ? [...entries, ...about] : about,
      tensors: placed,
    });
    const part = new Uint8Array(header.length + at);
    part.set(header);
    let to = header.length;
    for (const bytes of data) {
      part.set(bytes, to);
      to += bytes.length;
    }
    return part;
  });
}
