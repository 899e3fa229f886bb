// Answers read aloud by the browser's own voices.

import { plain } from "../lib/markdown.js";
import { locale } from "../text/index.svelte.js";

class Speech {
  /** The turn that is being read. */
  turn = $state<string>();
  readonly possible = typeof speechSynthesis !== "undefined";

  /** Reads a text, or stops where it is being read already. */
  toggle(turn: string, text: string): void {
    const again = this.turn === turn;
    this.stop();
    if (again || !this.possible) return;
    const utterance = new SpeechSynthesisUtterance(plain(text));
    utterance.lang = locale();
    utterance.onend = utterance.onerror = () => {
      if (this.turn === turn) this.turn = undefined;
    };
    this.turn = turn;
    speechSynthesis.speak(utterance);
  }

  stop(): void {
    this.turn = undefined;
    if (this.possible) speechSynthesis.cancel();
  }
}

export const speech = new Speech();
