// Formulas and code in colour. Both libraries are large, so they are fetched when an answer first needs them; until then, and where that
// fails, the source is shown. What they make is sanitised like everything else that comes from a model's words.

import createPurifier from "dompurify";
import { DISPLAY, INLINE } from "../lib/math.js";

type Katex = typeof import("katex").default;
type Highlighter = typeof import("highlight.js/lib/common").default;

let katex: Katex | undefined;
let highlighter: Highlighter | undefined;
const purifier = typeof window === "undefined" ? undefined : createPurifier(window);
purifier?.addHook("afterSanitizeAttributes", (node) => {
  const kind = node.getAttribute("class");
  if (kind !== null && !/^hljs-[\w\s.-]+$/u.test(kind)) node.removeAttribute("class");
});

/** More would block the page while it is coloured. */
const MOST_CODE = 50_000;

/** Replaces formulas by MathML, which browsers typeset without styles or fonts of ours. */
async function formulas(content: ParentNode): Promise<void> {
  const found = [...content.querySelectorAll<HTMLElement>(`code.language-${INLINE}, code.language-${DISPLAY}`)];
  if (found.length === 0) return;
  katex ??= (await import("katex")).default;
  for (const code of found) {
    const displayMode = code.classList.contains(`language-${DISPLAY}`);
    const options = { output: "mathml", displayMode, throwOnError: true, trust: false, strict: "ignore" } as const;
    try {
      const html = katex.renderToString(code.textContent ?? "", { ...options, maxSize: 20, maxExpand: 500 });
      const clean = purifier?.sanitize(html, { USE_PROFILES: { mathMl: true }, RETURN_DOM_FRAGMENT: true });
      const math = clean?.querySelector("math");
      if (!math) continue;
      const frame = document.createElement("span");
      frame.className = displayMode ? "formula display" : "formula";
      frame.dir = "ltr";
      frame.append(math);
      // Wide formulas scroll; keyboards must get there too.
      if (displayMode) frame.tabIndex = 0;
      const pre = code.closest("pre");
      (pre?.closest(".code") ?? pre ?? code).replaceWith(frame);
    } catch {
      // What is no formula stays as it was written.
    }
  }
}

async function colours(content: ParentNode): Promise<void> {
  const found = [...content.querySelectorAll<HTMLElement>('pre code[class^="language-"]')];
  if (found.length === 0) return;
  highlighter ??= (await import("highlight.js/lib/common")).default;
  for (const code of found) {
    const language = code.className.replace("language-", "").toLowerCase();
    const text = code.textContent ?? "";
    if (!highlighter.getLanguage(language) || text.length > MOST_CODE) continue;
    const { value } = highlighter.highlight(text, { language, ignoreIllegals: true });
    const clean = purifier?.sanitize(value, {
      ALLOWED_TAGS: ["span"],
      ALLOWED_ATTR: ["class"],
      RETURN_DOM_FRAGMENT: true,
    });
    if (clean) code.replaceChildren(clean);
  }
}

/** Typesets what is in rendered markdown: at once where the libraries are there, and when they came otherwise. */
export function typeset(content: ParentNode): void {
  // Without a network the source is good enough.
  formulas(content).catch(() => {});
  colours(content).catch(() => {});
}
