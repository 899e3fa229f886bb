import { expect, test } from "vitest";
import { growing } from "../src/lib/growing.js";
import { Sentences } from "../src/lib/sentences.js";

test("what is complete stays as it is", () => {
  const whole = [
    "Plain words, $5 and $6 and 3 * 4.",
    "A formula $a^2$, another \\(b\\), and\n\n$$\nc\n$$\n\nmore.",
    '```rust\nlet x = "$$";\n```\n\nAfter `$` and `code`.',
    "It costs $5 and more",
    "Shell: `$HOME` and `` a`b ``.",
  ];
  for (const text of whole) expect(growing(text)).toBe(text);
});

test("an open formula of its own paragraph is closed, and an open one in a line is held back", () => {
  expect(growing("So:\n\n$$")).toBe("So:\n\n");
  expect(growing("So:\n\n$$\n\\frac{1}{2}\n$")).toBe("So:\n\n$$\n\\frac{1}{2}$$");
  expect(growing("So:\n\n\\[ a + b \\")).toBe("So:\n\n\\[ a + b\\]");
  expect(growing("As $a^2 + b")).toBe("As ");
  expect(growing("As \\(a + b")).toBe("As ");
  expect(growing("As $")).toBe("As ");
});

test("text with a lone sign is not taken for a formula for long", () => {
  expect(growing(`Worth $$ lots.\n\nNext paragraph.`)).toContain("Worth $$ lots.");
  expect(growing("The variable $HOME is set")).toBe("The variable $HOME is set");
  expect(growing(`As \\(${"a + ".repeat(100)}`)).toContain("\\(");
});

test("fences of code are held back until they are complete", () => {
  expect(growing("Here:\n\n``")).toBe("Here:\n");
  expect(growing("Here:\n\n```ru")).toBe("Here:\n");
  expect(growing("Here:\n\n```rust\nlet $x = 1;")).toBe("Here:\n\n```rust\nlet $x = 1;");
  expect(growing("```rust\nlet x;\n``")).toBe("```rust\nlet x;");
});

test("a growing answer never shows less than an earlier part of it by more than what is open", () => {
  const text = "So $a^2$ and\n\n$$\n\\frac{a}{b}\n$$\n\n```js\nlet x = `$`;\n```\n\nThat is $5.";
  for (let end = 1; end <= text.length; end++) {
    const shown = growing(text.slice(0, end));
    expect(end - shown.length, text.slice(0, end)).toBeLessThan(20);
    expect(shown.match(/\$\$/gu)?.length ?? 0, shown).toSatisfy((count: number) => count % 2 === 0);
  }
});

test("a continued answer is not said from its beginning again", () => {
  const said: string[] = [];
  const sentences = new Sentences((sentence) => said.push(sentence), "One. Two".length);
  sentences.push("One. Two. Three. Fo");
  sentences.end("One. Two. Three. Four.");
  expect(said.join(" ")).toBe(". Three. Four.");
});
