// An answer that is still being written, as it is shown: what would look different once it is whole is completed or held back, so that
// formulas and code do not first appear as their source and then jump into shape.

import { INLINE_RULES } from "./math.js";

/** Longer than this, what looks like an open formula is taken for text. */
const MOST_FORMULA = 2000;
const MOST_INLINE = 200;

/** Code and formulas that are complete. */
const COMPLETE = new RegExp(
  [
    /(?<=^|\n)[ \t]*(?<fence>`{3,}|~{3,})[^\n]*\n(?:[\s\S]*?\n)?[ \t]*\k<fence>[`~]*[ \t]*(?=\n|$)/u,
    /(?<!`)(?<ticks>`+)(?!`)[^\n]*?(?<!`)\k<ticks>(?!`)/u,
    /\$\$[\s\S]+?\$\$/u,
    /\\\[[\s\S]+?\\\]/u,
    ...INLINE_RULES.map((rule) => new RegExp(rule.source.replace(/^\^/u, ""), "u")),
  ]
    .map(({ source }) => `(?:${source})`)
    .join("|"),
  "gu",
);

/** Shows the text of an answer that grows. */
export function growing(text: string): string {
  // Of the same length, so that places in it are places in the text.
  const open = text.replace(COMPLETE, (found) => found.replace(/[^\n]/gu, " "));
  const inCode = /(?:^|\n)[ \t]*(?:`{3,}|~{3,})[^\n]*\n/u.exec(open);
  // The end of a block of code comes character by character.
  if (inCode) return text.replace(/\n[ \t]*`{1,2}$/u, "");
  const fence = /(?:^|\n)[ \t]*`[^\n]{0,40}$/u.exec(open);
  if (fence) return text.slice(0, fence.index);
  return displayed(text, open) ?? heldBack(text, open) ?? text;
}

/** Closes a formula of its own paragraph. */
function displayed(text: string, open: string): string | undefined {
  const at = open.search(/\$\$|\\\[/u);
  if (at < 0) return undefined;
  const body = text.slice(at + 2);
  if (body.includes("\n\n") || body.length > MOST_FORMULA) return undefined;
  // Half of the closing sign may be there already.
  const tex = body.replace(/[\\$\s]+$/u, "");
  const before = text.slice(0, at);
  if (tex.trim() === "") return before;
  const close = text.slice(at, at + 2) === "$$" ? "$$" : "\\]";
  return `${before}${text.slice(at, at + 2)}${tex}${close}`;
}

/** Leaves out the beginning of a formula within a line. Money starts with a digit. */
function heldBack(text: string, open: string): string | undefined {
  const at = Math.max(0, open.length - MOST_INLINE);
  const end = open.slice(at);
  const found =
    /\\\((?:(?!\n\n)[\s\S])*$/u.exec(end) ?? /\$(?:$|(?![\s\d$])(?:[^\s$]*|[^\n$]*[\\^_{][^\n$]*)$)/u.exec(end);
  return found ? text.slice(0, at + found.index) : undefined;
}
