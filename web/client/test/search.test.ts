import { describe, expect, it } from "vitest";
import { Embeddings } from "../src/embeddings.js";
import { SearchIndex, cosine, search } from "../src/search.js";
import type { EmbedOptions, Embedded } from "../src/types.js";

/** Makes vectors of how often letters occur, and remembers what it was asked. */
class Letters {
  readonly info = { name: "letters" };
  readonly asked: { input: string | string[]; options: EmbedOptions }[] = [];

  async embed(input: string | string[], options: EmbedOptions = {}): Promise<Embedded> {
    this.asked.push({ input, options });
    const texts = typeof input === "string" ? [input] : input;
    const vectors = texts.map((text) => Float32Array.from([..."abc"].map((letter) => text.split(letter).length - 1)));
    return { vectors, tokens: texts.length, cut: 0 };
  }
}

describe("cosine", () => {
  it("compares directions, not lengths", () => {
    expect(cosine([1, 0], [5, 0])).toBeCloseTo(1);
    expect(cosine([1, 0], [0, 2])).toBe(0);
    expect(cosine([1, 1], [-3, -3])).toBeCloseTo(-1);
    expect(cosine([0, 0], [1, 1])).toBe(0);
    expect(() => cosine([1], [1, 2])).toThrow("cannot be compared");
  });
});

describe("an index", () => {
  it("finds the nearest first and knows questions from documents", async () => {
    const model = new Letters();
    const index = new SearchIndex(model, { dimensions: 3 });
    expect(await index.search("a")).toEqual([]);
    expect(await index.add(["aab", { id: "mine", text: "bbb" }, "ccc"])).toEqual(["1", "mine", "2"]);
    const hits = await index.search("b", { top: 2 });
    expect(hits.map(({ id }) => id)).toEqual(["mine", "1"]);
    expect(hits[0]?.score).toBeCloseTo(1);
    expect(model.asked.map(({ options }) => options.purpose)).toEqual(["document", "query"]);
    expect(model.asked.every(({ options }) => options.dimensions === 3)).toBe(true);
    expect(index.remove("mine")).toBe(true);
    expect(index.remove("mine")).toBe(false);
    expect((await index.search("b"))[0]?.id).toBe("1");
    expect(index.size).toBe(2);
  });

  it("replaces what has the same id, and never gives out one that is taken", async () => {
    const index = new SearchIndex(new Letters());
    await index.add([{ id: "1", text: "a" }]);
    await index.add([{ id: "1", text: "b" }]);
    expect(await index.add(["c"])).toEqual(["2"]);
    expect((await index.search("b"))[0]).toMatchObject({ id: "1", text: "b" });
  });

  it("is not needed to ask once", async () => {
    const [hit] = await search(new Letters(), "c", ["aaa", "ccb"], { top: 1 });
    expect(hit?.text).toBe("ccb");
  });
});

describe("embeddings.create", () => {
  it("has OpenAI's shape", async () => {
    const model = new Letters();
    const made = await new Embeddings(model).create({ input: ["a", "bc"], dimensions: 3, purpose: "query" });
    expect(made).toEqual({
      object: "list",
      data: [
        { object: "embedding", index: 0, embedding: [1, 0, 0] },
        { object: "embedding", index: 1, embedding: [0, 1, 1] },
      ],
      model: "letters",
      usage: { prompt_tokens: 2, total_tokens: 2 },
    });
    expect(model.asked[0]?.options).toEqual({ dimensions: 3, purpose: "query" });
  });

  it("gives bytes where they are asked for", async () => {
    const made = await new Embeddings(new Letters()).create({ input: "a", encoding_format: "base64", model: "mine" });
    const bytes = Uint8Array.from(atob(made.data[0]?.embedding as string), (char) => char.charCodeAt(0));
    expect([...new Float32Array(bytes.buffer)]).toEqual([1, 0, 0]);
    expect(made.model).toBe("mine");
    await expect(
      new Embeddings(new Letters()).create({ input: "a", encoding_format: "int8" as "float" }),
    ).rejects.toThrow("must be float or base64");
  });
});
