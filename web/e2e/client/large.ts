// A model of gigabytes that takes no room: a golden one with many more tokens, whose rows are all zeros.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Body } from "../support/body.ts";
import { GOLDENS } from "./goldens.ts";

/** Bytes of a scalar by its type's number; strings (8) and arrays (9) tell their own. */
const SCALARS: Record<number, number> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };

interface Tensor {
  /** Where its header is: name and dimensions, then offset. */
  rowsAt: number;
  offsetAt: number;
  name: string;
  rows: number;
  offset: number;
}

class Reader {
  at = 0;
  constructor(private readonly bytes: Buffer) {}

  u32(): number {
    this.at += 4;
    return this.bytes.readUInt32LE(this.at - 4);
  }

  u64(): number {
    this.at += 8;
    return Number(this.bytes.readBigUInt64LE(this.at - 8));
  }

  text(): string {
    const length = this.u64();
    this.at += length;
    return this.bytes.toString("utf8", this.at - length, this.at);
  }

  skip(type: number): void {
    if (type === 8) this.text();
    else if (type !== 9) this.at += SCALARS[type]!;
    else {
      const [inside, count] = [this.u32(), this.u64()];
      if (inside === 8) for (let i = 0; i < count; i++) this.text();
      else this.at += SCALARS[inside]! * count;
    }
  }
}

function tensorsOf(bytes: Buffer): { tensors: Tensor[]; data: number } {
  const reader = new Reader(bytes);
  reader.at = 8;
  const [count, entries] = [reader.u64(), reader.u64()];
  for (let i = 0; i < entries; i++) {
    reader.text();
    reader.skip(reader.u32());
  }
  const tensors: Tensor[] = [];
  for (let i = 0; i < count; i++) {
    const name = reader.text();
    const dimensions = reader.u32();
    const rowsAt = reader.at + 8;
    const dims = Array.from({ length: dimensions }, () => reader.u64());
    reader.u32();
    const offsetAt = reader.at;
    tensors.push({ name, rowsAt, rows: dims[1] ?? 1, offsetAt, offset: reader.u64() });
  }
  return { tensors, data: Math.ceil(reader.at / 32) * 32 };
}

/** tiny-e2b with `times` as many tokens; both its tables move behind everything else and a hole. */
export async function largeModel(times: number, hole: number): Promise<Body> {
  const original = await readFile(join(GOLDENS, "gguf/tiny-e2b-Q4_K_M.gguf"));
  const { tensors, data } = tensorsOf(original);
  const byPlace = [...tensors].sort((a, b) => a.offset - b.offset);
  const bytesOf = (tensor: Tensor) => {
    const next = byPlace[byPlace.indexOf(tensor) + 1];
    return (next === undefined ? original.length - data : next.offset) - tensor.offset;
  };
  const header = Buffer.from(original.subarray(0, data));
  let end = Math.ceil((original.length - data + hole) / 32) * 32;
  for (const tensor of tensors.filter(({ name }) => /^(token_embd|per_layer_token_embd)\.weight$/.test(name))) {
    header.writeBigUInt64LE(BigInt(tensor.rows * times), tensor.rowsAt);
    header.writeBigUInt64LE(BigInt(end), tensor.offsetAt);
    end += Math.ceil((bytesOf(tensor) * times) / 32) * 32;
  }
  const known = Buffer.concat([header, original.subarray(data)]);
  return {
    size: data + end,
    read(start, stop) {
      const bytes = new Uint8Array(stop - start);
      if (start < known.length) bytes.set(known.subarray(start, Math.min(stop, known.length)));
      return bytes;
    },
  };
}
