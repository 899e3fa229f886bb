// What is wrong with training data and settings, for a person: the engine says it in English sentences.

import { t } from "../text/index.svelte.js";
import { bytes } from "./format.js";

/** A problem in the language of the app; `detail` is the engine's own sentence, where it says more. */
export interface Problem {
  text: string;
  detail?: string;
}

type Known = [pattern: RegExp, say: (found: string[]) => string];

const LINE: Known[] = [
  // The engine's JSON parser speaks of lines and columns of its own input, which is one line of the file.
  [/\bat line \d+ column (\d+)$/u, ([column]) => t("training.notJson", { column: Number(column) })],
  [/^it has none of "messages"/u, () => t("training.line.unknown")],
  [/^"(\w+)" must be /u, ([field = ""]) => t("training.line.field", { field })],
  [/^the conversation has no assistant turn to learn$/u, () => t("training.line.noReply")],
  [/^no token to learn: /u, () => t("training.line.empty")],
  [/^no token (\d+): the vocabulary /u, ([id = ""]) => t("training.line.noToken", { id })],
];

const SETTINGS: Known[] = [
  [
    /^training needs (\d+) bytes of GPU memory .* but may use (\d+);/u,
    ([needed, free]) => t("training.problem.needs", { needed: bytes(Number(needed)), free: bytes(Number(free)) }),
  ],
  [/^an evaluation split of /u, () => t("training.problem.split")],
  [/^the data has no tokens to learn/u, () => t("training.line.empty")],
];

function found(message: string, known: Known[], otherwise: string): Problem {
  for (const [pattern, say] of known) {
    const match = pattern.exec(message);
    if (match) return { text: say(match.slice(1)) };
  }
  return { text: otherwise, detail: message };
}

/** What is wrong with a line of training data. */
export const lineProblem = (message: string): Problem => found(message, LINE, t("training.line.unusable"));

/** Why a model cannot be trained with the settings, though the data is good. */
export const settingsProblem = (message: string): Problem => found(message, SETTINGS, t("training.problem.wrong"));
