import { expect, test } from "vitest";
import { readSampling } from "../src/lib/options.js";
import { fitTogether } from "../src/lib/room.js";
import { parseRoute } from "../src/state/route.svelte.js";
import { defaults, parse } from "../src/state/settings.svelte.js";

test("settings that make no sense are replaced by defaults, one by one", () => {
  expect(parse(null)).toEqual(defaults());
  expect(parse("nonsense")).toEqual(defaults());
  expect(parse("null")).toEqual(defaults());
  const text = JSON.stringify({
    theme: "pink",
    context: -1,
    cache: "q8",
    keep: "yes",
    system: "x",
    sampling: { topK: 5.4, topP: 7 },
  });
  expect(parse(text)).toEqual({ ...defaults(), cache: "q8", system: "x", sampling: { topK: 5 } });
});

test("folders and saved prompts are read one by one", () => {
  const good = { id: "1", name: "n", text: "t" };
  const text = JSON.stringify({
    folders: ["a", "a", "", 7, "x".repeat(101), "b"],
    prompts: [good, { ...good, text: "" }, null, { ...good, name: "y".repeat(300) }],
    diagrams: 1,
  });
  expect(parse(text)).toMatchObject({
    folders: ["a", "b"],
    prompts: [good, { ...good, name: "y".repeat(100) }],
    diagrams: false,
  });
});

test("two models share the GPU where there is room for both", () => {
  expect(fitTogether(4e9, undefined)).toBe(true);
  expect(fitTogether(6e9, 8)).toBe(false);
  expect(fitTogether(1.9e9, 4)).toBe(true);
  expect(fitTogether(2.1e9, 4)).toBe(false);
});

test("the last model is remembered whole or not at all", () => {
  const last = (value: unknown) => parse(JSON.stringify({ lastModel: value })).lastModel;
  expect(last({ source: "gemma4:e2b", name: "gemma4:e2b", more: 1 })).toEqual({
    source: "gemma4:e2b",
    name: "gemma4:e2b",
  });
  expect(last("gemma4:e2b")).toBeUndefined();
  expect(last(null)).toBeUndefined();
});

test("sampling settings stay in their ranges", () => {
  expect(readSampling({ temperature: 0, minP: 0.1, seed: 4_294_967_296, maxTokens: Number.NaN, other: 1 })).toEqual({
    temperature: 0,
    minP: 0.1,
  });
  expect(readSampling("x")).toEqual({});
});

test("addresses name pages and conversations", () => {
  expect(parseRoute("#/models")).toEqual({ page: "models" });
  expect(parseRoute("#/chat/a%20b")).toEqual({ page: "chat", id: "a b" });
  expect(parseRoute("#/nowhere/x")).toEqual({ page: "chat", id: "x" });
  expect(parseRoute("")).toEqual({ page: "chat" });
});

test("presets are read one by one, and only whole ones", () => {
  const preset = { id: "a", name: "French", system: "Answer in French.", sampling: { topK: 5, topP: 9 }, think: 1 };
  const text = JSON.stringify({ presets: [preset, { name: "x" }, null, "y"], language: "xx", titles: true });
  const read = parse(text);
  expect(read.presets).toEqual([{ ...preset, sampling: { topK: 5 }, think: false }]);
  expect([read.language, read.titles]).toEqual(["system", true]);
});

test("the image budget of version 0.6, stored under its old name, is read", () => {
  expect(parse('{"pictures":560}').images).toBe(560);
  expect(parse('{"images":70,"pictures":560}').images).toBe(70);
  expect(parse('{"images":71}').images).toBe(defaults().images);
});
