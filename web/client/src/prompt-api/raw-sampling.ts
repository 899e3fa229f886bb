// Sampling parameters as numbers, which browsers offer to extensions alone: `LanguageModel.params()`, `topK` and `temperature`.

import { asInterface } from "./interface.js";

/** Gemma's own defaults. */
export const PARAMS = { defaultTopK: 64, maxTopK: 128, defaultTemperature: 1, maxTemperature: 2 };

/** Only this module makes them. */
const PRIVATE = Symbol("LanguageModelParams");

/** What `LanguageModel.params()` resolves to. */
export class LanguageModelParams {
  readonly #values = PARAMS;

  constructor(key: unknown) {
    if (key !== PRIVATE) throw new TypeError("Illegal constructor");
  }

  get defaultTopK(): number {
    return this.#values.defaultTopK;
  }

  get maxTopK(): number {
    return this.#values.maxTopK;
  }

  get defaultTemperature(): number {
    return this.#values.defaultTemperature;
  }

  get maxTemperature(): number {
    return this.#values.maxTemperature;
  }
}

asInterface(LanguageModelParams, "LanguageModelParams");

export const params = (): LanguageModelParams => new LanguageModelParams(PRIVATE);

/** The parameters of a session. */
export interface RawSampling {
  topK: number;
  temperature: number;
}

/** Whether this code runs in a page of an extension. */
export function isExtension(): boolean {
  return /^(?:chrome|moz|safari-web)-extension:$/u.test(globalThis.location?.protocol ?? "");
}

/** The parameters that options name; undefined where they name none. */
export function rawSampling(topK: number | undefined, temperature: number | undefined): RawSampling | undefined {
  if (topK === undefined && temperature === undefined) return undefined;
  return { topK: topK ?? PARAMS.defaultTopK, temperature: temperature ?? PARAMS.defaultTemperature };
}

/** Values above the maxima become the maxima. */
export function limited({ topK, temperature }: RawSampling): RawSampling {
  if (topK < 1) throw new RangeError("topK must be at least 1");
  if (temperature < 0) throw new RangeError("temperature must not be negative");
  return {
    topK: Math.min(Math.floor(topK), PARAMS.maxTopK),
    temperature: Math.min(temperature, PARAMS.maxTemperature),
  };
}

/** A finite number, as Web IDL converts it. */
export function numberOf(value: unknown, what: string): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!Number.isFinite(number)) throw new TypeError(`${what} is not a finite number`);
  return number;
}
