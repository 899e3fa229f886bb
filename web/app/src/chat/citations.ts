// Numbers in brackets that cite a source become buttons, which lead to the passage.

import { CITATION } from "../lib/excerpts.js";
import { t } from "../text/index.svelte.js";

/** The attribute that tells which source a button leads to. */
export const CITES = "data-cites";

/** Replaces `[1]` and `[1, 2]` in an answer's text, but not in code or links; `most` is the number of sources. */
export function linkCitations(content: DocumentFragment, most: number): void {
  const walker = document.createTreeWalker(content, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) texts.push(walker.currentNode as Text);
  for (const node of texts) {
    if (node.parentElement?.closest("a, code, pre, button")) continue;
    const parts = pieces(node.data, most);
    if (parts.some((part) => typeof part === "number")) {
      node.replaceWith(...parts.map((part) => (typeof part === "number" ? button(part) : part)));
    }
  }
}

/** Texts, and numbers of sources that exist. */
export function pieces(text: string, most: number): (string | number)[] {
  const parts: (string | number)[] = [];
  let from = 0;
  for (const match of text.matchAll(CITATION)) {
    const numbers = (match[1] ?? "").split(",").map(Number);
    if (numbers.some((number) => number < 1 || number > most)) continue;
    if (match.index > from) parts.push(text.slice(from, match.index));
    parts.push(...numbers);
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

function button(number: number): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "cite";
  made.textContent = String(number);
  made.setAttribute(CITES, String(number));
  made.setAttribute("aria-label", t("source.open", { number }));
  return made;
}
