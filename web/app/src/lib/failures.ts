// What went wrong, for a person: what happened, and the one thing to do about it.

import type { ErrorCode } from "rullama";
import { t } from "../text/index.svelte.js";

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
  /** The engine's own words, where they say more. */
  detail?: string;
  action: Action;
  /** What the button says, where that is not the code's own label. */
  label?: string;
  /** What it means, where that is not the code's own text. */
  text?: string;
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

/** The title of a failure, its explanation, and what its button says. */
export const titleOf = ({ code }: Pick<Failure, "code">): string => t(`failure.${code}.title`);
export const textOf = ({ code, text }: Pick<Failure, "code" | "text">): string => text ?? t(`failure.${code}.text`);
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
  return failureOf(codeOf(error), detail);
}

/** A failure by its code. */
export function failureOf(code: ErrorCode, detail?: string): Failure {
  return { code, action: ACTIONS[code], ...(detail ? { detail } : {}) };
}
