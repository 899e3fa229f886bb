import { expect, test } from "vitest";
import { composing } from "../src/lib/keys.js";

test("Enter of an input method is not Enter, also where only the old code says so", () => {
  expect(composing({ isComposing: true, keyCode: 13 })).toBe(true);
  expect(composing({ isComposing: false, keyCode: 229 })).toBe(true);
  expect(composing({ isComposing: false, keyCode: 13 })).toBe(false);
});
