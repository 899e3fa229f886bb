import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { codeOf, describe, FAILURES } from "../src/lib/failures.js";

test("every code of the engine has a text and one action", () => {
  const source = readFileSync(new URL("../../client/src/types.ts", import.meta.url), "utf8");
  const list = /type ErrorCode =([^;]+);/u.exec(source)?.[1] ?? "";
  const codes = [...list.matchAll(/"(\w+)"/gu)].map((match) => match[1]);
  expect(codes.length).toBeGreaterThan(10);
  expect(Object.keys(FAILURES).sort()).toEqual(codes.sort());
  for (const { title, text, action } of Object.values(FAILURES)) {
    expect(title).not.toBe("");
    expect(text).toMatch(/\.$/u);
    expect(action.label).not.toBe("");
  }
});

test("codes are read from whatever is thrown", () => {
  const check = (error: unknown, code: string) => expect(codeOf(error)).toBe(code);
  check(Object.assign(new Error("x"), { code: "quota" }), "quota");
  check(Object.assign(new Error("x"), { code: "constructor" }), "internal");
  check(new DOMException("x", "AbortError"), "cancelled");
  check(new DOMException("x", "QuotaExceededError"), "quota");
  check("text", "internal");
  check(undefined, "internal");
});

test("the engine's own words come along", () => {
  expect(describe(new Error("the tensor is missing")).detail).toBe("the tensor is missing");
  expect(describe(null).detail).toBeUndefined();
});
