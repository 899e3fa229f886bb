// What went wrong, for a person: what happened, and the one thing to do about it.

import type { DeviceReport, ErrorCode } from "rullama";
import { t } from "../text/index.svelte.js";
import { detailsOf, wordsFor, type Details } from "./failure-details.js";

/** What a failure's button does. Pages carry these out; see `state/actions.ts`. */
export type Action =
  | "choose_model"
  | "reload_model"
  | "try_again"
  | "answer_without_oldest"
  | "answer_without_media"
  | "enlarge_context"
  | "edit_message"
  | "open_device"
  | "open_settings"
  | "open_storage"
  | "open_training"
  | "reload_page";

export interface Failure {
  code: ErrorCode;
  /** What the error's fields say. */
  details?: Details;
  /** The package's own words: English, for those who look closer. */
  detail?: string;
  action: Action;
  /** What the button says, where that is not the code's own label. */
  label?: string;
  /** What it means and what to do, where that is not what the code and the fields say. */
  text?: string;
  advice?: string;
}

/** What helps against each code the engine knows; the compiler and a test hold this to be complete. Titles and texts are messages. */
export const ACTIONS: Record<ErrorCode, Action> = {
  no_webgpu: "open_device",
  device_lost: "reload_model",
  interrupted: "reload_model",
  out_of_memory: "open_settings",
  does_not_fit: "choose_model",
  not_found: "choose_model",
  network: "try_again",
  no_ranges: "choose_model",
  file_changed: "try_again",
  checksum: "try_again",
  unverified: "open_storage",
  quota: "open_storage",
  storage: "open_storage",
  bad_file: "choose_model",
  unsupported_model: "choose_model",
  projector: "choose_model",
  context_full: "answer_without_oldest",
  bad_options: "open_settings",
  bad_media: "answer_without_media",
  bad_adapter: "open_training",
  bad_data: "open_training",
  bad_checkpoint: "open_training",
  diverged: "open_training",
  cancelled: "try_again",
  freed: "reload_model",
  internal: "reload_page",
};

type Told = Pick<Failure, "code" | "details" | "text" | "advice">;

/** The title of a failure, what it means, what to do about it, and what its button says. */
export const titleOf = ({ code, details }: Pick<Failure, "code" | "details">): string =>
  wordsFor(code, details).title ?? t(`failure.${code}.title`);
export const textOf = ({ code, details, text }: Told): string =>
  text ?? wordsFor(code, details).text ?? t(`failure.${code}.text`);
export const adviceOf = ({ code, details, advice }: Told): string =>
  advice ?? wordsFor(code, details).advice ?? t(`failure.${code}.advice`);
export const labelOf = ({ code, label }: Pick<Failure, "code" | "label">): string =>
  label ?? t(`failure.${code}.action`);

function isCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(ACTIONS, value);
}

/** The code of anything that was thrown. */
export function codeOf(error: unknown): ErrorCode {
  if (typeof error === "object" && error !== null) {
    if ("code" in error && isCode(error.code)) return error.code;
    if ("name" in error && error.name === "AbortError") return "cancelled";
    if ("name" in error && error.name === "QuotaExceededError") return "quota";
  }
  return "internal";
}

/** Code, words and action for anything that was thrown. */
export function describe(error: unknown): Failure {
  const detail = error instanceof Error ? error.message : typeof error === "string" ? error : undefined;
  const failure = failureOf(codeOf(error), detail);
  const details = detailsOf(error);
  if (failure.code === "network" && !details.status && globalThis.navigator?.onLine === false) details.offline = true;
  return { ...failure, details };
}

/** A failure by its code. */
export function failureOf(code: ErrorCode, detail?: string): Failure {
  return { code, action: ACTIONS[code], ...(detail ? { detail } : {}) };
}

/** What a device without WebGPU says. */
export function noWebGpu(report?: Pick<DeviceReport, "reason" | "why">): Failure {
  return { ...failureOf("no_webgpu", report?.reason), details: detailsOf(report) };
}

/** What a device without WebGPU says of training. */
export function trainingNeedsGpu(report?: Pick<DeviceReport, "reason" | "why">): Failure {
  const failure = noWebGpu(report);
  return { ...failure, details: { ...failure.details, training: true } };
}

/** A failure of a training, where neither another model nor the CPU helps. */
export function describeTraining(error: unknown): Failure {
  const failure = describe(error);
  return { ...failure, details: { ...failure.details, training: true } };
}

/** Why something could not be stored. */
export const storageProblem = (error: unknown): string => t(codeOf(error) === "quota" ? "save.full" : "save.storage");
