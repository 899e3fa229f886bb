// What is wrong with a line of training data, for a person.

import { t } from "../text/index.svelte.js";

/** The engine's JSON parser speaks of lines and columns of its own input, which is one line of the file. */
const NOT_JSON = /\bat line \d+ column (\d+)$/u;

export function lineProblem(message: string): string {
  const column = NOT_JSON.exec(message)?.[1];
  return column === undefined ? message : t("training.notJson", { column: Number(column) });
}
