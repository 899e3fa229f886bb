// Formulas in answers: `$x$`, `\(x\)`, `$$x$$` and `\[x\]` become code elements of their own language, which the page then typesets.

import type { TokenizerAndRendererExtension, Tokens } from "marked";

/** Languages that mark formulas; nothing else passes the sanitizer. */
export const INLINE = "math-inline";
export const DISPLAY = "math-display";

interface Formula extends Tokens.Generic {
  tex: string;
}

const escape = (text: string) => text.replace(/[&<>"']/gu, (letter) => `&#${letter.charCodeAt(0)};`);

/** Money is no formula: no space inside of the signs, and no digit after the second one. */
export const INLINE_RULES = [/^\$(?!\s)((?:\\.|[^\\$\n`])+?)(?<!\s)\$(?!\d)/u, /^\\\(([\s\S]+?)\\\)/u];
const DISPLAY_RULES = [/^\$\$([\s\S]+?)\$\$/u, /^\\\[([\s\S]+?)\\\]/u];

function matched(rules: readonly RegExp[], source: string): { raw: string; tex: string } | undefined {
  for (const rule of rules) {
    const [raw, tex] = rule.exec(source) ?? [];
    if (raw !== undefined && tex !== undefined && tex.trim() !== "") return { raw, tex: tex.trim() };
  }
  return undefined;
}

const inline: TokenizerAndRendererExtension = {
  name: "formula",
  level: "inline",
  start: (source) => {
    const at = source.search(/\$|\\[([]/u);
    return at < 0 ? undefined : at;
  },
  tokenizer(source) {
    const display = matched(DISPLAY_RULES, source);
    const found = display ?? matched(INLINE_RULES, source);
    return found ? { type: "formula", ...found, display: display !== undefined } : undefined;
  },
  renderer: (token) => {
    const { tex, display } = token as Formula;
    return `<code class="language-${display ? DISPLAY : INLINE}">${escape(tex)}</code>`;
  },
};

const block: TokenizerAndRendererExtension = {
  name: "formulaBlock",
  level: "block",
  start: (source) => {
    const at = source.search(/^(?:\$\$|\\\[)/mu);
    return at < 0 ? undefined : at;
  },
  tokenizer(source) {
    const found = matched(
      DISPLAY_RULES.map((rule) => new RegExp(`${rule.source}[ \\t]*(?:\\n|$)`, "u")),
      source,
    );
    return found ? { type: "formulaBlock", ...found } : undefined;
  },
  renderer: (token) => `<p><code class="language-${DISPLAY}">${escape((token as Formula).tex)}</code></p>\n`,
};

export const formulas = { extensions: [block, inline] };
