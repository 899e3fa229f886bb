import { describe, expect, it } from "vitest";
import { LONGEST, passages } from "../src/lib/passages.js";

describe("passages", () => {
  it("are paragraphs", () => {
    expect(passages("One.\r\nStill one.\n \nTwo.\n\n\n\n  Three.  ")).toEqual(["One.\nStill one.", "Two.", "Three."]);
    expect(passages(" \n\n ")).toEqual([]);
  });

  it("are never too long, and lose nothing but white space", () => {
    const sentence = "A sentence of some words ends here. ";
    for (const text of [sentence.repeat(100), "word ".repeat(900), "x".repeat(5000)]) {
      const found = passages(text);
      expect(Math.max(...found.map((one) => one.length))).toBeLessThanOrEqual(LONGEST);
      expect(found.join("").replaceAll(/\s/gu, "")).toBe(text.replaceAll(/\s/gu, ""));
    }
    expect(passages(sentence.repeat(100)).every((one) => one.endsWith("here."))).toBe(true);
  });
});
