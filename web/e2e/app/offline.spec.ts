// The service worker: the app starts without a network, and asks before it changes over to a new version.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { builtApp } from "./build.ts";
import { DEMO, expect, say, start, test } from "./fixture.ts";

test.use({ fake: { served: DEMO }, serviceWorkers: "allow" });

/** Waits until a service worker has everything and controls the page. */
async function controlled(page: import("@playwright/test").Page) {
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
}

test("the app starts offline after a first visit, conversations included", async ({ app, context }) => {
  await start(app);
  await say(app, "Before the tunnel");
  await controlled(app);
  await context.setOffline(true);
  await app.reload();
  await expect(app.getByRole("article").last()).toContainText("You said: Before the tunnel");
  await app.getByRole("button", { name: "Load demo:latest" }).click();
  await say(app, "In the tunnel");
  const broken = await app.evaluate(() =>
    performance.getEntriesByType("resource").filter((one) => (one as PerformanceResourceTiming).responseStatus >= 400),
  );
  expect(broken).toEqual([]);
});

test("the manifest and the icons are there", async ({ app, server }) => {
  const manifest = (await (await app.request.get(`${server.origin}/manifest.webmanifest`)).json()) as {
    display: string;
    icons: { src: string; sizes: string; purpose: string }[];
  };
  expect(manifest.display).toBe("standalone");
  expect(manifest.icons.map((icon) => `${icon.sizes} ${icon.purpose}`)).toEqual([
    "192x192 any",
    "512x512 any",
    "512x512 maskable",
  ]);
  for (const icon of manifest.icons) {
    expect((await app.request.get(`${server.origin}/${icon.src}`)).headers()["content-type"]).toBe("image/png");
  }
});

test("a new version waits for the user", async ({ app, server }) => {
  await controlled(app);
  const script = await readFile(join(builtApp(), "sw.js"), "utf8");
  server.script("/sw.js", `${script}\n// newer`);
  await app.evaluate(async () => (await navigator.serviceWorker.ready).update());
  await expect(app.getByText("A new version of rullama is ready.")).toBeVisible();
  const reloaded = app.waitForEvent("load");
  await app.getByRole("button", { name: "Reload", exact: true }).click();
  await reloaded;
  await expect(app.getByRole("button", { name: "Try it now" })).toBeVisible();
  await expect(app.getByText("A new version of rullama is ready.")).toHaveCount(0);
});
