// A model of several gigabytes does not pass through the wasm heap as a whole, nor does its table.
import { expect, test } from "./fixtures.ts";
import { largeModel } from "./large.ts";

test("a file of gigabytes is loaded with a small heap", { tag: "@slow" }, async ({ client, server }) => {
  const body = await largeModel(3000, 2 ** 32);
  expect(body.size).toBeGreaterThan(2 ** 32 + 5e8);
  const file = server.file("/large.gguf", body);
  const made = await client.evaluate(async () => {
    const fit = await rullama.openEngine().inspect("/large.gguf", { context: 64 });
    const model = await rullama.load("/large.gguf", { keep: false, context: 64, table: "file" });
    const memory = await model.memory();
    await model.free();
    return { fit, memory };
  });
  const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
  console.log(`file ${mb(body.size)}, on the GPU ${mb(made.memory.gpu)}, wasm heap ${mb(made.memory.wasmHeap)}`);
  expect(made.fit.info.fileBytes).toBe(body.size);
  expect(made.memory.wasmHeap).toBeLessThan(256e6);
  expect(made.memory.gpu).toBeGreaterThan(200e6);
  // The table, as large again, stayed where it was; a browser takes up to 100 MB of a request before anybody reads them.
  expect(file.sent).toBeLessThan(made.memory.gpu + 150e6);
});
