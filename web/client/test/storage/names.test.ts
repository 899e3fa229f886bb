// Names, digests and errors as data.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  CancelledError,
  ChecksumError,
  NetworkError,
  NotFoundError,
  QuotaError,
  RullamaError,
  pack,
  unpack,
} from "../../src/errors.js";
import { digestOf, editDistance, layerOf, modelLayers, sameName, similarNames } from "../../src/storage/names.js";

const HEX = "0123456789abcdef".repeat(4);

test("a name without a tag means latest", () => {
  expect(sameName("gemma4", "gemma4:latest")).toBe(true);
  expect(sameName("Gemma4:E2B", "gemma4:e2b")).toBe(true);
  expect(sameName("gemma4", "gemma4:e2b")).toBe(false);
});

test("near misses are found, strangers are not", () => {
  const known = ["gemma4:e2b", "gemma4:e4b", "embeddinggemma:latest", "demo"];
  expect(similarNames("gemma4:e2c", known)).toEqual(["gemma4:e2b", "gemma4:e4b"]);
  expect(similarNames("gemma4", known)).toEqual(["gemma4:e2b", "gemma4:e4b"]);
  expect(similarNames("dmeo", known)).toEqual(["demo"]);
  expect(similarNames("something-else", known)).toEqual([]);
});

test("edit distance is a distance", () => {
  const texts = fc.string({ maxLength: 12 });
  fc.assert(
    fc.property(texts, texts, texts, (a, b, c) => {
      expect(editDistance(a, a)).toBe(0);
      expect(editDistance(a, b)).toBe(editDistance(b, a));
      expect(editDistance(a, c)).toBeLessThanOrEqual(editDistance(a, b) + editDistance(b, c));
      expect(editDistance(a, b)).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
    }),
  );
});

test("digests come in two spellings", () => {
  for (const text of [HEX, `sha256:${HEX}`, `sha256-${HEX}`, HEX.toUpperCase()]) expect(digestOf(text)).toBe(HEX);
  for (const text of ["", "abc", `${HEX}0`, `md5:${HEX}`]) expect(() => digestOf(text)).toThrow(/SHA-256/);
});

test("the model's layer is found among others", () => {
  const layer = { kind: "model", digest: `sha256:${HEX}`, size: 1, url: "/rullama/blobs/x" };
  const projector = { ...layer, kind: "projector", url: "/p" };
  const model = { name: "a", size: 1, layers: [projector, layer] };
  expect(modelLayers(model, "http://h:1")[0]).toEqual({ url: "http://h:1/rullama/blobs/x", sha256: HEX });
  expect(layerOf(model, "projector", "http://h:1")).toEqual({ url: "http://h:1/p", sha256: HEX });
  expect(layerOf(model, "adapter", "http://h:1")).toBeUndefined();
  const plain = { ...model, layers: [{ ...layer, digest: null }] };
  expect(modelLayers(plain, "http://h:1")).toEqual([{ url: "http://h:1/rullama/blobs/x" }]);
  expect(() => modelLayers({ ...model, layers: [projector] }, "http://h:1")).toThrow(/no model file/);
  expect(() => modelLayers({ ...model, error: "a blob is missing" }, "http://h:1")).toThrow(/a blob is missing/);
});

test("errors survive being posted", () => {
  const errors = [
    new NotFoundError("nothing", ["near"]),
    new NetworkError("status", 503),
    new NetworkError("offline"),
    new QuotaError("full", 10, 3),
    new ChecksumError("wrong", "aa", "bb"),
    new CancelledError(),
    new RullamaError("no_ranges", "whole or nothing"),
  ];
  for (const error of errors) {
    const copy = unpack(structuredClone(pack(error)));
    expect(copy.constructor).toBe(error.constructor);
    expect({ ...copy, message: copy.message }).toEqual({ ...error, message: error.message });
  }
  expect(pack(new TypeError("oops"))).toMatchObject({ code: "internal", message: "oops" });
  expect(pack(new DOMException("stop", "AbortError")).code).toBe("cancelled");
});
