// Downloads that were interrupted go on where they were: after a reload, a crash, a full disk; changed files start anew.
import type { Page } from "@playwright/test";
import type { ServedFile } from "../support/served-file.ts";
import type { TestServer } from "../support/server.ts";
import { PART, type Run, SIZE, digest as digestOf, enter, expect, patternBody, test } from "./fixtures.ts";

/** Starts a download that is held at `at`, and waits until everything before has arrived. */
async function begin(run: Run, file: ServedFile, at: number, sha256?: string): Promise<void> {
  file.hold(at);
  await run(
    async ({ url, sha256 }) => {
      await lab.open(url, { sha256 });
    },
    { url: file.url, sha256 },
  );
  await expect.poll(() => run(() => lab.heard.at(-1) ?? 0, undefined)).toBe(at);
}

async function finish(run: Run, file: ServedFile, sha256?: string): Promise<string> {
  return run(
    async ({ url, sha256 }) => {
      const number = await lab.open(url, { sha256 });
      const digest = await lab.digest(number);
      await Promise.all([lab.model(number).stored, lab.model(number).verified]);
      return digest;
    },
    { url: file.url, sha256 },
  );
}

/** Ends a page the hard way. */
async function crash(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const crashed = page.waitForEvent("crash");
  session.send("Page.crash").catch(() => {});
  await crashed;
}

