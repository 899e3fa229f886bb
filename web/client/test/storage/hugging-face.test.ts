import { describe, expect, it } from "vitest";
import { CATALOGUE, RECOMMENDED, sourceOf } from "../../src/catalogue.js";
import { hubModel, hubPlace } from "../../src/storage/hugging-face.js";
import { requestRange } from "../../src/storage/request.js";
import { TUNING, headersFor } from "../../src/storage/tuning.js";

const DIGEST = "ab".repeat(32);
const FILES = [
  { type: "file", path: "x-Q8_0.gguf", size: 9, lfs: { oid: DIGEST } },
  { type: "file", path: "x-Q4_K_M.gguf", size: 5 },
  { type: "file", path: "x-Q4_K_M-00001-of-00002.gguf", size: 3 },
  { type: "file", path: "big/x-BF16-00002-of-00002.gguf", size: 20, lfs: { oid: "cd".repeat(32) } },
  { type: "file", path: "big/x-BF16-00001-of-00002.gguf", size: 30, lfs: { oid: DIGEST } },
  { type: "file", path: "x-F32-00001-of-00002.gguf", size: 60 },
  { type: "file", path: "mmproj-BF16.gguf", size: 2 },
  { type: "file", path: "mmproj-F16.gguf", size: 2 },
];

/** A hub that lists the files, and notes what it was sent. */
function hub(status = 200) {
  const sent: { url: string; headers: Headers }[] = [];
  const fetch = (async (url: string, init: RequestInit) => {
    sent.push({ url, headers: new Headers(init.headers) });
    return new Response(JSON.stringify(FILES), { status });
  }) as typeof globalThis.fetch;
  const headers = { origin: "https://huggingface.co", values: { authorization: "Bearer t" } };
  return { sent, tuning: { ...TUNING, fetch, headers } };
}

const find = (name: string, { tuning } = hub()) => hubModel(name, hubPlace(name)!, tuning);

describe("names of Hugging Face", () => {
  it("mean a file, with its digest and its projector", async () => {
    const model = await find("hf.co/org/repo:Q8_0");
    const url = "https://huggingface.co/org/repo/resolve/main";
    expect(model).toEqual({
      name: "hf.co/org/repo:Q8_0",
      size: 9,
      layers: [
        { kind: "model", digest: DIGEST, size: 9, url: `${url}/x-Q8_0.gguf` },
        { kind: "projector", digest: null, size: 2, url: `${url}/mmproj-F16.gguf` },
      ],
    });
    const usual = await find("hf.co/org/repo");
    expect(usual.layers[0]!.url).toBe(`${url}/x-Q4_K_M.gguf`);
  });

  it("mean all parts of a split model, in order", async () => {
    const { size, layers } = await find("hf.co/org/repo:BF16");
    const url = "https://huggingface.co/org/repo/resolve/main/big/x-BF16";
    expect(size).toBe(50);
    expect(layers.filter(({ kind }) => kind === "model")).toEqual([
      { kind: "model", digest: DIGEST, size: 30, url: `${url}-00001-of-00002.gguf` },
      { kind: "model", digest: "cd".repeat(32), size: 20, url: `${url}-00002-of-00002.gguf` },
    ]);
  });

  it("that mean nothing, or something that cannot be read, fail with advice", async () => {
    await expect(find("hf.co/org/repo:Q2_K")).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining("x-Q8_0"),
    });
    await expect(find("hf.co/org/repo:F32")).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining("x-F32-00002-of-00002.gguf"),
    });
    await expect(find("hf.co/org/repo", hub(401))).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining("token"),
    });
    await expect(find("hf.co/org/repo", hub(500))).rejects.toMatchObject({ code: "network", status: 500 });
  });

  it("are told from other names", () => {
    expect(hubPlace("gemma4:e2b")).toBe(undefined);
    expect(hubPlace("org/repo")).toBe(undefined);
    expect(hubPlace("org/repo", true)).toEqual({ repository: "org/repo", revision: "main" });
    expect(hubPlace("https://example.org/huggingface.co/a/b")).toBe(undefined);
    expect(hubPlace("https://huggingface.co/org/repo/blob/main/x.gguf")).toMatchObject({ file: "x.gguf" });
  });
});

describe("tokens and headers", () => {
  it("go to their own origin alone", async () => {
    const { sent, tuning } = hub();
    await find("hf.co/org/repo", { sent, tuning });
    expect(sent[0]!.headers.get("authorization")).toBe("Bearer t");
    expect(headersFor("https://huggingface.co.evil.org/x", tuning)).toEqual({});
    for (const url of ["https://huggingface.co/x", "https://elsewhere.org/x"]) {
      await requestRange(url, { start: 0, end: 1 }, undefined, tuning, undefined).catch(() => {});
    }
    expect(sent.slice(1).map(({ headers }) => headers.get("authorization"))).toEqual(["Bearer t", null]);
    expect(sent.slice(1).map(({ headers }) => headers.get("range"))).toEqual(["bytes=0-0", "bytes=0-0"]);
  });

  it("are asked for where the server wants a login", async () => {
    const { tuning } = hub(403);
    const refused = requestRange("https://huggingface.co/x", { start: 0 }, undefined, tuning, undefined);
    await expect(refused).rejects.toMatchObject({
      code: "network",
      status: 403,
      message: expect.stringContaining("token"),
    });
  });
});

describe("the catalogue", () => {
  it("names files that its own names find", () => {
    expect(RECOMMENDED.name).toBe("Gemma 4 E2B");
    for (const model of CATALOGUE) {
      expect(model.size).toBeGreaterThan(1e8);
      expect(hubPlace(sourceOf(model)), model.name).toMatchObject({ repository: model.repository });
    }
    expect(sourceOf(RECOMMENDED)).toBe("hf.co/unsloth/gemma-4-E2B-it-GGUF:Q4_K_M");
  });

  it("has a model of every family", () => {
    const families = ["Gemma 4", "Gemma 3", "FunctionGemma", "Llama 3", "SmolLM2", "Qwen 3", "EmbeddingGemma"];
    for (const family of families)
      expect(
        CATALOGUE.some(({ name }) => name.startsWith(family)),
        family,
      ).toBe(true);
    const tools = CATALOGUE.find(({ name }) => name.startsWith("FunctionGemma"))?.abilities;
    expect(tools).toContain("tools");
  });
});
