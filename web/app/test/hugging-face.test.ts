import { afterEach, expect, test, vi } from "vitest";
import { addressOf, filesOf, isLaterPart, isProjector, placeOf } from "../src/lib/hugging-face.js";
import { FIRST, KNOWN } from "../src/lib/known-models.js";

afterEach(() => vi.unstubAllGlobals());

test("names, pages and files of Hugging Face are understood", () => {
  const repository = "unsloth/gemma-4-E2B-it-GGUF";
  const plain = { repository, revision: "main" };
  for (const text of [repository, `hf.co/${repository}`, `https://huggingface.co/${repository}/`, ` ${repository} `]) {
    expect(placeOf(text), text).toEqual(plain);
  }
  expect(placeOf(`hf.co/${repository}:Q4_K_M`)).toEqual({ ...plain, quant: "Q4_K_M" });
  expect(placeOf(`https://huggingface.co/${repository}/tree/v2`)).toEqual({ repository, revision: "v2" });
  expect(placeOf(`https://huggingface.co/${repository}/blob/main/a%20b/x.gguf?download=true`)).toEqual({
    ...plain,
    file: "a b/x.gguf",
  });
  expect(addressOf(plain, "a b/x.gguf")).toBe(`https://huggingface.co/${repository}/resolve/main/a%20b/x.gguf`);
});

test("what is none of these is left alone", () => {
  for (const text of [
    "https://example.org/a/b.gguf",
    "model.gguf",
    "",
    "../../etc",
    "ftp://x/y",
    "https://huggingface.co/org/repo/settings",
    "org/re po",
    "gemma4:e2b",
  ]) {
    expect(placeOf(text), text).toBeUndefined();
  }
});

test("the files of a repository are checked, and the wanted ones come first", async () => {
  const asked: string[] = [];
  const rows = [
    { type: "file", path: "x-Q8_0.gguf", size: 9 },
    { type: "file", path: "x-Q4_K_M.gguf", size: 5 },
    { type: "file", path: "README.md", size: 1 },
    { type: "directory", path: "y.gguf" },
    { type: "file", path: 7, size: 1 },
    null,
  ];
  vi.stubGlobal("fetch", async (address: string) => {
    asked.push(address);
    return new Response(JSON.stringify(rows));
  });
  const place = { repository: "org/repo", revision: "main" };
  expect((await filesOf(place)).map(({ path }) => path)).toEqual(["x-Q4_K_M.gguf", "x-Q8_0.gguf"]);
  expect((await filesOf({ ...place, quant: "q8_0" }))[0]?.path).toBe("x-Q8_0.gguf");
  expect(asked[0]).toBe("https://huggingface.co/api/models/org/repo/tree/main?recursive=true");
  vi.stubGlobal("fetch", async () => new Response("no", { status: 404 }));
  await expect(filesOf(place)).rejects.toThrow("404");
  vi.stubGlobal("fetch", async () => new Response("{}"));
  await expect(filesOf(place)).rejects.toThrow("list");
  expect([isProjector("a/mmproj-F16.gguf"), isProjector("x.gguf")]).toEqual([true, false]);
  expect([isLaterPart("x-00001-of-00002.gguf"), isLaterPart("x-00002-of-00002.gguf")]).toEqual([false, true]);
});

test("the catalogue names files that can be addressed", () => {
  expect(KNOWN).toContain(FIRST);
  for (const { repository, file, size, memory } of KNOWN) {
    expect(placeOf(addressOf({ repository, revision: "main" }, file))).toMatchObject({ repository, file });
    expect(size).toBeGreaterThan(1e8);
    expect(memory).toBeGreaterThan(1e8);
  }
});
