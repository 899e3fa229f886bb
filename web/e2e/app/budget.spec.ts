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

test("the first words on the page wait only for what the page names", async ({ page, context, server }) => {
  const html = readFileSync(join(builtApp(), "index.html"), "utf8");
  const named = [...html.matchAll(/(?:src|href)="(\/[^"]+\.(?:js|css))"/gu)].map(([, path]) => path);
  expect(named.filter((path) => /wasm|worker/u.test(path!))).toEqual([]);
  expect(named.length).toBeLessThanOrEqual(BEFORE_PAINT);
  // Whatever else it asks for is never answered: a model, wasm, the server's models, other servers.
  const others = ({ pathname, origin }: URL) =>
    origin !== server.origin || (pathname !== "/" && !named.includes(pathname));
  await context.route(others, () => {});
  await page.goto(server.origin, { waitUntil: "commit" });
  await expect(page.getByRole("main").getByRole("heading").first()).toBeVisible();
  const painted = () => page.evaluate(() => performance.getEntriesByName("first-contentful-paint").length);
  await expect.poll(painted).toBe(1);
});
