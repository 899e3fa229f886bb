// Every error of the package has words in every language: what happened, what to do, and a button; chosen by its code and fields.
import { afterEach, describe as group, expect, test, vi } from "vitest";
import { ERROR_CODES } from "../../client/src/types/error-codes.js";
import {
  BadAdapterError,
  BadDataError,
  NetworkError,
  NotFoundError,
  NoWebGpuError,
  QuotaError,
  RullamaError,
  pack,
  unpack,
} from "../../client/src/errors.js";
import {
  ACTIONS,
  adviceOf,
  codeOf,
  describe,
  describeTraining,
  labelOf,
  noWebGpu,
  storageProblem,
  textOf,
  titleOf,
  trainingNeedsGpu,
  type Failure,
} from "../src/lib/failures.js";
import { LANGUAGES, speak, type Language } from "../src/text/index.svelte.js";

const DETAIL = "technical words in English";
/** The fields that each class of error has. */
const FIELDS = [
  new NoWebGpuError(DETAIL, "insecure"),
  new NoWebGpuError(DETAIL, "unsupported"),
  new NoWebGpuError(DETAIL, "no_adapter"),
  new NotFoundError(DETAIL, ["gemma4:e2b", "gemma4:e4b"]),
  new NetworkError(DETAIL, 401),
  new NetworkError(DETAIL, 429),
  new NetworkError(DETAIL, 503),
  new NetworkError(DETAIL, 418),
  new QuotaError(DETAIL, 3e9, 1e9),
  new BadAdapterError(DETAIL, ["a tensor", "another tensor"]),
  new BadDataError(DETAIL, 7),
];
/** As they arrive from the worker. */
const arrived = (error: RullamaError) => unpack(pack(error));

const SENTENCE = /[.!?。！？؟]$/u;
const SCRIPT: Partial<Record<Language, RegExp>> = { ja: /[\p{sc=Hira}\p{sc=Kana}\p{sc=Han}]/u, ar: /\p{sc=Arab}/u };
const languages = Object.keys(LANGUAGES) as Language[];

async function inLanguage(language: Language): Promise<void> {
  vi.stubGlobal("document", { documentElement: {} });
  await speak(language);
}

afterEach(async () => {
  await inLanguage("en");
  vi.unstubAllGlobals();
});

function check(failure: Failure, language: Language): void {
  const { code } = failure;
  for (const words of [textOf(failure), adviceOf(failure)]) {
    expect(words, code).toMatch(SENTENCE);
    expect(words, code).not.toContain("{");
    expect(words, code).not.toContain(DETAIL);
    expect(words, code).toMatch(SCRIPT[language] ?? /\p{L}/u);
  }
  expect(adviceOf(failure), code).not.toBe(textOf(failure));
  for (const words of [titleOf(failure), labelOf(failure)]) {
    expect(words, code).toMatch(SCRIPT[language] ?? /\p{L}/u);
    expect(words, code).not.toMatch(SENTENCE);
  }
  expect(failure.detail).toBe(DETAIL);
  expect(ACTIONS[code]).toBe(failure.action);
}

test("the codes are those that the package exports", () => {
  expect(Object.keys(ACTIONS).sort()).toEqual([...ERROR_CODES].sort());
  expect(ERROR_CODES.length).toBeGreaterThan(20);
});

