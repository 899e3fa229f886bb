// Documents in a prompt: whole, or as numbered passages that an answer can cite. Models read these words, so they are English.

/** What passages are introduced with: so the answer can say where it has something from. */
const HEAD =
  "These excerpts were found in the user's documents. Cite those you use by their number in brackets, like [1].";

const attribute = (text: string) => text.replace(/[\s"<>]+/gu, " ").trim();

/** A whole document. */
export function documentBlock(name: string, text: string): string {
  return `<document name="${attribute(name)}">\n${text.replaceAll("\f", "\n\n").trim()}\n</document>`;
}

/** A passage with its number. */
export function excerptBlock(
  number: number,
  { name, page, text }: { name: string; page?: number; text: string },
): string {
  const place = page === undefined ? "" : `, page ${page}`;
  return `[${number}] ${attribute(name)}${place}:\n${text.trim()}`;
}

/** Passages with their numbers, from 1 on. */
export function excerptsBlock(found: readonly { name: string; page?: number; text: string }[]): string {
  if (found.length === 0) return "";
  return [HEAD, ...found.map((one, index) => excerptBlock(index + 1, one))].join("\n\n");
}

/** Numbers between brackets that an answer cites, `[1]` or `[1, 3]`. */
export const CITATION = /\[(\d{1,2}(?:\s*,\s*\d{1,2})*)\]/gu;
