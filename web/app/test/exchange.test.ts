import { expect, test } from "vitest";
import { fromJson, ImportError, toJson } from "../src/lib/exchange.js";
import { conversation, turn } from "./support.js";

const stored = [
  {
    conversation: conversation({ leaf: "a2", system: "be brief" }),
    turns: [
      turn("q1", null, { content: "hi" }),
      turn("a2", "q1", {
        role: "assistant",
        content: "ho",
        thinking: "hm",
        finish: "stop",
        model: "m",
        toolCalls: [{ name: "f", arguments: { x: 1 } }],
      }),
    ],
  },
];
type Plain = Record<string, unknown>;
const sample = () => JSON.parse(toJson(stored)) as { conversations: (Plain & { turns: Plain[] })[] } & Plain;

test("what was exported comes back, with ids of its own", () => {
  let next = 0;
  const [one] = fromJson(toJson(stored), () => `n${next++}`);
  expect(one?.conversation).toEqual({ ...stored[0]!.conversation, id: "n0", leaf: "n2" });
  expect(one?.turns).toEqual([
    { ...stored[0]!.turns[0], id: "n1", conversation: "n0" },
    { ...stored[0]!.turns[1], id: "n2", conversation: "n0", parent: "n1" },
  ]);
});

test("fields that nobody knows are left behind", () => {
  const file = sample();
  file.conversations[0]!.turns[0]!["onload"] = "x";
  file.conversations[0]!["deleted"] = 5;
  const [one] = fromJson(JSON.stringify(file));
  expect(one?.turns[0]).not.toHaveProperty("onload");
  expect(one?.conversation).not.toHaveProperty("deleted");
});

test("an answer without an end counts as stopped", () => {
  const file = sample();
  delete file.conversations[0]!.turns[1]!["finish"];
  expect(fromJson(JSON.stringify(file))[0]?.turns[1]?.finish).toBe("cancelled");
});

const BAD: [string, (file: ReturnType<typeof sample>) => void, RegExp][] = [
  ["another format", (file) => (file["format"] = "x"), /not a file that rullama exported/u],
  ["a later version", (file) => (file["version"] = 2), /version is 2; this app reads version 1/u],
  ["no list", (file) => (file["conversations"] = {} as never), /`conversations` should be a list/u],
  ["a null", (file) => (file.conversations[0] = null as never), /Conversation 1 should be an object/u],
  ["no title", (file) => delete file.conversations[0]!["title"], /Conversation 1: `title` should be text/u],
  ["a time that is text", (file) => (file.conversations[0]!["created"] = "now"), /`created` should be a time/u],
  ["a strange role", (file) => (file.conversations[0]!.turns[1]!["role"] = "root"), /turn 2: `role` should be one of/u],
  [
    "content of another kind",
    (file) => (file.conversations[0]!.turns[0]!["content"] = ["x"]),
    /turn 1: `content` should be text/u,
  ],
  [
    "a parent that is not there",
    (file) => (file.conversations[0]!.turns[1]!["parent"] = "x"),
    /turn 2: `parent` names a turn that is not there/u,
  ],
  [
    "a leaf that is not there",
    (file) => (file.conversations[0]!["leaf"] = "x"),
    /`leaf` names a turn that is not there/u,
  ],
  ["an id twice", (file) => (file.conversations[0]!.turns[1]!["id"] = "q1"), /the id `q1` appears twice/u],
  ["a circle", (file) => (file.conversations[0]!.turns[0]!["parent"] = "a2"), /in a circle/u],
  [
    "bad arguments",
    (file) => (file.conversations[0]!.turns[1]!["toolCalls"] = [{ name: "f", arguments: 1 }]),
    /arguments` should be an object/u,
  ],
];

test.each(BAD)("refuses %s and says so", (_name, damage, message) => {
  const file = sample();
  damage(file);
  expect(() => fromJson(JSON.stringify(file))).toThrow(message);
});

test("refuses what is no JSON", () => {
  expect(() => fromJson("{")).toThrow(ImportError);
  expect(() => fromJson("[]")).toThrow(/should be an object/u);
});

test("a name like a property of all objects is nothing special", () => {
  const file = sample();
  file.conversations[0]!.turns[1]!["parent"] = "__proto__";
  expect(() => fromJson(JSON.stringify(file))).toThrow(/not there/u);
});
