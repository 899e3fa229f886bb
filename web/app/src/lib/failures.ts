// What went wrong, for a person: what happened, and the one thing to do about it.

import type { ErrorCode } from "rullama";

/** What a failure's button does. Pages carry these out; see `state/actions.ts`. */
export type Action =
  | { do: "choose_model"; label: string }
  | { do: "reload_model"; label: string }
  | { do: "try_again"; label: string }
  | { do: "answer_without_oldest"; label: string }
  | { do: "open_device"; label: string }
  | { do: "open_settings"; label: string }
  | { do: "open_storage"; label: string }
  | { do: "open_training"; label: string }
  | { do: "reload_page"; label: string };

export interface Failure {
  code: ErrorCode;
  title: string;
  /** What it means. */
  text: string;
  /** The engine's own words, where they say more. */
  detail?: string;
  action: Action;
}

type Entry = Omit<Failure, "code" | "detail">;

/** Every code the engine knows; the compiler and a test hold this to be complete. */
export const FAILURES: Record<ErrorCode, Entry> = {
  no_webgpu: {
    title: "This browser offers no WebGPU",
    text: "Models run on the GPU through WebGPU. A current Chrome, Edge, Safari or Firefox on a machine with a GPU has it; it may be turned off in the browser's settings.",
    action: { do: "open_device", label: "Check this device" },
  },
  device_lost: {
    title: "The GPU stopped working",
    text: "The browser lost its connection to the GPU, as happens when a driver restarts, the machine sleeps, or memory runs out. What was said so far is kept.",
    action: { do: "reload_model", label: "Reload the model and go on" },
  },
  out_of_memory: {
    title: "The GPU has no room left",
    text: "Other tabs and programs may hold GPU memory. A smaller context or a smaller model needs less.",
    action: { do: "open_settings", label: "Lower the context" },
  },
  does_not_fit: {
    title: "This model is too large for this GPU",
    text: "It needs more memory than the GPU offers, so nothing was loaded.",
    action: { do: "choose_model", label: "Choose a smaller model" },
  },
  not_found: {
    title: "There is no such model",
    text: "It is neither in this browser's storage nor at the server. It may have been renamed or deleted.",
    action: { do: "choose_model", label: "Choose a model" },
  },
  network: {
    title: "The server cannot be reached",
    text: "The connection failed or was cut. What was downloaded is kept, and the download goes on from there.",
    action: { do: "try_again", label: "Try again" },
  },
  no_ranges: {
    title: "That server cannot send parts of a file",
    text: "Models are read in pieces, which needs a server that answers range requests. Download the file and open it from your disk instead.",
    action: { do: "choose_model", label: "Open a file" },
  },
  file_changed: {
    title: "The file changed while it was read",
    text: "The server or the disk has another version now. What was read of the old one is of no use.",
    action: { do: "try_again", label: "Start again" },
  },
  checksum: {
    title: "The download is damaged",
    text: "Its checksum is wrong, so it was not kept and is not used.",
    action: { do: "try_again", label: "Download again" },
  },
  unverified: {
    title: "The download cannot be checked",
    text: "Its checksum is checked as it is kept, and this browser keeps nothing: the settings say so, this is a private window, or there is no room.",
    action: { do: "open_storage", label: "See what is stored" },
  },
  quota: {
    title: "This browser has no room for the model",
    text: "The browser limits what a page may keep. Delete models that you no longer use, or turn off keeping downloads in the settings.",
    action: { do: "open_storage", label: "Free some space" },
  },
  storage: {
    title: "The browser's storage did not work",
    text: "Another tab may be using the same model, or this is a private window that keeps nothing.",
    action: { do: "open_storage", label: "See what is stored" },
  },
  bad_file: {
    title: "This file cannot be read",
    text: "It is not a GGUF model, or it is damaged.",
    action: { do: "choose_model", label: "Choose another file" },
  },
  unsupported_model: {
    title: "This model is not supported",
    text: "rullama runs models of the Gemma 4 family.",
    action: { do: "choose_model", label: "Choose another model" },
  },
  projector: {
    title: "This file is a part of a model",
    text: "It holds the eyes and ears of a model (a projector). Open the model it belongs to first, then drop this file on the page; or choose both at once.",
    action: { do: "choose_model", label: "Choose its model" },
  },
  context_full: {
    title: "The conversation fills the context",
    text: "Prompt and answer together are longer than the model's context. The oldest messages can be left out; they stay in the conversation, but the model does not see them.",
    action: { do: "answer_without_oldest", label: "Answer without the oldest messages" },
  },
  bad_options: {
    title: "A setting is not possible",
    text: "The engine refused one of the settings.",
    action: { do: "open_settings", label: "Open the settings" },
  },
  bad_media: {
    title: "A picture, sound or video cannot be used",
    text: "It cannot be decoded, is too long, or this model has no eyes or ears for it. The message can be edited, or sent again without it.",
    action: { do: "choose_model", label: "Choose another model" },
  },
  bad_adapter: {
    title: "This adapter cannot be used",
    text: "It is damaged, was made for another model, or is not there any more.",
    action: { do: "open_training", label: "See the adapters" },
  },
  bad_data: {
    title: "This data cannot be trained on",
    text: "Every line must be one example as JSON, with something in it to learn.",
    action: { do: "open_training", label: "See the data" },
  },
  bad_checkpoint: {
    title: "This training cannot go on",
    text: "Its checkpoint belongs to another model or other settings, or is damaged.",
    action: { do: "open_training", label: "See the trainings" },
  },
  diverged: {
    title: "The training went astray",
    text: "The loss is no number any more. A lower learning rate or fewer steps help.",
    action: { do: "open_training", label: "Change the settings" },
  },
  cancelled: {
    title: "Stopped",
    text: "It was stopped before it was done.",
    action: { do: "try_again", label: "Try again" },
  },
  freed: {
    title: "The model is no longer loaded",
    text: "It was unloaded meanwhile.",
    action: { do: "reload_model", label: "Load it again" },
  },
  internal: {
    title: "Something went wrong inside rullama",
    text: "This is a mistake of ours. Your conversations are safe.",
    action: { do: "reload_page", label: "Reload the page" },
  },
};

function isCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(FAILURES, value);
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

/** Text and action for anything that was thrown. */
export function describe(error: unknown): Failure {
  const code = codeOf(error);
  const detail = error instanceof Error ? error.message : typeof error === "string" ? error : undefined;
  return { code, ...FAILURES[code], ...(detail ? { detail } : {}) };
}
