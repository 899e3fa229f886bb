// The header of a GGUF file: read from the parts of a split model, and written for the whole that the engine reads.

import { RullamaError } from "../errors.js";
import type { ByteSource } from "./types.js";

const MAGIC = 0x4655_4747;
const ALIGNMENT = "general.alignment";
/** Read at first, and again twice as much, until the header is whole. */
const FIRST_READ = 1 << 20;
/** No header of a real model comes close. */
const LARGEST_HEADER = 1 << 29;
const MOST_DIMENSIONS = 4;
const MOST_NESTED = 4;
const LONGEST_NAME = 1 << 16;

/** Bytes of values by their type; strings and arrays have lengths of their own. */
const VALUE_BYTES: Record<number, number> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
const STRING = 8;
const ARRAY = 9;

/** A key with its value, as bytes of the file. */
export interface HeaderEntry {
  key: string;
  /** The entry as it is written, with the key. */
  bytes: Uint8Array;
  /** Its value, where it is a whole number. */
  integer?: number;
  /** The value with its type, to compare. */
  value: Uint8Array;
}

/** A tensor as the header describes it. */
export interface HeaderTensor {
  name: string;
  /** Everything between the name and the offset: dimensions and type. */
  shape: Uint8Array;
  /** From the start of the data. */
  offset: number;
}

export interface GgufHeader {
  version: number;
  entries: HeaderEntry[];
  tensors: HeaderTensor[];
  alignment: number;
  /** Where the data begin. */
  dataStart: number;
}

/** More bytes are needed to go on. */
class Incomplete extends Error {}

export async function readHeader(source: ByteSource, file: string): Promise<GgufHeader> {
  for (let length = Math.min(FIRST_READ, source.size); ; length = Math.min(length * 2, source.size)) {
    const bytes = await source.read(0, length);
    try {
      return parse(bytes, file);
    } catch (error) {
      if (!(error instanceof Incomplete)) throw error;
      if (length >= Math.min(source.size, LARGEST_HEADER)) throw bad(file, "its header is cut off");
    }
  }
}

const bad = (file: string, why: string) => new RullamaError("bad_file", `${file} cannot be read: ${why}`);

/** A place in the bytes of a header. */
class Cursor {
  at = 0;
  private readonly view: DataView;

  constructor(
    readonly bytes: Uint8Array,
    private readonly file: string,
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  skip(length: number): number {
    const from = this.at;
    if (!Number.isSafeInteger(length) || length > LARGEST_HEADER) throw bad(this.file, "a length is out of range");
    if (from + length > this.bytes.length) throw new Incomplete();
    this.at += length;
    return from;
  }

  u32(): number {
    return this.view.getUint32(this.skip(4), true);
  }

  /** A number of 64 bits that this language can hold. */
  u64(): number {
    const value = this.view.getBigUint64(this.skip(8), true);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw bad(this.file, "a number is out of range");
    return Number(value);
  }

  string(): string {
    const length = this.u64();
    if (length > LONGEST_NAME) throw bad(this.file, "a name is too long");
    const from = this.skip(length);
    return new TextDecoder().decode(this.bytes.subarray(from, from + length));
  }

  since(from: number): Uint8Array {
    return this.bytes.subarray(from, this.at);
  }

  /** Skips a value; its number, where it is a whole one. */
  value(type: number, depth = 0): number | undefined {
    const size = VALUE_BYTES[type];
    if (size !== undefined) return this.integer(type, this.skip(size));
    if (type === STRING) {
      this.skip(this.u64());
      return undefined;
    }
    if (type !== ARRAY || depth >= MOST_NESTED) throw bad(this.file, `it has a value of the unknown type ${type}`);
    const inner = this.u32();
    const count = this.u64();
    const each = VALUE_BYTES[inner];
    if (each !== undefined) this.skip(count * each);
    else for (let index = 0; index < count; index++) this.value(inner, depth + 1);
    return undefined;
  }

  private integer(type: number, at: number): number | undefined {
    switch (type) {
      case 0:
        return this.view.getUint8(at);
      case 2:
        return this.view.getUint16(at, true);
      case 3:
        return this.view.getInt16(at, true);
      case 4:
        return this.view.getUint32(at, true);
      case 5:
        return this.view.getInt32(at, true);
      case 10:
        return Number(this.view.getBigUint64(at, true));
      case 11:
        return Number(this.view.getBigInt64(at, true));
      default:
        return undefined;
    }
  }
}

function parse(bytes: Uint8Array, file: string): GgufHeader {
  const cursor = new Cursor(bytes, file);
  if (cursor.u32() !== MAGIC) throw bad(file, "it is not a GGUF file");
  const version = cursor.u32();
  if (version !== 2 && version !== 3) throw bad(file, `its GGUF version ${version} is not known`);
  const tensorCount = cursor.u64();
  const entryCount = cursor.u64();
  const entries: HeaderEntry[] = [];
  for (let index = 0; index < entryCount; index++) {
    const from = cursor.at;
    const key = cursor.string();
    const at = cursor.at;
    const integer = cursor.value(cursor.u32());
    const value = { bytes: cursor.since(from), value: cursor.since(at) };
    entries.push({ key, ...value, ...(integer === undefined ? {} : { integer }) });
  }
  const alignment = entries.find(({ key }) => key === ALIGNMENT)?.integer ?? 32;
  if (!(alignment > 0 && alignment <= LONGEST_NAME)) throw bad(file, `an alignment of ${alignment} is not possible`);
  const tensors: HeaderTensor[] = [];
  for (let index = 0; index < tensorCount; index++) {
    const name = cursor.string();
    const from = cursor.at;
    const dimensions = cursor.u32();
    if (dimensions > MOST_DIMENSIONS) throw bad(file, `${name} has ${dimensions} dimensions`);
    cursor.skip(8 * dimensions + 4);
    tensors.push({ name, shape: cursor.since(from), offset: cursor.u64() });
  }
  return { version, entries, tensors, alignment, dataStart: aligned(cursor.at, alignment) };
}

/** The next multiple of an alignment. */
export const aligned = (at: number, alignment: number): number => Math.ceil(at / alignment) * alignment;

/** The bytes of a header, up to where the data begin. */
export function writeHeader(header: Pick<GgufHeader, "version" | "entries" | "tensors" | "alignment">): Uint8Array {
  const { version, entries, tensors, alignment } = header;
  const names = tensors.map(({ name }) => new TextEncoder().encode(name));
  const entryBytes = entries.reduce((sum, { bytes }) => sum + bytes.length, 0);
  const tensorBytes = tensors.reduce((sum, { shape }, index) => sum + 16 + names[index]!.length + shape.length, 0);
  const written = new Uint8Array(aligned(24 + entryBytes + tensorBytes, alignment));
  const view = new DataView(written.buffer);
  let at = 0;
  const u64 = (value: number) => {
    view.setBigUint64(at, BigInt(value), true);
    at += 8;
  };
  const put = (bytes: Uint8Array) => {
    written.set(bytes, at);
    at += bytes.length;
  };
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, version, true);
  at = 8;
  u64(tensors.length);
  u64(entries.length);
  for (const { bytes } of entries) put(bytes);
  for (const [index, { shape, offset }] of tensors.entries()) {
    u64(names[index]!.length);
    put(names[index]!);
    put(shape);
    u64(offset);
  }
  return written;
}
