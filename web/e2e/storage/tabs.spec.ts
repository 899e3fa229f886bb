// Two tabs and one model: one writes, the other follows and takes over; nothing is deleted under a reader.
import { PART, SIZE, enter, expect, patternBody, test } from "./fixtures.ts";

test("two tabs share one download", async ({ context, server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  const sha256 = await file.sha256();
  file.hold(4 * PART);
  const load = async ({ url, sha256 }: { url: string; sha256: string }) => {
    await lab.open(url, { sha256 }, { waitAhead: 1 << 30 });
  };
  await run(load, { url: file.url, sha256 });
  const second = await enter(await context.newPage(), server);
  await second(load, { url: file.url, sha256 });
  const readings = [run, second].map((tab) =>
    tab(async () => {
      const digest = await lab.digest(0);
      await Promise.all([lab.model(0).stored, lab.model(0).verified]);
      return digest;
    }, undefined),
  );
  file.release();
  expect(await Promise.all(readings)).toEqual([sha256, sha256]);
  expect(file.sent).toBeLessThanOrEqual(SIZE + 2);
  expect(await second(() => lab.heard.at(-1), undefined)).toBe(SIZE);
});

for (const end of ["closed", "crashed"]) {
  test(`the second tab takes over when the first is ${end}`, async ({ context, page, server, run }) => {
    const file = server.file("/m.gguf", patternBody(SIZE));
    const sha256 = await file.sha256();
    file.hold(4 * PART + 99);
    const load = async ({ url, sha256 }: { url: string; sha256: string }) => {
      await lab.open(url, { sha256 }, { waitAhead: 1 << 30 });
    };
    await run(load, { url: file.url, sha256 });
    await expect.poll(() => run(() => lab.heard.at(-1), undefined)).toBe(4 * PART + 99);
    const second = await enter(await context.newPage(), server);
    await second(load, { url: file.url, sha256 });
    const reading = second(async () => {
      const digest = await lab.digest(0);
      await Promise.all([lab.model(0).stored, lab.model(0).verified]);
      return digest;
    }, undefined);
    if (end === "closed") await page.close();
    else {
      const session = await context.newCDPSession(page);
      session.send("Page.crash").catch(() => {});
      await page.waitForEvent("crash");
    }
    // The dead tab's connection may look alive for a moment.
    file.breakConnections();
    file.release();
    expect(await reading).toBe(sha256);
    expect(file.sent).toBeLessThanOrEqual(SIZE + 2);
  });
}

test("a wrong checksum reaches the tab that follows", async ({ context, server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  const sha256 = await file.sha256();
  file.corruptAt = 10;
  file.hold(4 * PART);
  const load = async ({ url, sha256 }: { url: string; sha256: string }) => {
    await lab.open(url, { sha256 }, { waitAhead: 1 << 30 });
    await lab.digest(0, 0, 1000);
  };
  await run(load, { url: file.url, sha256 });
  const second = await enter(await context.newPage(), server);
  await second(load, { url: file.url, sha256 });
  file.release();
  for (const tab of [run, second]) {
    expect((await tab(() => lab.ends(lab.model(0).verified), undefined))?.code).toBe("checksum");
  }
  expect(await run(() => lab.files(), undefined)).toEqual({});
});

test("a model in use is not removed; afterwards it is", async ({ context, server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  const id = await run(async (url) => {
    const number = await lab.open(url);
    await lab.model(number).stored;
    return lab.model(number).id!;
  }, file.url);
  const second = await enter(await context.newPage(), server);
  const refused = await second((id) => lab.ends(lab.models.remove(id)), id);
  expect(refused).toMatchObject({ code: "storage", message: expect.stringContaining("in use") });
  expect(await run(() => lab.digest(0), undefined)).toBe(await file.sha256());
  await run(() => lab.model(0).source.close(), undefined);
  await expect.poll(async () => second((id) => lab.ends(lab.models.remove(id)), id)).toBeUndefined();
  expect(await second(() => lab.files(), undefined)).toEqual({});
  expect((await second((id) => lab.ends(lab.models.remove(id)), id))?.code).toBe("not_found");
});

test("a download in progress is not removed by another tab", async ({ context, server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  file.hold(4 * PART);
  const id = await run(async (url) => lab.model(await lab.open(url)).id!, file.url);
  const second = await enter(await context.newPage(), server);
  expect((await second((id) => lab.ends(lab.models.remove(id)), id))?.code).toBe("storage");
  await run(() => lab.model(0).source.close(), undefined);
  await expect.poll(async () => second((id) => lab.ends(lab.models.remove(id)), id)).toBeUndefined();
});
