import { describe, expect, test } from "vitest";
import { alternatives, branch, newestLeaf, titleOf, toMessages, tooOld } from "../src/lib/conversation.js";
import { turn, turns } from "./support.js";

const tree = turns(
  turn("q1", null),
  turn("a2", "q1", { role: "assistant" }),
  turn("a3", "q1", { role: "assistant" }),
  turn("q4", "a2"),
  turn("q5", "a3"),
  turn("q6", "a3"),
);
const ids = (list: { id: string }[]) => list.map((one) => one.id);

describe("branches", () => {
  test("a branch runs from the first turn to its leaf", () => {
    expect(ids(branch(tree, "q5"))).toEqual(["q1", "a3", "q5"]);
    expect(branch(tree, null)).toEqual([]);
    expect(branch(tree, "nowhere")).toEqual([]);
  });

  test("turns in a circle end", () => {
    const circle = turns(turn("a1", "b2"), turn("b2", "a1"));
    expect(branch(circle, "a1")).toHaveLength(2);
    expect(newestLeaf(circle, "a1")).toBe("b2");
  });

  test("alternatives share the parent, oldest first", () => {
    expect(ids(alternatives(tree, tree["a3"]!))).toEqual(["a2", "a3"]);
    expect(ids(alternatives(tree, tree["q5"]!))).toEqual(["q5", "q6"]);
  });

  test("the newest leaf follows the youngest turns", () => {
    expect(newestLeaf(tree, "q1")).toBe("q6");
    expect(newestLeaf(tree, "a2")).toBe("q4");
  });
});

describe("titles", () => {
  const check = (text: string, title: string) => expect(titleOf(text)).toBe(title);
  test("the first line, cut at a word", () => {
    check("  Hello   there\nmore", "Hello there");
    check("", "New chat");
    check(`${"word ".repeat(20)}`, `${"word ".repeat(11).trim()}…`);
    check("x".repeat(80), `${"x".repeat(57)}…`);
    check("😀".repeat(61), `${"😀".repeat(57)}…`);
  });
});

test("the model sees the system prompt and no thoughts, failures or empty answers", () => {
  const path = [
    turn("q1", null, { content: "one" }),
    turn("a2", "q1", { role: "assistant", content: "", finish: "failed" }),
    turn("a3", "q1", { role: "assistant", content: "two", thinking: "hm", toolCalls: [{ name: "f", arguments: {} }] }),
    turn("t4", "a3", { role: "tool", content: "three", toolName: "f" }),
  ];
  expect(toMessages(path, { system: "be brief" })).toEqual([
    { role: "system", content: "be brief" },
    { role: "user", content: "one" },
    { role: "assistant", content: "two", toolCalls: [{ name: "f", arguments: {} }] },
    { role: "tool", content: "three", toolName: "f" },
  ]);
  expect(toMessages([])).toEqual([]);
  // An empty one is told apart from none: it clears the model's own.
  expect(toMessages([], { system: "  " })).toEqual([{ role: "system", content: "" }]);
});

test("the oldest exchanges are left out whole, the last question never", () => {
  const path = [
    turn("q1", null),
    turn("a2", "q1", { role: "assistant" }),
    turn("q3", "a2"),
    turn("a4", "q3", { role: "assistant" }),
    turn("q5", "a4"),
  ];
  const sizes = [10, 10, 10, 10, 10];
  expect(tooOld(path, sizes, 50)).toBe(0);
  expect(tooOld(path, sizes, 49)).toBe(2);
  expect(tooOld(path, sizes, 25)).toBe(4);
  expect(tooOld(path, sizes, 1)).toBe(4);
});