group.each(languages)("in the language %s", (language) => {
  test("every error code says what happened and what to do", async () => {
    await inLanguage(language);
    for (const code of ERROR_CODES) check(describe(arrived(new RullamaError(code, DETAIL))), language);
  });

  test("fields of errors say more than their codes", async () => {
    await inLanguage(language);
    const general = (code: Failure["code"]) => ({ text: textOf({ code }), advice: adviceOf({ code }) });
    const told = FIELDS.map((error) => {
      const failure = describe(arrived(error));
      check(failure, language);
      const words = { text: textOf(failure), advice: adviceOf(failure) };
      expect(words, failure.code).not.toEqual(general(failure.code));
      return `${words.text} ${words.advice}`;
    });
    expect(new Set(told).size).toBe(FIELDS.length);
    const all = told.join(" ");
    for (const value of ["gemma4:e2b", "401", "503"]) expect(all).toContain(value);
  });

  test("a training without WebGPU says that it does not run on the CPU", async () => {
    await inLanguage(language);
    const failure = trainingNeedsGpu({ reason: DETAIL, why: "no_adapter" });
    check(failure, language);
    expect(textOf(failure)).not.toBe(textOf({ code: "no_webgpu" }));
    expect(adviceOf(failure)).toBe(adviceOf(noWebGpu({ reason: DETAIL, why: "no_adapter" })));
  });

  test("a training that is too large says what makes it smaller", async () => {
    await inLanguage(language);
    const failure = describeTraining(new RullamaError("does_not_fit", DETAIL));
    check(failure, language);
    expect(adviceOf(failure)).not.toBe(adviceOf({ code: "does_not_fit" }));
    expect(titleOf(failure)).not.toBe(titleOf({ code: "does_not_fit" }));
    expect(textOf(describeTraining(new RullamaError("diverged", DETAIL)))).toBe(textOf({ code: "diverged" }));
  });
});

test("sizes, names and counts of fields are shown", () => {
  const words = (error: RullamaError) => `${textOf(describe(error))} ${adviceOf(describe(error))}`;
  expect(words(new QuotaError("x", 3e9, 1e9))).toMatch(/3\.0.GB.*1\.0.GB/u);
  expect(words(new NotFoundError("x", ["a:1", "b:2"]))).toContain("Did you mean a:1 or b:2?");
  expect(words(new BadDataError("x", 7))).toContain("Line 7");
  expect(words(new BadAdapterError("x", ["one"]))).toContain("1 of its tensors does not fit");
  // Fields that are no numbers say nothing.
  expect(textOf(describe(new QuotaError("x", NaN, NaN)))).toBe(textOf({ code: "quota" }));
});

test("a device without a connection is told so", () => {
  vi.stubGlobal("navigator", { onLine: false });
  expect(textOf(describe(new NetworkError("x")))).toContain("offline");
  expect(textOf(describe(new NetworkError("x", 503)))).toContain("503");
});

test("a page without WebGPU is told why", () => {
  const failure = noWebGpu({ reason: "x", why: "insecure" });
  expect(adviceOf(failure)).toContain("https://");
  expect(failure.detail).toBe("x");
  expect(adviceOf(noWebGpu())).toBe(adviceOf({ code: "no_webgpu" }));
});

test("what a page itself knows comes before the code's words", () => {
  const code = "context_full";
  expect(labelOf({ code, label: "Other" })).toBe("Other");
  expect(textOf({ code, text: "Other." })).toBe("Other.");
  expect(adviceOf({ code, advice: "Other." })).toBe("Other.");
});

test("codes are read from whatever is thrown", () => {
  const is = (error: unknown, code: string) => expect(codeOf(error)).toBe(code);
  is(Object.assign(new Error("x"), { code: "quota" }), "quota");
  is(Object.assign(new Error("x"), { code: "constructor" }), "internal");
  is(new DOMException("x", "AbortError"), "cancelled");
  is(new DOMException("x", "QuotaExceededError"), "quota");
  is("text", "internal");
  is(undefined, "internal");
});

test("what cannot be stored has a reason in the app's language", () => {
  expect(storageProblem(new DOMException("x", "QuotaExceededError"))).toBe("browser storage is full");
  expect(storageProblem(new Error("x"))).toBe("browser storage is not working");
});

test("the engine's own words come along", () => {
  expect(describe(new Error("the tensor is missing")).detail).toBe("the tensor is missing");
  expect(describe(null).detail).toBeUndefined();
});
