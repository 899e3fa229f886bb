// Texts cut into passages: each small enough to be about one thing, and to be read at a glance.

/** Characters of a passage, at most. */
export const LONGEST = 1200;

/** The paragraphs of a text; long ones are cut where a sentence ends, or failing that, a word. */
export function passages(text: string): string[] {
  const paragraphs = text.replace(/\r\n?/gu, "\n").split(/\n[ \t]*\n/u);
  return paragraphs.flatMap((one) => pieces(one.trim())).filter((one) => one !== "");
}

function pieces(paragraph: string): string[] {
  const result: string[] = [];
  let rest = paragraph;
  while (rest.length > LONGEST) {
    const head = rest.slice(0, LONGEST);
    const sentence = Math.max(...[". ", "! ", "? ", "\n"].map((end) => head.lastIndexOf(end) + 1));
    const word = head.lastIndexOf(" ");
    const cut = sentence > LONGEST / 3 ? sentence : word > 0 ? word : LONGEST;
    result.push(rest.slice(0, cut).trim());
    rest = rest.slice(cut).trim();
  }
  return [...result, rest];
}
