// Search by words, for when no embedding model is there: passages ranked by BM25.

const K1 = 1.2;
const B = 0.75;

/** The words of a text. Scripts without spaces are cut by the browser, which knows their words. */
export function wordsOf(text: string): string[] {
  const lower = text.toLocaleLowerCase();
  if (/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u.test(lower)) {
    const cut = new Intl.Segmenter(undefined, { granularity: "word" }).segment(lower);
    return [...cut].flatMap(({ segment, isWordLike }) => (isWordLike ? [segment] : []));
  }
  return lower.match(/[\p{L}\p{N}_]+/gu) ?? [];
}

/** Scores of texts for a query, in their order; 0 for those without any of its words. */
export function keywordScores(query: string, texts: readonly string[]): number[] {
  const wanted = [...new Set(wordsOf(query))];
  const counted = texts.map((text) => {
    const words = wordsOf(text);
    const counts = new Map<string, number>();
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
    return { counts, length: words.length };
  });
  const mean = counted.reduce((sum, { length }) => sum + length, 0) / Math.max(1, counted.length);
  const rarity = new Map(
    wanted.map((word) => {
      const having = counted.filter(({ counts }) => counts.has(word)).length;
      return [word, Math.log(1 + (texts.length - having + 0.5) / (having + 0.5))];
    }),
  );
  return counted.map(({ counts, length }) =>
    wanted.reduce((sum, word) => {
      const often = counts.get(word) ?? 0;
      const share = (often * (K1 + 1)) / (often + K1 * (1 - B + (B * length) / Math.max(1, mean)));
      return sum + (rarity.get(word) ?? 0) * share;
    }, 0),
  );
}
