// The service worker: the app starts without a network, and asks before it changes over to a new version.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { builtApp } from "./build.ts";
import { change, controlled, DEMO, expect, say, start, test } from "./fixture.ts";

// Late in a long session, Firefox once failed to load a page again without a network (NS_ERROR_OFFLINE); the cause is unknown.
test.use({ fake: { served: DEMO }, serviceWorkers: "allow", ownBrowser: "offline" });

test("the app starts offline after a first visit, conversations included", async ({ app, context, inFirefox }) => {
  await start(app);
  await say(app, "Before the tunnel");
  await controlled(app);
  await context.setOffline(true);
  await app.reload();
  await expect(app.getByRole("article").last()).toContainText("You said: Before the tunnel");
  await expect(app.getByText("You are offline. Chats and downloaded models still work.")).toBeVisible();
  await change(app, { answer: "```mermaid\ngraph TD\n  A --> B\n```" });
  await say(app, "In the tunnel");
  await app.getByRole("button", { name: "Show diagram" }).click();
  await expect(app.getByRole("img", { name: "Mermaid diagram" })).toBeVisible();
  const broken = await app.evaluate(() =>
    performance.getEntriesByType("resource").filter((one) => (one as PerformanceResourceTiming).responseStatus >= 400),
  );
  expect(broken).toEqual([]);
  await context.setOffline(false);
  // Debian's Firefox does not tell pages that automation gave the network back.
  if (!inFirefox) await expect(app.getByText("You are offline.", { exact: false })).toHaveCount(0);
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
  await expect(app.getByText("A new version of rullama is available.")).toBeVisible();
  const reloaded = app.waitForEvent("load");
  await app.getByRole("button", { name: "Reload", exact: true }).click();
  await reloaded;
  await expect(app.getByRole("button", { name: "Try it now" })).toBeVisible();
  await expect(app.getByText("A new version of rullama is available.")).toHaveCount(0);
});

test("an update in one tab leaves the others whole until they are reloaded", async ({ app, context, server }) => {
  await controlled(app);
  const other = await context.newPage();
  await other.goto(server.origin);
  await controlled(other);
  const built = (name: string) => readFile(join(builtApp(), name), "utf8");
  const [script, page] = await Promise.all([built("sw.js"), built("index.html")]);
  // The new build has another first script, and one file fewer, which the server no longer has, either.
  const files = [...script.matchAll(/\{"revision":null,"url":"([^"]+)"\},/gu)];
  const [entry, gone] = files.find(([, url]) => !page.includes(url!))!;
  const index = page.replace(/(src="\/assets\/index-[^"]+\.js)"/u, '$1?new"');
  expect(index).not.toBe(page);
  for (const path of ["/", "/index.html"]) server.html(path, index);
  server.html(`/${gone}`, "gone", 404);
  server.script("/sw.js", script.replace(entry, ""));
  try {
    await app.evaluate(async () => (await navigator.serviceWorker.ready).update());
    const reloaded = app.waitForEvent("load");
    await app.getByRole("button", { name: "Reload", exact: true }).click();
    await reloaded;
    const banner = other.getByText("rullama was updated in another tab.");
    await expect(banner).toBeVisible();
    const status = () => other.evaluate(async (path) => (await fetch(path)).status, `/${gone}`);
    const caches = () => other.evaluate(async () => (await window.caches.keys()).length);
    expect([await status(), await caches()]).toEqual([200, 2]);
    // Another visit to the new version does not take the files away, either.
    await app.reload();
    await app.getByRole("main").waitFor();
    expect([await status(), await caches()]).toEqual([200, 2]);
    await other.getByRole("button", { name: "Reload", exact: true }).click();
    await expect(banner).toHaveCount(0);
    // The tab that was left is gone by the visit after that, and so are its files.
    await expect
      .poll(async () => {
        await other.reload();
        await other.getByRole("main").waitFor();
        return caches();
      })
      .toBe(1);
    expect(await status()).toBe(404);
  } finally {
    for (const path of ["/", "/index.html", `/${gone}`]) server.forget(path);
    server.forget("/sw.js");
  }
});

test("a tab whose conversations a newer version took over says so", async ({ app, context, server }) => {
  await start(app);
  const other = await context.newPage();
  server.html("/empty", "<!doctype html><title>empty</title>");
  await other.goto(`${server.origin}/empty`);
  await other.evaluate(async () => {
    const opening = indexedDB.open("rullama", 99);
    await new Promise((resolve) => (opening.onsuccess = resolve));
    opening.result.close();
  });
  await expect(app.getByText("A newer version of rullama is open in another tab.")).toBeVisible();
});
