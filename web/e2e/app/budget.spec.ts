// What a first visit loads stays small: scripts and styles as servers send them, without what is fetched only when it is needed.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { builtApp } from "./build.ts";
import { DEMO, expect, say, start, test } from "./fixture.ts";

/** Kilobytes, gzipped. What goes over a limit is worth a second thought, not a higher limit. */
const LIMITS = { js: 150, css: 12 };
/** Requests that the first words on the page wait for: its styles, its scripts, and the one that sets the theme. */
const BEFORE_PAINT = 6;

test.use({ fake: { served: DEMO } });

test("a first visit and a first answer load little", async ({ app }) => {
  await start(app);
  await say(app, "Hello");
  const loaded = await app.evaluate(() =>
    performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname),
  );
  const weigh = (kind: keyof typeof LIMITS) =>
    loaded
      .filter((path) => path.endsWith(`.${kind}`))
      .reduce((sum, path) => sum + gzipSync(readFileSync(join(builtApp(), path))).length / 1000, 0);
  expect(loaded.filter((path) => /katex|common|\/(?:de|ja|ar|mcp|sandbox|pdf[.-].*)-/u.test(path))).toEqual([]);
  for (const kind of ["js", "css"] as const) {
    expect(weigh(kind), kind).toBeGreaterThan(1);
    expect(weigh(kind), kind).toBeLessThan(LIMITS[kind]);
  }
});

test("the first words on the page wait for neither a model, wasm nor another server", async ({ app, server }) => {
  const painted = () => app.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
  await expect.poll(painted).toBeGreaterThan(0);
  const before = await app.evaluate(() => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0]!.startTime;
    return performance
      .getEntriesByType("resource")
      .filter((one) => (one as PerformanceResourceTiming).responseEnd < paint)
      .map(({ name }) => name);
  });
  expect(before.filter((url) => !url.startsWith(server.origin) || /wasm|worker|gguf|\/api\//u.test(url))).toEqual([]);
  expect(before.length).toBeLessThanOrEqual(BEFORE_PAINT);
});
