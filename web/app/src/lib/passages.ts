// Texts cut into passages: each small enough to be about one thing, and to be read at a glance.

/** Characters of a passage, at most. */
export const LONGEST = 1200;

/** A passage, and where it is in its text. */
export interface Passage {
  text: string;
  start: number;
  end: number;
}

/** The paragraphs of a text; long ones are cut where a sentence ends, or failing that, a word. */
export function passages(text: string): string[] {
  return passagesOf(text.replace(/\r\n?/gu, "\n")).map((one) => one.text);
}

/** The same with places. Form feeds, which stand between the pages of a PDF, end a paragraph, too. */
export function passagesOf(text: string): Passage[] {
  const found: Passage[] = [];
  let from = 0;
  for (const gap of text.matchAll(/\n[ \t]*\n|\f/gu)) {
    cut(text, from, gap.index, found);
    from = gap.index + gap[0].length;
  }
  cut(text, from, text.length, found);
  return found;
}

/** Adds a paragraph, in pieces that are short enough. */
function cut(text: string, from: number, to: number, found: Passage[]): void {
  let start = skip(text, from, to);
  while (start < to) {
    const end = to - start > LONGEST ? start + pieceOf(text.slice(start, start + LONGEST)) : to;
    const piece = text.slice(start, end).trimEnd();
    found.push({ text: piece, start, end: start + piece.length });
    start = skip(text, end, to);
  }
}

function skip(text: string, from: number, to: number): number {
  let at = from;
  while (at < to && /\s/u.test(text[at] ?? "")) at++;
  return at;
}

/** Characters of a long paragraph's first piece. */
function pieceOf(head: string): number {
  const sentence = Math.max(...[". ", "! ", "? ", "。", "\n"].map((end) => head.lastIndexOf(end) + 1));
  const word = head.lastIndexOf(" ");
  return sentence > LONGEST / 3 ? sentence : word > 0 ? word : head.length;
}

/** The page of a place in a text that has form feeds between its pages; undefined where it has none. */
export function pageAt(text: string, place: number): number | undefined {
  if (!text.includes("\f")) return undefined;
  let page = 1;
  for (let at = text.indexOf("\f"); at >= 0 && at < place; at = text.indexOf("\f", at + 1)) page++;
  return page;
}

/** A passage with its neighbours, until it has so many characters: a paragraph alone often misses what it is about. */
export function widened(text: string, list: readonly Passage[], at: number, least: number): Passage {
  let [first, last] = [at, at];
  const length = () => (list[last]?.end ?? 0) - (list[first]?.start ?? 0);
  while (length() < least && (first > 0 || last < list.length - 1)) {
    if (last < list.length - 1) last++;
    if (length() < least && first > 0) first--;
  }
  const [start, end] = [list[first]?.start ?? 0, list[last]?.end ?? 0];
  return { text: text.slice(start, end).replaceAll("\f", "\n"), start, end };
}
