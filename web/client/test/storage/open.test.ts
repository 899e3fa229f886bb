import { afterEach, describe, expect, it, vi } from "vitest";
import { openModel } from "../../src/storage/open.js";
import { checked } from "../../src/storage/open-remote.js";
import { type StoredRecord, namesOf } from "../../src/storage/opfs.js";
import type { OpenOptions } from "../../src/storage/types.js";

const SHA256 = "ab".repeat(32);

afterEach(() => vi.unstubAllGlobals());

/** A browser that keeps nothing, and a server with a file of ten bytes. */
function privateWindow(list: unknown = {}) {
  vi.stubGlobal("self", { location: { origin: "http://host" } });
  vi.stubGlobal("navigator", { storage: {} });
  vi.stubGlobal("fetch", async (url: string) =>
    url.endsWith("/rullama/models")
      ? Response.json(list)
      : new Response(new Uint8Array(1), { status: 206, headers: { "content-range": "bytes 0-0/10" } }),
  );
}

const options = (more: Partial<OpenOptions> = {}): OpenOptions => ({
  keep: true,
  brief: true,
  hash: () => Promise.reject(new Error("nothing to hash")),
  ...more,
});

describe("a digest that cannot be checked", () => {
  for (const keep of [true, false]) {
    it(`is refused with a code, with keep: ${keep}`, async () => {
      privateWindow();
      const opened = await openModel("http://elsewhere/m.gguf", options({ keep, sha256: SHA256 }));
      await expect(opened.verified).rejects.toMatchObject({ code: "unverified" });
      await expect(checked(opened)).rejects.toMatchObject({ code: "unverified" });
    });
  }

  it("that only a name brought is told, but no condition", async () => {
    const layers = [{ kind: "model", digest: `sha256:${SHA256}`, size: 10, url: "/blob" }];
    privateWindow({ models: [{ name: "gemma4:e2b", size: 10, layers }] });
    const opened = await openModel("gemma4:e2b", options());
    await expect(opened.verified).rejects.toMatchObject({ code: "unverified" });
    await checked(opened);
  });

  it("is nothing to files without one", async () => {
    privateWindow();
    const opened = await openModel("http://elsewhere/m.gguf", options());
    await opened.verified;
  });
});

describe("names of stored models", () => {
  const record = (more: Partial<StoredRecord>): StoredRecord => ({
    format: 1,
    id: "x",
    names: ["gemma4:e2b"],
    source: "http://elsewhere/gemma4:e2b",
    size: 1,
    partBytes: 1,
    complete: true,
    added: 0,
    used: 0,
    ...more,
  });

  it("are those a host offered, never the ends of addresses", () => {
    expect(namesOf(record({}))).toEqual([]);
    expect(namesOf(record({ served: [] }))).toEqual([]);
    expect(namesOf(record({ served: ["a:1"] }))).toEqual(["a:1"]);
    // As earlier versions wrote them.
    expect(namesOf(record({ info: { name: "gemma4:e4b", size: 1, layers: [] } }))).toEqual(["gemma4:e4b"]);
  });
});
