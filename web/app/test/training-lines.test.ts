// Problems of training data and settings are told in the language of the app, whatever sentence the engine has for them.
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { lineProblem, settingsProblem } from "../src/lib/training-lines.js";
import { speak } from "../src/text/index.svelte.js";

const SOURCE = readFileSync(new URL("../../../crates/train/src/error.rs", import.meta.url), "utf8");

/** The sentence of an error of the engine, with its fields filled in as they may be. */
function sentence(name: string, fields: Record<string, string>): string {
  const pattern = new RegExp(`#\\[error\\(\\s*"((?:[^"\\\\]|\\\\.)*)"\\s*\\)\\]\\s*${name}\\b`, "u");
  const [, text] = pattern.exec(SOURCE) ?? [];
  if (text === undefined) throw new Error(`the engine has no error ${name}`);
  return text.replaceAll('\\"', '"').replace(/\{(\w+)(:\?)?\}/gu, (_, field: string, quoted?: string) => {
    const value = fields[field] ?? "1";
    return quoted ? JSON.stringify(value) : value;
  });
}

beforeEach(() => void vi.stubGlobal("document", { documentElement: {} }));

afterEach(async () => {
  await speak("en");
  vi.unstubAllGlobals();
});

test("lines that are no JSON are explained without the parser's own words", () => {
  expect(lineProblem("expected value at line 1 column 1")).toEqual({
    text: "This is not valid JSON (near character 1).",
  });
});

test("every sentence of the engine about a line has one of the app", () => {
  const fields = { field: "prompt", wanted: "a string", id: "300000", count: "262144" };
  const [, own = ""] = /pub enum LineError \{([^]*?)\n\}/u.exec(SOURCE) ?? [];
  const variants = [...own.matchAll(/^ {4}([A-Z]\w+)\b/gmu)].map(([, name = ""]) => name);
  // Those that pass on the words of others.
  const names = variants.filter((name) => !["Json", "Runtime"].includes(name));
  const told = names.map((name) => lineProblem(sentence(name, fields)));
  expect(told).toEqual([
    { text: "It needs `messages`, `prompt` with `completion`, `text`, or `ids`." },
    { text: "`prompt` is missing or has the wrong type." },
    { text: "The conversation has no assistant message to train on." },
    { text: "It has no text to train on." },
    { text: "Token 300000 is not in the model's vocabulary." },
  ]);
});

test("settings that cannot be trained with are explained, with sizes as the language writes them", async () => {
  await speak("de");
  const { text } = settingsProblem(sentence("DoesNotFit", { need: "9000000000", model: "4", budget: "8000000000" }));
  expect(text).toMatch(/9,0\sGB GPU-Speicher.*8,0\sGB/u);
  const split = sentence("Split", { split: "0.9", examples: "1" });
  expect(settingsProblem(split).text).toContain("Validierungsmenge");
  expect(settingsProblem(sentence("NoTargets", {})).detail).toBeUndefined();
});

test("what is not known keeps the engine's sentence as a detail", () => {
  const message = "a message has the role `other`";
  expect(lineProblem(message)).toEqual({ text: expect.stringMatching(/\.$/u) as string, detail: message });
  expect(settingsProblem(message)).toEqual({ text: expect.stringMatching(/\.$/u) as string, detail: message });
});
