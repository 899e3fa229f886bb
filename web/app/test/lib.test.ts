// Small pieces that pages are made of.
import { expect, test } from "vitest";
import { isIos } from "../src/lib/platform.js";
import { contextFor } from "../src/lib/options.js";
import { Sentences } from "../src/lib/sentences.js";
import { ticks } from "../src/lib/ticks.js";
import { cleanTitle } from "../src/state/titles.js";

test("axes have round numbers", () => {
  expect(ticks(2.58 * 4)).toEqual([0, 5, 10, 15]);
  expect(ticks(3.2)).toEqual([0, 1, 2, 3, 4]);
  expect(ticks(0.9)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(ticks(1)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(ticks(0.001)).toEqual([0, 0.0002, 0.0004, 0.0006, 0.0008, 0.001]);
});

test("a context is large enough for a prompt and an answer", () => {
  expect(contextFor(6000)).toBe(8192);
  expect(contextFor(7000)).toBe(16_384);
  expect(contextFor(1)).toBe(256);
  expect(contextFor(1e9)).toBe(262_144);
});

test("a growing answer is said sentence by sentence, each once", () => {
  const said: string[] = [];
  const sentences = new Sentences((text) => said.push(text));
  sentences.push("It is");
  expect(said).toEqual([]);
  sentences.push("It is a whale. It sw");
  sentences.push("It is a whale. It swims. In the");
  expect(said).toEqual(["It is a whale.", "It swims."]);
  expect(sentences.end("It is a whale. It swims. In the sea")).toBe(3);
  expect(said.at(-1)).toBe("In the sea");
  expect(new Sentences(() => {}).end("")).toBe(0);
});

test("titles that models write are cleaned", () => {
  expect(cleanTitle('**Title: "Whales and the Sea."**\nMore')).toBe("Whales and the Sea");
  expect(cleanTitle("„Wale“")).toBe("Wale");
  expect(cleanTitle("")).toBe("");
  expect(cleanTitle("x".repeat(200))).toHaveLength(80);
});

test("iPads are told from Macs", () => {
  expect(isIos("Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X)", 5)).toBe(true);
  expect(isIos("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)", 5)).toBe(true);
  expect(isIos("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)", 0)).toBe(false);
  expect(isIos("Mozilla/5.0 (Linux; Android 16)", 5)).toBe(false);
});
