// Models split over several files, `model-00001-of-00003.gguf` and so on: the engine reads them as one file, whose header is made of theirs.

import { RullamaError } from "../errors.js";
import { type GgufHeader, type HeaderTensor, aligned, readHeader, writeHeader } from "./gguf-header.js";
import { checkRead } from "./ranges.js";
import type { ByteSource, Opened } from "./types.js";

/** Between the data of two parts: more than the engine reads over, so that no read of neighbouring tensors touches two files. */
const GAP = 1 << 20;

/** One model of its opened parts. Closes them where they are not one. */
export async function joinParts(parts: Opened[], name: string): Promise<Opened> {
  try {
    const headers = await Promise.all(parts.map(({ source, name: file }) => readHeader(source, file)));
    const source = joinedSource(parts, headers);
    const all = (each: (part: Opened) => Promise<void>) => {
      const settled = Promise.all(parts.map(each)).then(() => {});
      settled.catch(() => {});
      return settled;
    };
    const { id: _id, ...first } = parts[0]!;
    return {
      ...first,
      name,
      source,
      verified: all(({ verified }) => verified),
      stored: all(({ stored }) => stored),
      strict: parts.some(({ strict }) => strict),
    };
  } catch (error) {
    for (const { source } of parts) source.close();
    throw error;
  }
}

/** The data of a part: where it lies in its file, and in the whole. */
interface Region {
  source: ByteSource;
  file: string;
  from: number;
  start: number;
  end: number;
}

function joinedSource(parts: Opened[], headers: GgufHeader[]): ByteSource {
  for (const [index, header] of headers.entries()) checkBelongs(headers, header, index, parts[index]!.name);
  checkTensors(headers, parts[0]!.name);
  const [{ version, alignment, entries }] = headers as [GgufHeader];
  const tensors: HeaderTensor[] = [];
  const regions: Region[] = [];
  let base = 0;
  for (const [index, header] of headers.entries()) {
    const { source, name: file } = parts[index]!;
    for (const tensor of header.tensors) tensors.push({ ...tensor, offset: base + tensor.offset });
    const length = Math.max(0, source.size - header.dataStart);
    regions.push({ source, file, from: header.dataStart, start: base, end: base + length });
    base = aligned(base + length + GAP, alignment);
  }
  const whole = entries.filter(({ key }) => !key.startsWith("split."));
  return new JoinedSource(writeHeader({ version, alignment, entries: whole, tensors }), regions);
}

/** Refuses a file that is another part, or of another model. */
function checkBelongs(headers: GgufHeader[], header: GgufHeader, index: number, file: string): void {
  const number = (one: GgufHeader, key: string) => one.entries.find((entry) => entry.key === key)?.integer;
  const fail = (why: string) => new RullamaError("bad_file", `${file} ${why}; get the parts of the model again`);
  if (number(header, "split.no") !== index || number(header, "split.count") !== headers.length) {
    throw fail(`is not part ${index + 1} of ${headers.length}, whatever its name says`);
  }
  const [first] = headers as [GgufHeader];
  for (const { key, value } of index === 0 ? [] : header.entries) {
    if (key === "split.no" || key === "general.alignment") continue;
    const other = first.entries.find((entry) => entry.key === key);
    if (other && !isSame(other.value, value)) throw fail(`is of another model: its ${key} differs`);
  }
}

function checkTensors(headers: GgufHeader[], file: string): void {
  const found = headers.reduce((sum, { tensors }) => sum + tensors.length, 0);
  const expected = headers[0]!.entries.find(({ key }) => key === "split.tensors.count")?.integer ?? found;
  if (expected === found) return;
  throw new RullamaError("bad_file", `the parts of ${file} hold ${found} tensors, not ${expected}; get them again`);
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

/** A header in memory, and after it the data of all parts. */
class JoinedSource implements ByteSource {
  readonly size: number;
  /** Where arrays came from, to give them back. */
  private readonly owners = new WeakMap<Uint8Array, ByteSource>();

  constructor(
    private readonly header: Uint8Array,
    private readonly regions: Region[],
  ) {
    this.size = header.length + regions.at(-1)!.end;
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    checkRead(offset, length, this.size);
    const { header } = this;
    if (offset + length <= header.length) return header.slice(offset, offset + length);
    if (offset >= header.length) return this.data(offset - header.length, length);
    const bytes = new Uint8Array(length);
    bytes.set(header.subarray(offset));
    const rest = header.length - offset;
    // The engine reads ahead of the header's end, which it does not know yet: into the first part, and gaps are nothing.
    for (const { source, from, start, end } of this.regions) {
      const until = Math.min(end, length - rest);
      if (until > start) bytes.set(await source.read(from, until - start), rest + start);
    }
    return bytes;
  }

  private async data(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const region = this.regions.findLast(({ start }) => start <= offset)!;
    const { source, file, from, start, end } = region;
    if (offset + length > end) {
      const advice = "get it again, or pick the whole file";
      throw new RullamaError("bad_file", `${file} is cut off: a tensor goes beyond its end; ${advice}`);
    }
    const bytes = await source.read(from + offset - start, length);
    this.owners.set(bytes, source);
    return bytes;
  }

  giveBack(bytes: Uint8Array<ArrayBuffer>): void {
    this.owners.get(bytes)?.giveBack?.(bytes);
  }

  close(): void {
    for (const { source } of this.regions) source.close();
  }
}
