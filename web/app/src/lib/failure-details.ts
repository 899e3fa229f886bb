// What the fields of an error tell beyond its code.

import type { ErrorCode, WebGpuAbsence } from "rullama";
import { listed, t } from "../text/index.svelte.js";
import { bytes } from "./format.js";

/** Fields of the package's errors, as far as there are words for them. */
export interface Details {
  /** Of `no_webgpu`. */
  why?: WebGpuAbsence;
  /** Names that come close to one that was not found. */
  similar?: string[];
  /** A server's answer, and whether this device is offline. */
  status?: number;
  offline?: boolean;
  /** Bytes that are missing in the browser's storage, and those that it has left. */
  needed?: number;
  free?: number;
  /** What of an adapter does not fit. */
  misfits?: string[];
  /** The line of training data that cannot be used. */
  line?: number;
  /** Not a model but a training is too large or needs a GPU. */
  training?: boolean;
}

const ABSENCES: readonly unknown[] = ["insecure", "unsupported", "no_adapter"] satisfies WebGpuAbsence[];
const isAbsence = (value: unknown): value is WebGpuAbsence => ABSENCES.includes(value);
const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];

/** The fields of anything that was thrown. */
export function detailsOf(error: unknown): Details {
  if (typeof error !== "object" || error === null) return {};
  const { why, status, needed, free, line, similar, misfits } = error as Record<string, unknown>;
  const [names, parts] = [texts(similar), texts(misfits)];
  return {
    ...(isAbsence(why) ? { why } : {}),
    ...(isNumber(status) ? { status } : {}),
    ...(isNumber(needed) ? { needed } : {}),
    ...(isNumber(free) ? { free } : {}),
    ...(isNumber(line) ? { line } : {}),
    ...(names.length > 0 ? { similar: names } : {}),
    ...(parts.length > 0 ? { misfits: parts } : {}),
  };
}

interface Said {
  title?: string;
  text?: string;
  advice?: string;
}

function network({ offline, status }: Details): Said {
  if (offline) return { text: t("failure.network.offline"), advice: t("failure.network.offlineAdvice") };
  if (status === undefined || status < 400) return {};
  // A status is a name, not an amount.
  const values = { status: String(status) };
  const say = (which: "refused" | "busy" | "broken" | "answered") => ({
    text: t(`failure.network.${which}`, values),
    advice: t(`failure.network.${which}Advice`),
  });
  if (status === 401 || status === 403) return say("refused");
  if (status === 429) return say("busy");
  return say(status >= 500 ? "broken" : "answered");
}

const SAYS: { [Code in ErrorCode]?: (details: Details) => Said } = {
  no_webgpu: ({ why, training }) => ({
    ...(training ? { text: t("failure.no_webgpu.training") } : {}),
    ...(why ? { advice: t(`failure.no_webgpu.${why}`) } : {}),
  }),
  not_found: ({ similar }) =>
    similar ? { advice: t("failure.not_found.similar", { names: listed(similar, "disjunction") }) } : {},
  network,
  quota: ({ needed, free }) =>
    needed !== undefined && free !== undefined
      ? { text: t("failure.quota.space", { needed: bytes(needed), free: bytes(free) }) }
      : {},
  bad_adapter: ({ misfits }) => (misfits ? { text: t("failure.bad_adapter.misfits", { count: misfits.length }) } : {}),
  bad_data: ({ line }) => (line === undefined ? {} : { text: t("failure.bad_data.line", { line }) }),
  does_not_fit: ({ training }) =>
    training
      ? {
          title: t("failure.does_not_fit.trainingTitle"),
          text: t("failure.does_not_fit.training"),
          advice: t("failure.does_not_fit.trainingAdvice"),
        }
      : {},
};

/** What a failure means and what to do about it, where its fields say more than its code. */
export const wordsFor = (code: ErrorCode, details: Details = {}): Said => SAYS[code]?.(details) ?? {};
