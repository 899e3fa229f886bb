// A block of an answer that grew: what is on the page already stays where it is, with its scroll position, focus and selection.

import { DISPLAY } from "../lib/math.js";
import { closeDiagram } from "./diagram.js";

const only = (parent: ParentNode): Element | undefined =>
  parent.childElementCount === 1 ? (parent.firstElementChild ?? undefined) : undefined;

/** Puts longer code into the frame that shows it already; false where the block is something else. */
export function grown(node: HTMLElement, content: DocumentFragment): boolean {
  const [old, fresh] = [only(node), only(content)];
  if (!old?.matches(".code") || !fresh?.matches(".code")) return false;
  const [code, longer] = [old.querySelector("pre code"), fresh.querySelector("pre code")];
  const [name, newName] = [old.querySelector(".code-head span"), fresh.querySelector(".code-head span")];
  const [tools, newTools] = [old.querySelectorAll("button"), fresh.querySelectorAll("button")];
  // The language of code comes letter by letter, too.
  if (!code || !longer || !name || !newName || tools.length !== newTools.length) return false;
  if (code.textContent !== longer.textContent) closeDiagram(old);
  name.textContent = newName.textContent;
  tools.forEach((tool, at) => tool.setAttribute("aria-label", newTools[at]?.getAttribute("aria-label") ?? ""));
  code.className = longer.className;
  code.replaceChildren(...longer.childNodes);
  return true;
}

/** While a formula is not complete, it is shown as it was when it last made sense. */
export function keepFormulas(node: HTMLElement, content: DocumentFragment): void {
  const before = node.querySelectorAll(".formula.display");
  const shown = content.querySelectorAll(`.formula.display, code.language-${DISPLAY}`);
  shown.forEach((formula, at) => {
    if (!formula.matches("code")) return;
    const waiting = document.createElement("span");
    waiting.className = "formula display";
    waiting.textContent = "…";
    (formula.closest("pre") ?? formula).replaceWith(before[at] ?? waiting);
  });
}
