// Split models: found from one part, read as one file, refused where the parts are not those of one model.
import { readFile } from "node:fs/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openEngine } from "../../src/index.js";
import { readHeader, writeHeader } from "../../src/storage/gguf-header.js";
import { openModel } from "../../src/storage/open.js";
import { joinParts } from "../../src/storage/split.js";
import { orderParts, partAddresses, partNames, splitPart, wholeName } from "../../src/storage/split-names.js";
import type { OpenOptions, Opened } from "../../src/storage/types.js";
import { bytesSource, entry, splitFile } from "./split-file.js";

const GOLDEN = new URL("../../../../goldens/gguf/micro-e2b-Q8_0.gguf", import.meta.url);
const whole = new Uint8Array(await readFile(GOLDEN));
const parts = await splitFile(whole, 3);
const nameOf = (index: number, of = 3) => `m-0000${index + 1}-of-0000${of}.gguf`;
const files = (bytes: Uint8Array<ArrayBuffer>[] = parts) => bytes.map((part, at) => new File([part], nameOf(at)));

afterEach(() => vi.unstubAllGlobals());

const options = (more: Partial<OpenOptions> = {}): OpenOptions => ({
  keep: false,
  brief: true,
  hash: () => Promise.reject(new Error("nothing to hash")),
  ...more,
});

function opened(bytes: Uint8Array, name: string, close = () => {}): Opened {
  const settled = { verified: Promise.resolve(), stored: Promise.resolve(), strict: false };
  return { source: { ...bytesSource(bytes), close }, name, ...settled };
}

const join = (bytes: Uint8Array[]) =>
  joinParts(
    bytes.map((part, at) => opened(part, nameOf(at))),
    "m",
  );

