// Cross-Origin Storage, which no browser has natively: a fake of both of its shapes.
import { afterEach, describe, expect, it, vi } from "vitest";
import { Engine } from "../../src/engine.js";
import type { Transport } from "../../src/protocol.js";
import { digestsOf, findShared, handleRequest, isPublic, shareFile } from "../../src/storage/cross-origin.js";
import { openModel } from "../../src/storage/open.js";
import { TUNING } from "../../src/storage/tuning.js";

const A = "aa".repeat(32);
const B = "bb".repeat(32);

afterEach(() => vi.unstubAllGlobals());

interface Asked {
  value: string;
  algorithm: string;
  options: unknown;
}

/** A browser with these shared files; writing one whose text is "wrong" fails, as its digest would. */
function browser(shape: "now" | "before", files: Record<string, string> = {}) {
  const asked: Asked[] = [];
  const aborted: string[] = [];
  const request = async (hash: { value: string; algorithm: string }, options: { create?: boolean } = {}) => {
    asked.push({ ...hash, options });
    const { value } = hash;
    if (!options.create && files[value] === undefined) throw new DOMException("none", "NotFoundError");
    let text = "";
    return {
      getFile: async () => new File([files[value]!], value),
      createWritable: async () => ({
        write: async (piece: Blob) => void (text += await piece.text()),
        close: async () => {
          if (text === "wrong") throw new DOMException("digest", "DataError");
          files[value] = text;
        },
        abort: async () => void aborted.push(value),
      }),
    };
  };
  const now = { requestFileHandle: request };
  const before = {
    requestFileHandles: async (hashes: never[], options: object) => [await request(hashes[0]!, options)],
  };
  vi.stubGlobal("navigator", { crossOriginStorage: shape === "now" ? now : before, storage: {} });
  vi.stubGlobal("self", { location: { origin: "http://host" } });
  return { asked, aborted, files };
}

async function* pieces(...texts: string[]) {
  for (const text of texts) yield new Blob([text]);
}

describe.each(["now", "before"] as const)("the interface as it is %s", (shape) => {
  it("finds shared files, and those that are not there are none", async () => {
    const { asked } = browser(shape, { [A]: "model" });
    const found = await findShared([A, B]);
    expect(found.map(({ sha256 }) => sha256)).toEqual([A]);
    expect(await (await found[0]!.file.getFile()).text()).toBe("model");
    expect(asked[0]).toMatchObject({ value: A, algorithm: "SHA-256" });
  });

  it("shares a file with all sites, piece by piece", async () => {
    const { asked, files, aborted } = browser(shape);
    expect(await shareFile(A, pieces("mo", "del"))).toBe(true);
    expect(files[A]).toBe("model");
    expect(asked[0]!.options).toEqual({ create: true, origins: "*" });
    expect(await shareFile(B, pieces("wrong"))).toBe(false);
    expect([files[B], aborted]).toEqual([undefined, [B]]);
  });
});

describe("without the interface", () => {
  it("nothing is found, shared or asked for", async () => {
    for (const navigator of [{}, { crossOriginStorage: {} }, { crossOriginStorage: undefined }]) {
      vi.stubGlobal("navigator", navigator);
      expect(handleRequest()).toBe(undefined);
      expect([await findShared([A]), await shareFile(A, pieces("x"))]).toEqual([[], false]);
    }
  });

  it("or where it refuses, the ordinary storage does", async () => {
    const refuse = async () => {
      throw new DOMException("no", "NotAllowedError");
    };
    vi.stubGlobal("navigator", { crossOriginStorage: { requestFileHandle: refuse } });
    expect([await findShared([A]), await shareFile(A, pieces("x"))]).toEqual([[], false]);
  });
});

describe("digests", () => {
  it("are the caller's, the host's or the hub's, and none of addresses", async () => {
    const list = {
      models: [{ name: "gemma4:e2b", size: 1, layers: [{ kind: "model", digest: A, size: 1, url: "/b" }] }],
    };
    const hub = [{ type: "file", path: "x-Q4_K_M.gguf", size: 5, lfs: { oid: B } }];
    vi.stubGlobal("fetch", async (url: string) => Response.json(url.includes("huggingface") ? hub : list));
    const host = "http://host";
    expect(await digestsOf("x", host, { sha256: `sha256:${A}` })).toEqual([A]);
    expect(await digestsOf("gemma4:e2b", host)).toEqual([A]);
    expect(await digestsOf("gemma4:e4b", host)).toEqual([]);
    expect(await digestsOf("hf.co/org/repo:Q4_K_M", host)).toEqual([B]);
    expect(await digestsOf("https://huggingface.co/org/repo/resolve/main/x-Q4_K_M.gguf", host)).toEqual([B]);
    expect(await digestsOf("http://h/x.gguf", host)).toEqual([]);
    expect(await digestsOf(new Blob(), host)).toEqual([]);
    vi.stubGlobal("fetch", () => Promise.reject(new Error("offline")));
    expect(await digestsOf("hf.co/org/repo:Q4_K_M", host)).toEqual([]);
  });

  it("of private models are not asked for", () => {
    expect(isPublic({})).toBe(true);
    for (const options of [{ token: "t" }, { headers: { a: "b" } }, { keep: false }, { crossOriginStorage: false }]) {
      expect(isPublic(options)).toBe(false);
    }
  });
});

describe("a load", () => {
  const open = (params: unknown[]) => {
    const transport = {
      alive: true,
      close() {},
      call: async (kind: string, given: unknown) => {
        if (kind === "load") params.push(given);
        return kind === "lost" ? new Promise(() => {}) : { model: 1, info: { kind: "decoder" } };
      },
    };
    return new Engine(transport as unknown as Transport, "http://host");
  };

  it("passes handles of shared files to the engine", async () => {
    browser("now", { [A]: "model" });
    const params: { options: { sharedFiles?: { sha256: string }[] } }[] = [];
    await open(params).load("http://h/x.gguf", { sha256: A });
    await open(params).load("http://h/x.gguf", { sha256: A, crossOriginStorage: false });
    await open(params).load("http://h/x.gguf", { sha256: B });
    const shared = params.map(({ options }) => options.sharedFiles?.map(({ sha256 }) => sha256));
    expect(shared).toEqual([[A], undefined, undefined]);
  });

  it("reads a shared file without a request", async () => {
    browser("now", { [A]: "model" });
    vi.stubGlobal("fetch", () => Promise.reject(new Error("there is no network")));
    const hash = () => Promise.reject(new Error("nothing to hash"));
    const sharedFiles = await findShared([A]);
    const opened = await openModel("http://h/x.gguf", { keep: true, hash, sha256: A, sharedFiles });
    expect(new TextDecoder().decode(await opened.source.read(0, 5))).toBe("model");
    await Promise.all([opened.verified, opened.stored]);
    const other = openModel("http://h/x.gguf", { keep: true, hash, sha256: B, sharedFiles }, { ...TUNING, tries: 1 });
    await expect(other).rejects.toMatchObject({ code: "network" });
  });
});
