// Adds to rendered markdown: a header with a copy button on code, and horizontal scrolling for wide tables.

import { DISPLAY } from "../lib/math.js";
import { copy } from "./copy.js";
import { diagramButton, MERMAID } from "./diagram.js";
import { t } from "../text/index.svelte.js";

function codeFrame(pre: HTMLPreElement): HTMLElement {
  const code = pre.querySelector("code");
  const language = code?.className.replace("language-", "") ?? "";
  const frame = document.createElement("div");
  frame.className = "code";
  frame.dir = "ltr";
  const head = document.createElement("div");
  head.className = "code-head";
  const name = document.createElement("span");
  name.textContent = language || t("turn.plainText");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet small";
  button.textContent = t("common.copy");
  button.setAttribute("aria-label", language ? t("turn.copyLanguage", { language }) : t("turn.copyCode"));
  button.addEventListener("click", () => void copy(code?.textContent ?? "", button));
  head.append(name);
  if (language === MERMAID) head.append(diagramButton(frame));
  head.append(button);
  pre.replaceWith(frame);
  frame.append(head, pre);
  return frame;
}

/** Long lines scroll sideways; keyboards must get there too. */
function scrollable(element: HTMLElement, label: string): void {
  element.tabIndex = 0;
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", label);
}

export function decorate(content: DocumentFragment): void {
  // An answer that ends right behind a `#` has a heading without words.
  for (const heading of content.querySelectorAll("h1, h2, h3, h4, h5, h6"))
    if (!heading.textContent?.trim()) heading.remove();
  for (const pre of content.querySelectorAll("pre")) {
    if (pre.querySelector(`code.language-${DISPLAY}`)) continue;
    codeFrame(pre);
    scrollable(pre, t("turn.code"));
  }
  for (const item of content.querySelectorAll("li"))
    if (/^\s*[☐☑]/u.test(item.textContent ?? "")) item.className = "task";
  for (const table of content.querySelectorAll("table")) {
    const wide = document.createElement("div");
    wide.className = "wide";
    table.replaceWith(wide);
    wide.append(table);
    scrollable(wide, t("turn.table"));
  }
}
