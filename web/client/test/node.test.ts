// Outside of browsers: models run on the CPU, and what needs a GPU says so.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openEngine, openHeader } from "../src/index.js";
import type { GenerateEvent, Message } from "../src/types.js";

const golden = (name: string) => new URL(`../../../goldens/gguf/${name}`, import.meta.url);
const GOLDEN = golden("micro-e2b-Q8_0.gguf");

afterEach(() => vi.unstubAllGlobals());

describe("under Node", () => {
  it("a model's header is read, it answers on the CPU, and a GPU is missing", async () => {
    const engine = openEngine({ worker: false });
    const file = new File([await readFile(GOLDEN)], "micro.gguf");
    const { info, memory } = await engine.inspect(file);
    expect(info).toMatchObject({ kind: "decoder", name: "micro.gguf", architecture: "gemma4" });
    expect(memory.gpu).toBeGreaterThan(0);
    await expect(engine.load(file, { device: "gpu" })).rejects.toMatchObject({ code: "no_webgpu" });
    const model = await engine.load(file);
    expect(model.info).toMatchObject({ device: "CPU", runsOn: "cpu" });
    let last: GenerateEvent | undefined;
    for await (const event of model.complete("Hello", { temperature: 0, maxTokens: 3 })) last = event;
    expect(last).toMatchObject({ type: "done", usage: { answerTokens: 3 } });
    expect(await engine.storage()).toMatchObject({ models: [] });
    engine.close();
  });
});

describe("a header", () => {
  const asked: Message[] = [{ role: "user", content: "Hello <turn|>" }];

  it("tokenizes, renders and describes, without a look at the GPU", async () => {
    vi.stubGlobal("navigator", {
      get gpu() {
        throw new Error("the GPU was looked at");
      },
    });
    const header = await openHeader(fileURLToPath(GOLDEN));
    expect([header.name, header.kind]).toEqual(["micro-e2b-Q8_0.gguf", "decoder"]);
    expect(header.value("general.architecture")).toBe("gemma4");
    expect(header.keys()).toContain("tokenizer.ggml.tokens");
    const tokens = header.value("tokenizer.ggml.tokens") as string[];
    expect(header.value("nothing")).toBe(undefined);
    const embeddings = header.tensors().find(({ name }) => name === "token_embd.weight")!;
    expect(embeddings).toMatchObject({ type: "Q8_0", shape: [expect.any(Number), tokens.length] });
    // A block of Q8_0 has 32 weights in 34 bytes.
    expect(embeddings.bytes).toBe(((embeddings.shape[0]! * embeddings.shape[1]!) / 32) * 34);

    const ids = header.tokenize("Hello, Käse!");
    expect(header.detokenize(ids)).toBe("Hello, Käse!");
    const [bos] = header.tokenize("", { bos: true });
    expect(header.tokenize("a", { bos: true })).toEqual(Uint32Array.of(bos!, ...header.tokenize("a")));
    expect(header.tokenize("<turn|>", { special: true })).toHaveLength(1);
    expect(header.tokenize("<turn|>").length).toBeGreaterThan(1);

    const { text, ids: prompt } = header.render(asked);
    expect(text).toBe("<bos><|turn>user\nHello <turn|><turn|>\n<|turn>model\n");
    expect(header.detokenize(prompt)).toBe(text);
    // What the user types is no marker.
    const [close] = header.tokenize("<turn|>", { special: true });
    expect(prompt.filter((id) => id === close)).toHaveLength(1);
    header.free();
  });

  it("renders tools, thinking and the beginning of a reply", async () => {
    const header = await openHeader(GOLDEN);
    const tools = [{ type: "function" as const, function: { name: "add", description: "Adds." } }];
    const begun: Message = { role: "assistant", content: "It is", thinking: "Hm.", prefix: true };
    const { text } = header.render([...asked, begun], { tools, think: true });
    expect(text).toContain("<|think|>");
    expect(text).toContain("<|tool>declaration:add{");
    expect(text.endsWith("<|turn>model\n<|channel>thought\nHm.\n<channel|>It is")).toBe(true);
    expect(header.render(asked, { tools, toolChoice: "none" }).text).not.toContain("add");
    const call: Message = { role: "assistant", content: "", toolCalls: [{ name: "add", arguments: {} }] };
    expect(() => header.render([...asked, call, begun])).toThrow(expect.objectContaining({ code: "bad_options" }));
    header.free();
  });

  it("is read from paths, files and addresses", async () => {
    const bytes = await readFile(GOLDEN);
    const server = createServer((request, response) => {
      const [, first, last] = /bytes=(\d+)-(\d+)/u.exec(request.headers.range ?? "") ?? [];
      if (request.headers["authorization"] !== "secret") return void response.writeHead(403).end();
      if (first === undefined) return void response.writeHead(200, { "content-length": bytes.length }).end(bytes);
      const part = bytes.subarray(Number(first), Number(last) + 1);
      const range = `bytes ${first}-${Number(first) + part.length - 1}/${bytes.length}`;
      response.writeHead(206, { "content-range": range, "content-length": part.length, etag: '"1"' }).end(part);
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const headers = { authorization: "secret" };
    try {
      for (const source of [GOLDEN, GOLDEN.href, fileURLToPath(GOLDEN), new File([bytes], "m"), new Blob([bytes])]) {
        const header = await openHeader(source);
        expect(header.tokenize("Hello").length).toBeGreaterThan(0);
        header.free();
      }
      const header = await openHeader(`http://127.0.0.1:${port}/x/m.gguf`, { headers });
      expect([header.name, header.detokenize(header.tokenize("Hello"))]).toEqual(["m.gguf", "Hello"]);
      header.free();
    } finally {
      server.close();
    }
  });

  it("of what is no model is refused", async () => {
    const code = async (source: string | URL | Blob) =>
      openHeader(source).catch((error: { code: string }) => error.code);
    expect(await code("./nothing.gguf")).toBe("not_found");
    expect(await code(fileURLToPath(new URL(".", import.meta.url)))).toBe("bad_options");
    expect(await code(new Blob(["GGUF and nothing more"]))).toBe("bad_file");
    expect(await code(golden("micro-e2b-mmproj-F16.gguf"))).toBe("projector");
  });
});
