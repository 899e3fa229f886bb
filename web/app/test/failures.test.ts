import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ACTIONS, codeOf, describe, labelOf, textOf, titleOf } from "../src/lib/failures.js";
import { en } from "../src/text/en/index.js";

test("every code of the engine has a text and one action", () => {
  const source = readFileSync(new URL("../../client/src/types/error-codes.ts", import.meta.url), "utf8");
  const list = /type ErrorCode =([^;]+);/u.exec(source)?.[1] ?? "";
  const codes = [...list.matchAll(/"(\w+)"/gu)].map((match) => match[1]);
  expect(codes.length).toBeGreaterThan(10);
  expect(Object.keys(ACTIONS).sort()).toEqual(codes.sort());
  for (const code of Object.keys(ACTIONS) as (keyof typeof ACTIONS)[]) {
    expect(titleOf({ code })).toBe(en[`failure.${code}.title`]);
    expect(textOf({ code })).toMatch(/\.$/u);
    expect(labelOf({ code })).not.toBe("");
    expect(labelOf({ code, label: "Other" })).toBe("Other");
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
