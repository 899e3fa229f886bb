// Outside of browsers: what needs no GPU works, and what needs one says so.
import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { openEngine } from "../src/index.js";

const GOLDEN = new URL("../../../goldens/gguf/micro-e2b-Q8_0.gguf", import.meta.url);

describe("under Node", () => {
  it("a model's header is read, and loading says that WebGPU is missing", async () => {
    const engine = openEngine({ worker: false });
    const file = new File([await readFile(GOLDEN)], "micro.gguf");
    const { info, memory } = await engine.inspect(file);
    expect(info).toMatchObject({ kind: "decoder", name: "micro.gguf", architecture: "gemma4" });
    expect(memory.gpu).toBeGreaterThan(0);
    await expect(engine.load(file)).rejects.toMatchObject({ code: "no_webgpu" });
    expect(await engine.storage()).toMatchObject({ models: [] });
    engine.close();
  });
});