test("a reload in the middle costs no byte twice", async ({ page, server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  const at = 6 * PART + 1234;
  await begin(run, file, at);
  await page.reload();
  file.breakConnections();
  file.release();
  const next = await enter(page, server);
  const { models } = await next(() => lab.models.report(), undefined);
  expect(models).toMatchObject([{ complete: false, have: at, bytes: SIZE }]);
  expect(await finish(next, file)).toBe(await file.sha256());
  const resumed = file.requests.at(-1);
  expect(resumed?.start).toBe(at);
  // The two looks at the first byte come on top.
  expect(file.sent).toBeLessThanOrEqual(SIZE + 2);
});

test(
  "a crash in the middle of writing is got over, and the checksum is right",
  { tag: "@chromium" },
  async ({ context, page, server, run }) => {
    const file = server.file("/m.gguf", patternBody(SIZE));
    const sha256 = await file.sha256();
    await begin(run, file, 9 * PART + 5, sha256);
    await crash(page);
    file.breakConnections();
    file.release();
    const next = await enter(await context.newPage(), server);
    expect(await finish(next, file, sha256)).toBe(sha256);
    expect(file.sent).toBeLessThanOrEqual(SIZE + 2);
  },
);

test(
  "a page closed abruptly while writing at full speed leaves nothing wrong",
  { tag: "@chromium" },
  async ({ context, page, server, run }) => {
    const file = server.file("/m.gguf", patternBody(24 << 20));
    const sha256 = await file.sha256();
    const started = run(
      async ({ url, sha256 }) => {
        await lab.open(url, { sha256 }, { partBytes: 1 << 20 });
      },
      { url: file.url, sha256 },
    );
    await started;
    await expect.poll(() => file.sent).toBeGreaterThan(8 << 20);
    await page.close({ runBeforeUnload: false });
    file.breakConnections();
    const next = await enter(await context.newPage(), server);
    const { models } = await next(() => lab.models.report(), undefined);
    const before = file.sent;
    const seen = await next(
      async ({ url, sha256 }) => {
        const number = await lab.open(url, { sha256 });
        const digest = await lab.digest(number, 0, undefined, 4 << 20);
        await lab.model(number).verified;
        return digest;
      },
      { url: file.url, sha256 },
    );
    expect(seen).toBe(sha256);
    // What was on the wire when the page went comes twice; what was written does not.
    expect(file.sent - before).toBeLessThanOrEqual((24 << 20) - (models[0]?.have ?? 0) + 1);
  },
);

test("a file that changed meanwhile starts anew, and the old parts go", async ({ page, server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  await begin(run, file, 5 * PART);
  await page.reload();
  file.replace(patternBody(SIZE, 7), '"two"');
  file.release();
  const next = await enter(page, server);
  expect(await finish(next, file)).toBe(await file.sha256());
  const models = async () => (await next(() => lab.models.report(), undefined)).models;
  await expect.poll(models).toMatchObject([{ complete: true, have: SIZE }]);
});

test("with a digest the same bytes may come from another address", async ({ page, server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  const sha256 = await file.sha256();
  await begin(run, file, 5 * PART, sha256);
  await page.reload();
  const other = server.file("/elsewhere/same.gguf", patternBody(SIZE));
  other.etag = null;
  const next = await enter(page, server);
  expect(await finish(next, other, sha256)).toBe(sha256);
  expect(other.sent).toBeLessThanOrEqual(SIZE - 5 * PART + 1);
});

test("a stored model that lost a part is completed, not believed", async ({ server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  await finish(run, file);
  await run(async () => {
    const { id, source } = lab.model(0);
    source.close();
    const root = await navigator.storage.getDirectory();
    const models = await (await root.getDirectoryHandle("rullama")).getDirectoryHandle("models");
    await (await models.getDirectoryHandle(id!)).removeEntry("000003.part");
  }, undefined);
  const before = file.sent;
  expect(await finish(run, file)).toBe(await file.sha256());
  expect(file.sent - before).toBeLessThanOrEqual(SIZE - 3 * PART + 1);
});

async function limitQuota(page: Page, server: TestServer, quotaSize?: number): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Storage.overrideQuotaForOrigin", { origin: server.origin, quotaSize });
}

test("too little room is said before anything is fetched", { tag: "@chromium" }, async ({ page, server, run }) => {
  const size = 24 << 20;
  const file = server.file("/m.gguf", patternBody(size));
  await limitQuota(page, server, 8 << 20);
  const failure = await run((url) => lab.ends(lab.open(url)), file.url);
  expect(failure).toMatchObject({
    code: "quota",
    fields: { needed: size },
    message: expect.stringContaining("keep: false"),
  });
  expect(failure?.fields["free"]).toBeLessThanOrEqual(8 << 20);
  expect(failure?.fields["free"]).toBeGreaterThan(1 << 20);
  expect(file.sent).toBeLessThanOrEqual(1);
  expect(await run(() => lab.files(), undefined)).toEqual({});
  const digest = await run(async (url) => lab.digest(await lab.open(url, { keep: false }), 0, 300_000), file.url);
  expect(digest).toBe(await digestOf(file.body, 0, 300_000));
});

test("in a page, the browser's own word counts", async ({ page, server }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  const run = await enter(page, server, "page");
  const failure = await run((url) => {
    navigator.storage.estimate = () => Promise.resolve({ quota: 1_000_000, usage: 400_000 });
    return lab.ends(lab.open(url));
  }, file.url);
  expect(failure).toMatchObject({ code: "quota", fields: { needed: SIZE, free: 600_000 } });
});

test(
  "room that runs out in the middle: reading goes on, and so does the download later",
  { tag: "@chromium" },
  async ({ page, server, run }) => {
    const size = 8 << 20;
    const file = server.file("/m.gguf", patternBody(size));
    const sha256 = await file.sha256();
    file.hold(2 << 20);
    await run(async ({ url, sha256 }) => void (await lab.open(url, { sha256 })), { url: file.url, sha256 });
    await limitQuota(page, server, 4 << 20);
    file.release();
    const seen = await run(async () => {
      const { stored, verified, source } = lab.model(0);
      const failure = await lab.ends(stored);
      const digest = await lab.digest(0, 0, undefined, 1 << 20);
      const checked = await lab.ends(verified);
      source.close();
      return { failure, digest, checked, models: (await lab.models.report()).models };
    }, undefined);
    expect(seen.failure?.code).toBe("quota");
    expect(seen.checked).toMatchObject({ code: "unverified", message: expect.stringContaining("could not be kept") });
    expect(seen.digest).toBe(sha256);
    expect(seen.models).toMatchObject([{ complete: false, bytes: size }]);
    const have = seen.models[0]!.have;
    expect(have).toBeGreaterThan(1 << 20);
    await limitQuota(page, server);
    const before = file.sent;
    expect(await finish(run, file, sha256)).toBe(sha256);
    expect(file.sent - before).toBeLessThanOrEqual(size - have + 1);
  },
);
