// Pieces of text on a page, put together to lines and paragraphs.

/** A piece of text as pdf.js gives it: `transform` ends with its place, from the lower left corner. */
export interface TextItem {
  str: string;
  hasEOL: boolean;
  height: number;
  transform: number[];
}

/** More than so many line heights between two lines begin a paragraph. */
const GAP = 1.7;

/** The text of a page. What comes from a file is cleaned of control characters. */
export function textOfItems(items: readonly TextItem[]): string {
  let text = "";
  let before: { y: number; height: number } | undefined;
  for (const { str, hasEOL, height, transform } of items) {
    const y = Number(transform[5] ?? 0);
    if (str !== "") {
      const high = Math.max(height, before?.height ?? 0);
      if (before && high > 0 && text.endsWith("\n") && Math.abs(before.y - y) > GAP * high) text += "\n";
      before = { y, height: height || (before?.height ?? 0) };
    }
    text += str;
    if (hasEOL) text += "\n";
  }
  // oxlint-disable-next-line no-control-regex -- They are what is looked for.
  return text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f]/gu, " ").trim();
}
