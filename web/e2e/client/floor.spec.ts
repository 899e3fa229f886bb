// A browser whose GPU offers what every WebGPU has and no more: no subgroups, no f16, bindings of 128 MiB, buffers of 256 MiB, as on many phones.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { splitFile } from "../../client/test/storage/split-file.ts";
import { bytesBody } from "../support/body.ts";
import { expect, test } from "../support/browser.ts";
import { NAME, startServer } from "./fixtures.ts";
import { GOLDENS, golden } from "./goldens.ts";

/** Hides what an adapter has beyond the floor; runs before anything else. */
function onTheFloor(): void {
  const floor: Record<string, number> = {
    maxBufferSize: 256 << 20,
    maxStorageBufferBindingSize: 128 << 20,
    maxStorageBuffersPerShaderStage: 8,
    maxComputeWorkgroupStorageSize: 16_384,
    maxComputeInvocationsPerWorkgroup: 256,
  };
  const { get } = Object.getOwnPropertyDescriptor(GPUAdapter.prototype, "limits")!;
  Object.defineProperty(GPUAdapter.prototype, "features", { get: () => new Set() });
  Object.defineProperty(GPUAdapter.prototype, "limits", {
    get(this: GPUAdapter) {
      const limits = get!.call(this) as GPUSupportedLimits;
      return new Proxy(limits, {
        get: (all, name) => floor[String(name)] ?? (Reflect.get(all, name, all) as unknown),
      });
    },
  });
}

test("a model gives its golden answer, from a split file", async ({ page }) => {
  test.setTimeout(600_000);
  const server = await startServer();
  const whole = new Uint8Array(await readFile(join(GOLDENS, "gguf", `${NAME}.gguf`)));
  for (const [index, part] of (await splitFile(whole, 3)).entries()) {
    server.file(`/split/m-0000${index + 1}-of-00003.gguf`, bytesBody(part));
  }
  const wanted = await golden(NAME, "short", 6);
  try {
    await page.addInitScript(onTheFloor);
    await page.goto(server.origin);
    await page.waitForFunction(() => "rullama" in globalThis);
    const made = await page.evaluate(async ({ prompt, greedy }) => {
      const report = await rullama.deviceReport();
      const options = { worker: false, keep: false, context: 128, cache: "f32" } as const;
      const model = await rullama.load("/split/m-00003-of-00003.gguf", options);
      const session = await model.session();
      for await (const event of session.completeIds(prompt, { temperature: 0, maxTokens: greedy.length })) void event;
      const tokens = [...(await session.tokens())];
      const { name } = model.info;
      await model.free();
      return { report, tokens, name };
    }, wanted);
    expect(made.report).toMatchObject({ features: [], limits: { maxStorageBufferBindingSize: 128 << 20 } });
    expect(made.report).not.toHaveProperty("subgroups");
    expect(made.name).toBe("m.gguf");
    expect(made.tokens).toEqual([...wanted.prompt, ...wanted.greedy]);
  } finally {
    await server.close();
  }
});
