// The sampling settings: their names, ranges and what they do. Absent means the model's own default.

import type { SamplingOptions, SettleOptions } from "rullama";

export type SettleName = "steps" | "entropyBound" | "blocks";

export type FieldName =
  "temperature" | "topK" | "topP" | "minP" | "repeatPenalty" | "presencePenalty" | "maxTokens" | "seed";

export interface Field<Name extends string = FieldName> {
  name: Name;
  label: string;
  help: string;
  least: number;
  most: number;
  step: number;
  whole: boolean;
}

function field<Name extends string>(
  name: Name,
  label: string,
  help: string,
  range: [number, number, number],
): Field<Name> {
  const [least, most, step] = range;
  return { name, label, help, least, most, step, whole: step === 1 };
}

export const FIELDS: readonly Field[] = [
  field("temperature", "Temperature", "0 always takes the likeliest word; higher is more surprising.", [0, 2, 0.05]),
  field("topK", "Top K", "Chooses among so many words at most; 0 is no limit.", [0, 1000, 1]),
  field("topP", "Top P", "Chooses among the likeliest words that make up this share.", [0, 1, 0.01]),
  field("minP", "Min P", "Leaves out words less likely than this share of the likeliest.", [0, 1, 0.01]),
  field("repeatPenalty", "Repeat penalty", "Above 1 discourages words that were just used.", [0.5, 2, 0.01]),
  field("presencePenalty", "Presence penalty", "Above 0 favours new subjects.", [-2, 2, 0.1]),
  field("maxTokens", "Longest answer", "In tokens; empty is no limit but the context's.", [1, 131_072, 1]),
  field("seed", "Seed", "The same seed gives the same answer; empty is a new one each time.", [0, 4_294_967_295, 1]),
];

/** How blocks of a DiffusionGemma settle. */
export const SETTLE_FIELDS: readonly Field<SettleName>[] = [
  field("steps", "Steps", "A block settles within so many; fewer are faster and worse.", [1, 256, 1]),
  field(
    "entropyBound",
    "Entropy bound",
    "Doubt, in nats, that a step may accept; more is faster and worse.",
    [0, 10, 0.01],
  ),
  field("blocks", "Blocks", "Longest answer in blocks, which have 256 tokens.", [1, 1024, 1]),
];

export type Sampling = Pick<SamplingOptions, FieldName>;

/** A number inside a field's range, or nothing. */
export function within(field: Pick<Field, "least" | "most" | "whole">, value: unknown): number | undefined {
  if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
  const whole = field.whole ? Math.round(value) : value;
  return whole < field.least || whole > field.most ? undefined : whole;
}

/** The settings of an unknown value that make sense. */
export const readSampling = (value: unknown): Sampling => readFields(FIELDS, value);
export const readSettle = (value: unknown): SettleOptions => readFields(SETTLE_FIELDS, value);

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
