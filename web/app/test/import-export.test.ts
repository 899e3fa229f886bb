import { expect, test } from "vitest";
import { imported, ImportError } from "../src/lib/import.js";
import { exported } from "../src/lib/export.js";
import type { Stored } from "../src/lib/database.js";
import { conversation, turn } from "./support.js";

async function collected<T>(list: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of list) all.push(one);
  return all;
}

/** A file's conversations, its text in chunks of a length. */
function fromJson(text: string, newId?: () => string, step = 7): Promise<Stored[]> {
  async function* chunks() {
    for (let at = 0; at < text.length; at += step) yield text.slice(at, at + step);
  }
  return collected(imported(chunks(), newId));
}

async function toJson(
  list: Pick<Stored, "conversation" | "turns">[],
  blobs = new Map<string, Blob>(),
): Promise<string> {
  async function* all() {
    yield* list;
  }
  return (await collected(exported(all(), async (id) => blobs.get(id)))).join("");
}

const stored = [
  {
    conversation: conversation({ leaf: "a2", system: "be brief", folder: "Work", pinned: true }),
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

test("a folder's name is cut to what is kept", async () => {
  const file = await sample();
  file.conversations[0]!.folder = `  ${"x".repeat(200)}`;
  const [long] = await fromJson(JSON.stringify(file));
  expect(long?.conversation.folder).toBe("x".repeat(100));
  file.conversations[0]!.folder = 7;
  await expect(fromJson(JSON.stringify(file))).rejects.toThrow(ImportError);
});

type Plain = Record<string, unknown>;
const sample = async () =>
  JSON.parse(await toJson(stored)) as { conversations: (Plain & { turns: Plain[] })[] } & Plain;

test("what was exported comes back, with ids of its own", async () => {
  let next = 0;
  const [one] = await fromJson(await toJson(stored), () => `n${next++}`);
  expect(one?.conversation).toEqual({ ...stored[0]!.conversation, id: "n0", leaf: "n2" });
  expect(one?.turns).toEqual([
    { ...stored[0]!.turns[0], id: "n1", conversation: "n0" },
    { ...stored[0]!.turns[1], id: "n2", conversation: "n0", parent: "n1" },
  ]);
});

test("fields that nobody knows are left behind", async () => {
  const file = await sample();
  file.conversations[0]!.turns[0]!["onload"] = "x";
  file.conversations[0]!["deleted"] = 5;
  const [one] = await fromJson(JSON.stringify(file));
  expect(one?.turns[0]).not.toHaveProperty("onload");
  expect(one?.conversation).not.toHaveProperty("deleted");
});

test("an answer without an end counts as stopped", async () => {
  const file = await sample();
  delete file.conversations[0]!.turns[1]!["finish"];
  expect((await fromJson(JSON.stringify(file)))[0]?.turns[1]?.finish).toBe("cancelled");
});

const BAD: [string, (file: Awaited<ReturnType<typeof sample>>) => void, RegExp][] = [
  ["another format", (file) => (file["format"] = "x"), /not exported by rullama/u],
  ["a later version", (file) => (file["version"] = 2), /has version 2; this app reads version 1/u],
  ["no list", (file) => (file["conversations"] = {} as never), /`conversations` should be a list/u],
  ["a null", (file) => (file.conversations[0] = null as never), /Chat 1 should be an object/u],
  ["no title", (file) => delete file.conversations[0]!["title"], /Chat 1: `title` should be text/u],
  ["a time that is text", (file) => (file.conversations[0]!["created"] = "now"), /`created` should be a time/u],
  [
    "a strange role",
    (file) => (file.conversations[0]!.turns[1]!["role"] = "root"),
    /message 2: `role` should be one of/u,
  ],
  [
    "content of another kind",
    (file) => (file.conversations[0]!.turns[0]!["content"] = ["x"]),
    /message 1: `content` should be text/u,
  ],
  [
    "a parent that is not there",
    (file) => (file.conversations[0]!.turns[1]!["parent"] = "x"),
    /message 2: `parent` refers to a message that is not in the file/u,
  ],
  [
    "a leaf that is not there",
    (file) => (file.conversations[0]!["leaf"] = "x"),
    /`leaf` refers to a message that is not in the file/u,
  ],
  ["an id twice", (file) => (file.conversations[0]!.turns[1]!["id"] = "q1"), /the id `q1` appears twice/u],
  ["a circle", (file) => (file.conversations[0]!.turns[0]!["parent"] = "a2"), /in a loop/u],
  [
    "bad arguments",
    (file) => (file.conversations[0]!.turns[1]!["toolCalls"] = [{ name: "f", arguments: 1 }]),
    /arguments` should be an object/u,
  ],
];

test.each(BAD)("refuses %s and says so", async (_name, damage, message) => {
  const file = await sample();
  damage(file);
  await expect(fromJson(JSON.stringify(file))).rejects.toThrow(message);
});

test("refuses what is no JSON", async () => {
  for (const text of ["{", "", "GGUF", "[]", '"x"', "{}}", '{"a":1', `${await toJson(stored)}x`]) {
    await expect(fromJson(text)).rejects.toThrow(ImportError);
  }
  await expect(fromJson("[]")).rejects.toThrow(/should be an object/u);
});

test("a name like a property of all objects is nothing special", async () => {
  const file = await sample();
  file.conversations[0]!.turns[1]!["parent"] = "__proto__";
  await expect(fromJson(JSON.stringify(file))).rejects.toThrow(/not in the file/u);
});

const bytes = (length: number) => Uint8Array.from({ length }, (_, at) => (at * 7) % 256);
const image = (more: Partial<{ kind: string; name: string; data: string }> = {}) => ({
  kind: "image",
  name: "p.png",
  data: `data:image/png;base64,${Buffer.from(bytes(1000)).toString("base64")}`,
  ...more,
});

test("attachments come back byte by byte, however the file is cut and written", async () => {
  for (const length of [1, 2, 3, 4, 1000]) {
    const file = await sample();
    const data = `data:image/png;base64,${Buffer.from(bytes(length)).toString("base64")}`;
    file.conversations[0]!.turns[0]!["attachments"] = [image({ data })];
    for (const text of [JSON.stringify(file), JSON.stringify(file, null, 2)]) {
      // The last two keep the bytes inside the text: a key that is spelt otherwise, and one place fewer to look at.
      for (const [spelt, step] of [
        [text, 1],
        [text, 5],
        [text, 1 << 20],
        [text.replace('"data"', '"d\\u0061ta"'), 9],
      ] as const) {
        const [one] = await fromJson(spelt, undefined, step);
        expect(one?.turns[0]?.attachments).toEqual([{ id: one?.blobs[0]?.id, kind: "image", name: "p.png" }]);
        expect(one?.blobs[0]?.blob.type).toBe("image/png");
        expect(new Uint8Array(await one!.blobs[0]!.blob.arrayBuffer())).toEqual(bytes(length));
      }
    }
  }
});

test("what looks like an attachment in a message stays text", async () => {
  const file = await sample();
  const { data } = image();
  const turnOf = file.conversations[0]!.turns;
  turnOf[0]!["content"] = data;
  turnOf[1]!["toolCalls"] = [{ name: "data", arguments: { data, deeper: { data } } }];
  const [one] = await fromJson(JSON.stringify(file));
  expect(one?.turns[0]?.content).toBe(data);
  expect(one?.turns[1]?.toolCalls?.[0]?.arguments).toEqual({ data, deeper: { data } });
  expect(one?.blobs).toEqual([]);
});

test.each([
  ["another address", { data: "https://example.com/x.png" }, /should be an image, audio or video/u],
  ["a page", { data: "data:text/html;base64,AAAA" }, /should be an image/u],
  ["no base64", { data: "data:image/png;base64,A*AA" }, /not valid base64/u],
  ["padding inside", { data: `data:image/png;base64,${"AA==".repeat(300_000)}` }, /not valid base64/u],
  ["half a byte", { data: "data:image/png;base64,AAAAA" }, /not valid base64/u],
  ["too many bytes", { data: `data:image/png;base64,${"A".repeat(26_700_000)}` }, /larger than 20 MB/u],
])("refuses an attachment that is %s", async (_name, more, message) => {
  const file = await sample();
  file.conversations[0]!.turns[0]!["attachments"] = [image(more)];
  const reading = fromJson(JSON.stringify(file), undefined, 1 << 20);
  await expect(reading).rejects.toThrow(message);
  await expect(reading).rejects.toThrow(ImportError);
});

test("a large file is written and read in pieces", async () => {
  // Texts have at most 256 MB to 1 GB, by browser: pieces must stay short, whatever the whole is.
  const blob = new Blob([new Uint8Array(15_000_000)], { type: "image/png" });
  const attachments = Array.from({ length: 1 }, (_, at) => ({ id: `p${at}`, kind: "image" as const, name: "p.png" }));
  async function* all() {
    yield { conversation: conversation({ leaf: "q1" }), turns: [turn("q1", null, { attachments })] };
  }
  let [length, longest] = [0, 0];
  async function* measured() {
    for await (const piece of exported(all(), async () => blob)) {
      length += piece.length;
      longest = Math.max(longest, piece.length);
      yield piece;
    }
  }
  const [one] = await collected(imported(measured()));
  expect(length).toBeGreaterThan(1.9e7);
  expect(longest).toBeLessThan(2 ** 21);
  expect(one?.blobs.map((row) => row.blob.size)).toEqual(attachments.map(() => 15_000_000));
}, 60_000);
