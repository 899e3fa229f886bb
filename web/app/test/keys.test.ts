import { afterEach, expect, test, vi } from "vitest";
import { composing, sends } from "../src/lib/keys.js";

afterEach(() => vi.unstubAllGlobals());

test("Enter of an input method is not Enter, also where only the old code says so", () => {
  expect(composing({ isComposing: true, keyCode: 13 })).toBe(true);
  expect(composing({ isComposing: false, keyCode: 229 })).toBe(true);
  expect(composing({ isComposing: false, keyCode: 13 })).toBe(false);
});

test("Enter sends on keyboards with a Shift key, and Ctrl+Enter everywhere", () => {
  const event = (more: object) =>
    ({ key: "Enter", shiftKey: false, ctrlKey: false, metaKey: false, keyCode: 13, ...more }) as KeyboardEvent;
  for (const coarse of [false, true]) {
    vi.stubGlobal("matchMedia", () => ({ matches: coarse }));
    expect(sends(event({}))).toBe(!coarse);
    expect(sends(event({ shiftKey: true }))).toBe(false);
    expect(sends(event({ ctrlKey: true }))).toBe(true);
    expect(sends(event({ keyCode: 229 }))).toBe(false);
    expect(sends(event({ key: "a", ctrlKey: true }))).toBe(false);
  }
});
