// Documents: reading, cutting, finding and citing.
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { attach, kindOf } from "../src/lib/attachments.js";
import { toMessages } from "../src/lib/conversation.js";
import { documentText } from "../src/lib/document-text.js";
import { excerptsBlock } from "../src/lib/excerpts.js";
import { exported } from "../src/lib/export.js";
import { imported } from "../src/lib/import.js";
import { keywordScores } from "../src/lib/keywords.js";
import { memoryLibrary } from "../src/lib/library.js";
import { pageAt, passagesOf, widened } from "../src/lib/passages.js";
import { textOfItems } from "../src/lib/pdf-layout.js";
import { pieces } from "../src/chat/citations.js";
import { openChats } from "../src/state/chats.svelte.js";
import { materialFor } from "../src/state/documents.svelte.js";
import { embedder } from "../src/state/embedder.svelte.js";
import { collections } from "../src/state/library.svelte.js";
import { model } from "../src/state/model.svelte.js";
import { find, MOST_PASSAGES } from "../src/state/retrieval.svelte.js";
import { parse, serverAddress } from "../src/state/settings.svelte.js";
import { conversation, turn } from "./support.js";

const file = (name: string, content: BlobPart, type = "") => new File([content], name, { type });

describe("files", () => {
  test("are told apart by name and type", () => {
    expect(kindOf(file("a.png", "", "image/png"))).toBe("image");
    expect(kindOf(file("a.ts", "", "video/mp2t"))).toBe("document");
    expect(kindOf(file("a.pdf", "", "application/pdf"))).toBe("document");
    expect(kindOf(file("README", "", "text/plain"))).toBe("document");
    expect(kindOf(file("a.gguf", "", ""))).toBeUndefined();
  });

  test("are decoded whatever wrote them; what is no text is refused", async () => {
    const read = (bytes: BlobPart) => documentText(file("a.txt", bytes));
    expect(await read("größer\r\nals")).toBe("größer\nals");
    expect(await read(new Uint8Array([0x67, 0xf6, 0xdf]))).toBe("göß");
    expect(await read(new Uint8Array([0xff, 0xfe, 0x41, 0, 0x42, 0]))).toBe("AB");
    await expect(read(new Uint8Array([0x41, 0, 0x42]))).rejects.toThrow("a.txt is not a text file.");
    await expect(read(" \n ")).rejects.toThrow("a.txt is empty.");
    await expect(documentText(file("a.txt", new Uint8Array(20_000_001)))).rejects.toThrow("larger than 20 MB");
    await expect(attach(file("a.xyz", "text"))).rejects.toThrow("a.xyz is not");
  });
});

test("passages know their place and page", () => {
  const text = "One.\n\n  Two is\nlonger. \fThree.";
  const found = passagesOf(text);
  expect(found.map((one) => one.text)).toEqual(["One.", "Two is\nlonger.", "Three."]);
  for (const { text: words, start, end } of found) expect(text.slice(start, end)).toBe(words);
  expect(found.map(({ start }) => pageAt(text, start))).toEqual([1, 1, 2]);
  expect(pageAt("no pages", 3)).toBeUndefined();
  expect(widened(text, found, 0, 10).text).toBe("One.\n\n  Two is\nlonger.");
  expect(widened(text, found, 2, 1000)).toMatchObject({ start: 0, end: text.length });
});

test("pieces of a page become lines and paragraphs", () => {
  const at = (str: string, y: number, hasEOL = true) => ({ str, hasEOL, height: 10, transform: [1, 0, 0, 1, 50, y] });
  const items = [at("A ", 700, false), at("title", 700), at("then text", 670), at("in lines\0", 658)];
  expect(textOfItems(items)).toBe("A title\n\nthen text\nin lines");
});

test("words are found by how rare they are, in scripts without spaces, too", () => {
  const best = (query: string, texts: string[]) => {
    const scores = keywordScores(query, texts);
    return scores.indexOf(Math.max(...scores));
  };
  const texts = ["the cat and the dog", "the whale and the sea", "the the the the"];
  expect(best("the whale", texts)).toBe(1);
  expect(keywordScores("nothing", texts)).toEqual([0, 0, 0]);
  expect(best("天気", ["今日は映画を見た", "明日の天気は雨です"])).toBe(1);
});

test("citations are numbers of sources that exist", () => {
  expect(pieces("So it is [1], and [2, 3]; but not [9] or [a].", 3)).toEqual([
    "So it is ",
    1,
    ", and ",
    2,
    3,
    "; but not [9] or [a].",
  ]);
});

test("the model is shown documents, passages, and calls with their results", () => {
  const attachments = [{ id: "d", kind: "document" as const, name: 'a"b.md' }];
  const calls = [{ name: "calculator", arguments: { expression: "1+1" }, result: "2" }];
  const path = [
    turn("1", null, { content: "first", attachments }),
    turn("2", "1", { role: "assistant", content: "It is 2.", steps: [{ content: "Let me see.", calls }] }),
    turn("3", "2", { content: "second" }),
  ];
  const excerpts = excerptsBlock([{ name: "b.pdf", page: 3, text: "Found." }]);
  const messages = toMessages(path, { documents: new Map([["d", "Whole."]]), excerpts });
  expect(messages).toEqual([
    { role: "user", content: '<document name="a b.md">\nWhole.\n</document>\n\nfirst' },
    {
      role: "assistant",
      content: "Let me see.",
      toolCalls: [{ name: "calculator", arguments: { expression: "1+1" } }],
    },
    { role: "tool", toolName: "calculator", content: "2" },
    { role: "assistant", content: "It is 2." },
    { role: "user", content: `${excerpts}\n\nsecond` },
  ]);
  expect(excerpts).toContain("[1] b.pdf, page 3:\nFound.");
});

