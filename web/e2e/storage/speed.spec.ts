// How fast bytes come and go with the sizes of production. Printed, never asserted; SPEED_MIB=1024 makes it worth reading.
import { performance } from "node:perf_hooks";
import { expect, patternBody, test } from "./fixtures.ts";

const SIZE = Number(process.env["SPEED_MIB"] ?? 48) << 20;

test("speed of fetching, keeping and reading back", { tag: "@slow" }, async ({ server, run }) => {
  test.setTimeout(600_000);
  const file = server.file("/m.gguf", patternBody(SIZE));
  const timed = async (what: string, work: () => Promise<unknown>) => {
    const start = performance.now();
    await work();
    console.log(`${what}: ${(SIZE / 1000 / (performance.now() - start)).toFixed(0)} MB/s`);
  };
  await timed("fetch only", () =>
    run(async (url) => {
      const reader = (await fetch(url, { cache: "no-store" })).body!.getReader();
      while (!(await reader.read()).done);
    }, file.url),
  );
  const readAll = async ({ url, keep }: { url: string; keep: boolean }) => {
    const number = lab.opened.push(await lab.storage.openModel(url, { keep, hash: () => Promise.reject() })) - 1;
    const { source, stored } = lab.model(number);
    const step = 16 << 20;
    for (let at = 0; at < source.size; at += step) await source.read(at, Math.min(step, source.size - at));
    await stored;
    source.close();
  };
  await timed("ranges, not kept", () => run(readAll, { url: file.url, keep: false }));
  await timed("fetch, keep and read while it arrives", () => run(readAll, { url: file.url, keep: true }));
  await timed("read back", () => run(readAll, { url: file.url, keep: true }));
  const { models } = await run(() => lab.models.report(), undefined);
  expect(models).toMatchObject([{ bytes: SIZE, complete: true }]);
});