describe("names of parts", () => {
  it("are found from any of them", () => {
    expect(splitPart("a/x-00002-of-00003.gguf")).toEqual({ part: 2, of: 3 });
    expect([splitPart("x.gguf"), splitPart("x-00001-of-00001.gguf"), partNames("x.gguf")]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(partNames("a/x-00002-of-00002.gguf")).toEqual(["a/x-00001-of-00002.gguf", "a/x-00002-of-00002.gguf"]);
    expect(wholeName("x-00001-of-00002.gguf")).toBe("x.gguf");
    const addresses = partAddresses(new URL("https://h/d/x-00001-of-00002.gguf?download=true"))!;
    expect(addresses.map(({ href }) => href)).toEqual([
      "https://h/d/x-00001-of-00002.gguf?download=true",
      "https://h/d/x-00002-of-00002.gguf?download=true",
    ]);
    for (const bad of ["x-00000-of-00002.gguf", "x-00003-of-00002.gguf", "x-00001-of-99999.gguf"]) {
      expect(() => partNames(bad)).toThrow(expect.objectContaining({ code: "bad_options" }));
    }
  });

  it("order picked files, and say which one is missing", () => {
    const named = (...names: string[]) => names.map((name) => ({ name }));
    const [a, b] = ["x-00001-of-00002.gguf", "x-00002-of-00002.gguf"];
    expect(orderParts(named(b, a))).toEqual(named(a, b));
    expect(() => orderParts(named(b, "y.gguf"))).toThrow(a);
    for (const bad of [named("x.gguf", "y.gguf"), [], named(a, b, "z.gguf")]) {
      expect(() => orderParts(bad)).toThrow(expect.objectContaining({ code: "bad_options" }));
    }
  });
});

describe("parts of a model", () => {
  it("hold what the whole file holds", async () => {
    const joined = await join(parts);
    const wanted = await readHeader(bytesSource(whole), "whole");
    const found = await readHeader(joined.source, "joined");
    expect(found.entries.map(({ key }) => key)).toEqual(wanted.entries.map(({ key }) => key));
    expect(found.tensors.map(({ name, shape }) => ({ name, shape: [...shape] }))).toEqual(
      wanted.tensors.map(({ name, shape }) => ({ name, shape: [...shape] })),
    );
    for (const [index, { name, offset }] of wanted.tensors.entries()) {
      const next = wanted.tensors.map((other) => other.offset).filter((other) => other > offset);
      const length = Math.min(...next, whole.length - wanted.dataStart) - offset;
      const bytes = await joined.source.read(found.dataStart + found.tensors[index]!.offset, length);
      const original = whole.subarray(wanted.dataStart + offset, wanted.dataStart + offset + length);
      expect(Buffer.compare(bytes, original), name).toBe(0);
    }
  });

  it("are inspected by the engine as one file", async () => {
    const engine = openEngine({ worker: false });
    const { info, memory } = await engine.inspect(files().reverse());
    const one = await engine.inspect(new File([whole], "m.gguf"));
    const { fileBytes: _bytes, ...rest } = info;
    const { fileBytes: _whole, ...same } = one.info;
    expect(rest).toEqual(same);
    expect(memory).toEqual(one.memory);
    const single = engine.inspect(files()[0]!);
    await expect(single).rejects.toMatchObject({ code: "bad_options", message: expect.stringContaining("3 files") });
    engine.close();
  });

  it("are fetched from the address of one, and add up to one download", async () => {
    vi.stubGlobal("self", { location: { origin: "http://host" } });
    vi.stubGlobal("navigator", { storage: {} });
    const asked: string[] = [];
    const fetch = (async (url: string, init: RequestInit) => {
      asked.push(url);
      const body = parts[Number(/-0000(\d)-of/u.exec(url)![1]) - 1]!;
      const [, from, to] = /bytes=(\d+)-(\d+)/u.exec(new Headers(init.headers).get("range") ?? "")!.map(Number);
      const end = Math.min(to!, body.length - 1);
      const headers = { "content-range": `bytes ${from}-${end}/${body.length}` };
      return new Response(body.slice(from, end + 1), { status: 206, headers });
    }) as typeof globalThis.fetch;
    vi.stubGlobal("fetch", fetch);
    const model = await openModel(`http://files/${nameOf(1)}`, options());
    expect(model.name).toBe("m.gguf");
    expect(new Set(asked)).toEqual(new Set([0, 1, 2].map((at) => `http://files/${nameOf(at)}`)));
    const { tensors, dataStart } = await readHeader(model.source, "m");
    expect(tensors).toHaveLength((await readHeader(bytesSource(whole), "whole")).tensors.length);
    expect(dataStart).toBeGreaterThan(0);
    await model.verified;
    const strict = openModel(`http://files/${nameOf(0)}`, options({ sha256: "ab".repeat(32) }));
    await expect(strict).rejects.toMatchObject({ code: "bad_options" });
  });

  it("are refused where they are not those of one model", async () => {
    const bad = (bytes: Uint8Array[], why: string) =>
      expect(join(bytes)).rejects.toMatchObject({ code: "bad_file", message: expect.stringContaining(why) });
    const [first, second, third] = parts as [Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>];
    await bad([first, third, second], "not part 2 of 3");
    await bad([first, second], "not part 1 of 2");
    await bad([first, second, whole], "not part 3 of 3");
    await bad([first, second, new Uint8Array(64)], "not a GGUF file");
    await bad([first, second, third.slice(0, 40)], "cut off");
    const header = await readHeader(bytesSource(third), "third");
    const other = writeHeader({ ...header, entries: [...header.entries, entry("gemma4.block_count", 4, 999)] });
    await bad([first, second, other], "gemma4.block_count differs");
    const fewer = writeHeader({ ...header, tensors: header.tensors.slice(1) });
    await bad([first, second, fewer], "tensors, not");
  });

  it("that end too early are noticed when their last tensor is read", async () => {
    const cut = parts[1]!.slice(0, -64);
    const { source } = await join([parts[0]!, cut, parts[2]!]);
    const { tensors, dataStart } = await readHeader(source, "joined");
    const second = await readHeader(bytesSource(parts[1]!), "second");
    const last = second.tensors.reduce((a, b) => (b.offset > a.offset ? b : a));
    const length = parts[1]!.length - second.dataStart - last.offset;
    const at = tensors.find(({ name }) => name === last.name)!.offset;
    await expect(source.read(dataStart + at, length)).rejects.toMatchObject({
      code: "bad_file",
      message: expect.stringContaining(nameOf(1)),
    });
    await source.read(dataStart + at, length - 64);
  });

  it("are closed together, and when they cannot be joined", async () => {
    let closed = 0;
    const three = (bytes: Uint8Array[]) => bytes.map((part, at) => opened(part, nameOf(at), () => (closed += 1)));
    (await joinParts(three(parts), "m")).source.close();
    expect(closed).toBe(3);
    await expect(joinParts(three([parts[0]!, parts[0]!, parts[0]!]), "m")).rejects.toThrow();
    expect(closed).toBe(6);
  });
});

describe("headers of hostile files", () => {
  const read = (bytes: Uint8Array) => readHeader(bytesSource(bytes), "file");
  const header = (version: number, tensors: bigint, entries: bigint, rest: number[] = []) => {
    const bytes = new Uint8Array(24 + rest.length);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, 0x46554747, true);
    view.setUint32(4, version, true);
    view.setBigUint64(8, tensors, true);
    view.setBigUint64(16, entries, true);
    bytes.set(rest, 24);
    return bytes;
  };
  const key = [1, 0, 0, 0, 0, 0, 0, 0, 97];
  const huge = [255, 255, 255, 255, 255, 255, 255, 127];

  it.each([
    ["an empty file", new Uint8Array()],
    ["a version that is not known", header(1, 0n, 0n)],
    ["more tensors than the file has bytes", header(3, 1n << 52n, 0n)],
    ["a count beyond 2⁵³", header(3, 0n, 1n << 63n)],
    ["a key that is longer than the file", header(3, 0n, 1n, huge)],
    ["a type that is not known", header(3, 0n, 1n, [...key, 99, 0, 0, 0])],
    ["an array that is longer than the file", header(3, 0n, 1n, [...key, 9, 0, 0, 0, 0, 0, 0, 0, ...huge])],
    [
      "arrays in arrays",
      header(3, 0n, 1n, [...key, 9, 0, 0, 0, ...Array(20).fill([9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]).flat()]),
    ],
    ["a tensor of many dimensions", header(3, 1n, 0n, [...key, 255, 0, 0, 0])],
  ])("%s is refused", async (_what, bytes) => {
    await expect(read(bytes)).rejects.toMatchObject({ code: "bad_file" });
  });
});