test("documents, calls and sources are exported and imported", async () => {
  const calls = [{ name: "echo", arguments: { text: "x" }, result: "y", isError: true }];
  const turns = [
    turn("1", null, { attachments: [{ id: "d", kind: "document", name: "a.md" }] }),
    turn("2", "1", {
      role: "assistant",
      finish: "stop",
      steps: [{ content: "", calls }],
      sources: [{ name: "a.md", page: 2, text: "words", document: "d", start: 1, end: 6 }],
      searched: "keywords",
      edited: true,
    }),
  ];
  async function* stored() {
    yield { conversation: conversation({ leaf: "2" }), turns };
  }
  const blob = new Blob(["words"], { type: "text/plain" });
  const all = [];
  for await (const one of imported(exported(stored(), async () => blob))) all.push(one);
  const [back] = all;
  expect(await back?.blobs[0]?.blob.text()).toBe("words");
  expect(back?.turns[0]?.attachments).toMatchObject([{ kind: "document", name: "a.md" }]);
  expect(back?.turns[1]).toMatchObject({
    steps: [{ content: "", calls }],
    sources: [{ name: "a.md", page: 2, text: "words" }],
    // Without it the sources would not be listed.
    searched: "keywords",
    edited: true,
  });
});

describe("in a chat", () => {
  const ask = (text: string, attachments: string[]) =>
    turn("1", null, {
      content: text,
      attachments: attachments.map((id) => ({ id, kind: "document", name: `${id}.md` })),
    });
  const texts = new Map<string, string>();
  beforeAll(async () => {
    const chats = await openChats();
    chats.blob = async (id) => (texts.has(id) ? new Blob([texts.get(id) ?? ""]) : undefined);
    collections.library = async () => library;
  });
  const library = memoryLibrary();
  const vectors = { made: 0 };
  beforeEach(() => {
    // A token per word, and vectors that know cats from the rest.
    model.api = { tokenize: async (text: string) => new Uint32Array(text.split(/\s+/u).length) } as never;
    model.info = { context: 400, kind: "decoder" } as never;
    vectors.made = 0;
  });
  const vector = (text: string) => Float32Array.from(/cat|feline/u.test(text) ? [1, 0] : [0, 1]);
  const embedding = {
    info: { name: "fake-embedding" },
    embed: async (given: string[]) => {
      vectors.made += given.length;
      return { vectors: given.map(vector), tokens: 0, cut: 0 };
    },
  };

  test("documents that fit are shown whole, the newest first; of others, passages", async () => {
    texts.set("small", "The cat is grey.");
    texts.set(
      "large",
      Array.from({ length: 40 }, (_, at) => `Paragraph ${at} about the weather. ${"x ".repeat(20)}`).join("\n\n"),
    );
    Object.defineProperty(embedder, "ready", { value: async () => undefined, configurable: true });
    const material = await materialFor([ask("Paragraph 7 weather", ["large", "small"])], { conversation: "c" });
    expect([...material.documents.keys()]).toEqual(["small"]);
    expect(material.searched).toBe("keywords");
    expect(material.sources[0]?.text).toContain("Paragraph 7 ");
    const shown = material.sources.map(({ text }) => text.split(/\s+/u).length).reduce((sum, count) => sum + count, 0);
    expect(shown).toBeLessThan(300);
    const alone = await materialFor([ask("What?", ["small"])], { conversation: "c" });
    expect(alone).toEqual({ documents: new Map([["small", "The cat is grey."]]), sources: [] });
    expect(await materialFor([ask("What?", ["lost"])], { conversation: "c" })).toEqual({
      documents: new Map(),
      sources: [],
    });
  });

  test("meaning finds what words do not, and passages are embedded once", async () => {
    Object.defineProperty(embedder, "ready", { value: async () => embedding, configurable: true });
    const document = { id: "d", name: "d.md", text: "Dogs bark.\n\nThe cat sleeps.\n\nIt rains." };
    const first = await find("feline", [document], { top: 1 });
    expect(first).toMatchObject({
      searched: "meaning",
      found: [{ text: "The cat sleeps.", start: 12, end: 27, score: 1 }],
    });
    expect(vectors.made).toBe(4);
    await find("feline", [document], { top: 1 });
    expect(vectors.made).toBe(5);
    const many = { id: "m", name: "m.md", text: "A cat.\n\n".repeat(MOST_PASSAGES + 1) };
    expect(await find("cat", [many], { top: 1 })).toMatchObject({ searched: "too_many", found: [{ start: 0 }] });
    expect(vectors.made).toBe(5);
    const stop = AbortSignal.abort();
    await expect(find("feline", [document], { top: 1, signal: stop })).rejects.toThrow();
  });
});

test("addresses of servers are such as the policy allows; settings are read with suspicion", () => {
  expect(serverAddress("https://example.org/mcp")).toBe("https://example.org/mcp");
  expect(serverAddress("http://localhost:3000/mcp")).toBe("http://localhost:3000/mcp");
  for (const bad of ["http://example.org/", "ftp://x", "javascript:alert(1)", "https://user:pass@example.org/", "x"])
    expect(serverAddress(bad), bad).toBeUndefined();
  const servers = [
    { id: "a", name: "A", url: "https://a.example/", token: "t" },
    { id: "b", name: "B", url: "http://b/" },
    7,
  ];
  const read = parse(JSON.stringify({ tools: ["calculator", 5, "calculator"], servers, allowedTools: "all" }));
  expect(read).toMatchObject({ tools: ["calculator"], allowedTools: [], servers: [servers[0]] });
});
