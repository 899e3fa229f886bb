// The sampling settings: their names and ranges. Absent means the model's own default.

import type { SamplingOptions, DenoisingOptions } from "rullama";

export type DenoisingName = "steps" | "entropyBound" | "blocks";

export type FieldName =
  "temperature" | "topK" | "topP" | "minP" | "repeatPenalty" | "presencePenalty" | "maxTokens" | "seed";

/** A field's range. Its label and help are the messages `option.NAME` and `option.NAME.help`. */
export interface Field<Name extends string = FieldName> {
  name: Name;
  least: number;
  most: number;
  step: number;
  whole: boolean;
}

function field<Name extends string>(name: Name, least: number, most: number, step: number): Field<Name> {
  return { name, least, most, step, whole: step === 1 };
}

export const FIELDS: readonly Field[] = [
  field("temperature", 0, 2, 0.05),
  field("topK", 0, 1000, 1),
  field("topP", 0, 1, 0.01),
  field("minP", 0, 1, 0.01),
  field("repeatPenalty", 0.5, 2, 0.01),
  field("presencePenalty", -2, 2, 0.1),
  field("maxTokens", 1, 131_072, 1),
  field("seed", 0, 4_294_967_295, 1),
];

/** How blocks of a DiffusionGemma are denoised. */
export const DIFFUSION_FIELDS: readonly Field<DenoisingName>[] = [
  field("steps", 1, 256, 1),
  field("entropyBound", 0, 10, 0.01),
  field("blocks", 1, 1024, 1),
];

export type Sampling = Pick<SamplingOptions, FieldName>;

/** A number inside a field's range, or nothing. */
export function within(field: Pick<Field, "least" | "most" | "whole">, value: unknown): number | undefined {
  if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
  const whole = field.whole ? Math.round(value) : value;
  return whole < field.least || whole > field.most ? undefined : whole;
}

/** A context for so many tokens of a prompt and an answer to it: the next power of two with a quarter left. */
export function contextFor(tokens: number): number {
  return Math.min(262_144, 2 ** Math.ceil(Math.log2(Math.max(256, tokens / 0.75))));
}

/** The settings of an unknown value that make sense. */
export const readSampling = (value: unknown): Sampling => readFields(FIELDS, value);
export const readDenoising = (value: unknown): DenoisingOptions => readFields(DIFFUSION_FIELDS, value);

function readFields<Name extends string>(
  fields: readonly Field<Name>[],
  value: unknown,
): Partial<Record<Name, number>> {
  const result: Partial<Record<Name, number>> = {};
  if (typeof value !== "object" || value === null) return result;
  for (const field of fields) {
    const number = within(field, (value as Record<string, unknown>)[field.name]);
    if (number !== undefined) result[field.name] = number;
  }
  return result;
}
