// The benchmark page: its address says what to do, its result is JSON.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { fileBody } from "../support/body.ts";
import { TestServer } from "../support/server.ts";
import { GOLDENS } from "./goldens.ts";
import { MODEL, PROJECTOR, expect, startServer, test } from "./fixtures.ts";

const APP = fileURLToPath(new URL("../../app/", import.meta.url));

test("the benchmark page measures and reports", { tag: "@slow" }, async ({ page }) => {
  // Encoders are compiled for minutes.
  test.setTimeout(900_000);
  const models = await startServer({ cors: true });
  models.file(PROJECTOR, await fileBody(join(GOLDENS, `..${PROJECTOR}`)));
  // As `npm run build:bench` builds it, for a folder on a file server.
  const outDir = test.info().outputPath("bench");
  await build({ root: APP, mode: "bench", logLevel: "error", build: { outDir } });
  const site = await TestServer.start({ folders: { "/": outDir }, isolated: false });
  site.json("/log", {});
  try {
    const query = new URLSearchParams({
      model: `${models.origin}${MODEL}`,
      prompt: "8",
      answer: "3",
      repeat: "1",
      depth: "0,16",
      image: "70",
      audio: "2",
      projector: `${models.origin}${PROJECTOR}`,
      report: "/log",
    });
    const reported = page.waitForRequest((request) => request.url().endsWith("/log") && request.method() === "POST");
    await page.goto(`${site.origin}/bench.html?${query}`);
    const posted = JSON.parse((await reported).postData() ?? "");
    expect(await page.evaluate(() => (globalThis as { result?: unknown }).result)).toEqual(posted);
    expect(posted.tests.map(({ depth }: { depth: number }) => depth)).toEqual([0, 16]);
    for (const { prefillTokensPerSecond, decodeTokensPerSecond } of posted.tests) {
      expect(prefillTokensPerSecond).toBeGreaterThan(0);
      expect(decodeTokensPerSecond).toBeGreaterThan(0);
    }
    expect(posted.encoders.image).toMatchObject({ softTokens: 70, milliseconds: [expect.any(Number)] });
    expect(posted.encoders.audio).toMatchObject({ seconds: 2, softTokens: 50, milliseconds: [expect.any(Number)] });
    expect(posted.load.bytes).toBeGreaterThan(100_000);
    expect(posted.dispatchesPerToken).toBeGreaterThan(10);
    expect(posted.wasmHeap).toBeGreaterThan(1e6);
  } finally {
    await Promise.all([models.close(), site.close()]);
  }
});
