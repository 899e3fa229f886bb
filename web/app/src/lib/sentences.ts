// A text that grows, said sentence by sentence: screen readers read along, instead of hearing all of it at the end.

import { locale } from "../text/index.svelte.js";

export class Sentences {
  #said: number;
  #count = 0;

  /** `said`: how much of the text was there before and is not said again. */
  constructor(
    private readonly say: (sentence: string) => void,
    said = 0,
  ) {
    this.#said = said;
  }

  /** Says the sentences that are whole: all but the last one, which may still grow. */
  push(text: string): void {
    this.#speak(text, false);
  }

  /** Says what is left; gives how many sentences there were. */
  end(text: string): number {
    this.#speak(text, true);
    return this.#count;
  }

  #speak(text: string, all: boolean): void {
    const rest = text.slice(this.#said);
    const sentences = [...new Intl.Segmenter(locale(), { granularity: "sentence" }).segment(rest)];
    const whole = all ? sentences : sentences.slice(0, -1);
    const said = whole.map(({ segment }) => segment).join("");
    this.#said += said.length;
    if (said.trim() === "") return;
    this.#count += whole.length;
    this.say(said.trim());
  }
}
