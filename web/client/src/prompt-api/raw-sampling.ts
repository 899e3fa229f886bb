// Sampling parameters as numbers, which browsers offer to extensions alone: `LanguageModel.params()`, `topK` and `temperature`.

/** What `LanguageModel.params()` resolves to. */
export interface LanguageModelParams {
  readonly defaultTopK: number;
  readonly maxTopK: number;
  readonly defaultTemperature: number;
  readonly maxTemperature: number;
}

/** Gemma's own defaults. */
export const PARAMS: LanguageModelParams = {
  defaultTopK: 64,
  maxTopK: 128,
  defaultTemperature: 1,
  maxTemperature: 2,
};

/** The parameters of a session. */
export interface RawSampling {
  topK: number;
  temperature: number;
}

/** Whether this code runs in a page of an extension. */
export function isExtension(): boolean {
  return /^(?:chrome|moz|safari-web)-extension:$/u.test(globalThis.location?.protocol ?? "");
}

/** The parameters that options name; undefined where they name none. Values above the maxima become the maxima. */
export function rawSampling(from: Record<string, unknown>): RawSampling | undefined {
  const topK = numberOf(from["topK"], "topK");
  const temperature = numberOf(from["temperature"], "temperature");
  if (topK === undefined && temperature === undefined) return undefined;
  if (from["samplingMode"] !== undefined) throw new TypeError("samplingMode excludes topK and temperature");
  if (topK !== undefined && topK < 1) throw new RangeError("topK must be at least 1");
  if (temperature !== undefined && temperature < 0) throw new RangeError("temperature must not be negative");
  return {
    topK: Math.min(Math.floor(topK ?? PARAMS.defaultTopK), PARAMS.maxTopK),
    temperature: Math.min(temperature ?? PARAMS.defaultTemperature, PARAMS.maxTemperature),
  };
}

function numberOf(value: unknown, what: string): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!Number.isFinite(number)) throw new TypeError(`${what} is not a finite number`);
  return number;
}
