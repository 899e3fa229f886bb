// Servers and networks that misbehave: typed errors or bounded retries, never a silent full download.
import { PART, SIZE, digest, expect, patternBody, test } from "./fixtures.ts";

for (const keep of [true, false]) {
  test.describe(keep ? "kept" : "not kept", () => {
    test("a server without ranges is refused at once", async ({ server, run }) => {
      const file = server.file("/m.gguf", patternBody(64 << 20));
      file.ranges = false;
      const failure = await run(({ url, keep }) => lab.ends(lab.open(url, { keep })), { url: file.url, keep });
      expect(failure).toMatchObject({ code: "no_ranges", message: expect.stringContaining("open it as a file") });
      expect(file.requests.length).toBe(1);
      expect(file.sent).toBeLessThan(32 << 20);
    });

    test("a web page instead of a file, no file, and a refusal are told apart", async ({ server, run }) => {
      const file = server.file("/m.gguf", patternBody(SIZE));
      const open = (url: string) =>
        run(({ url, keep }) => lab.ends(lab.open(url, { keep }, { firstTries: 2 })), { url, keep });
      file.html = true;
      expect((await open(file.url))?.code).toBe("bad_file");
      file.html = false;
      expect((await open(`${server.origin}/none.gguf`))?.code).toBe("not_found");
      file.failures = [403];
      expect(await open(file.url)).toMatchObject({ code: "network", fields: { status: 403 } });
      file.failures = [503, 503];
      expect(await open(file.url)).toMatchObject({ code: "network", fields: { status: 503 } });
      expect((await open("http://127.0.0.1:1/m.gguf"))?.code).toBe("network");
      expect(file.sent).toBe(0);
    });

    test("cuts and bad moments are got over", async ({ server, run }) => {
      const file = server.file("/m.gguf", patternBody(SIZE));
      file.failures = [503, 500];
      file.cuts = [Infinity, 5000, 0, 10_000, 200_000, 3];
      const got = await run(
        async ({ url, keep }) => {
          // What arrived just before a cut may be lost with it, so that not every try makes progress.
          const number = await lab.open(url, { keep }, { tries: 8 });
          const digest = await lab.digest(number);
          await lab.model(number).stored;
          return digest;
        },
        { url: file.url, keep },
      );
      expect(got).toBe(await file.sha256());
      expect(file.cuts).toEqual([]);
    });

    test("a connection that stalls is given up and tried again", async ({ server, run }) => {
      const file = server.file("/m.gguf", patternBody(SIZE));
      file.hold(3 * PART);
      const reading = run(
        async ({ url, keep }) => {
          const number = await lab.open(url, { keep }, { stallMs: 700, tries: 1000 });
          return lab.digest(number);
        },
        { url: file.url, keep },
      );
      const started = () =>
        file.requests.filter((request) => request.start <= 3 * PART && request.end > 3 * PART).length;
      await expect.poll(started).toBeGreaterThan(2);
      file.release();
      expect(await reading).toBe(await file.sha256());
    });

    test("endless trouble ends with an error", async ({ server, run }) => {
      const file = server.file("/m.gguf", patternBody(SIZE));
      file.cuts = [Infinity, ...Array.from({ length: 1000 }, () => 0)];
      const outcome = await run(
        async ({ url, keep }) => {
          const number = await lab.open(url, { keep });
          const { source, stored } = lab.model(number);
          const reads = [0, 900_000].map(async (at) => (await lab.ends(source.read(at, 10_000)))?.code);
          return { reads: await Promise.all(reads), stored: (await lab.ends(stored))?.code };
        },
        { url: file.url, keep },
      );
      expect(outcome).toEqual({ reads: ["network", "network"], stored: keep ? "network" : undefined });
      expect(file.requests.length).toBeLessThan(200);
    });

    test("a file that is replaced while it is read is noticed", async ({ server, run }) => {
      const file = server.file("/m.gguf", patternBody(SIZE));
      file.hold(4 * PART);
      await run(
        async ({ url, keep }) => {
          const number = await lab.open(url, { keep });
          return lab.digest(number, 0, 1000);
        },
        { url: file.url, keep },
      );
      file.replace(patternBody(SIZE, 9), '"two"');
      file.breakConnections();
      file.release();
      const outcome = await run(async () => {
        const { source, stored } = lab.model(0);
        const read = await lab.ends(source.read(source.size - 5000, 5000));
        return { read: read?.code, stored: (await lab.ends(stored))?.code };
      }, undefined);
      expect(outcome).toEqual({ read: "file_changed", stored: keep ? "file_changed" : undefined });
      if (keep) expect(await run(() => lab.files(), undefined)).toEqual({});
    });
  });
}

test("another origin that hides its headers is asked for the size by HEAD", async ({ run }) => {
  const { TestServer } = await import("../support/server.ts");
  const other = await TestServer.start({ cors: true });
  try {
    const file = other.file("/m.gguf", patternBody(SIZE));
    const got = await run(async (url) => {
      const number = await lab.open(url);
      const digest = await lab.digest(number);
      await lab.model(number).stored;
      return digest;
    }, file.url);
    expect(got).toBe(await file.sha256());
    expect(file.requests.filter((request) => request.method === "HEAD").length).toBe(1);
  } finally {
    await other.close();
  }
});

test("without keeping, sequential reads run ahead and small ones ask for their bytes alone", async ({
  server,
  run,
}) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  const got = await run(async (url) => {
    const number = await lab.open(url, { keep: false });
    return { digest: await lab.digest(number, 0, 600_000, 50_000), stored: await lab.ends(lab.model(number).stored) };
  }, file.url);
  expect(got).toEqual({ digest: await digest(file.body, 0, 600_000), stored: undefined });
  // Each block once, and a few ahead.
  expect(file.sent).toBeLessThan(600_000 + 8 * (1 << 14));
  const before = file.requests.length;
  // Neither far away nor so near that the long request would soon be there.
  for (const start of [900_000, 602_500]) {
    await run((at) => lab.digest(0, at, at + 100), start);
  }
  const asked = file.requests.slice(before).map(({ start, end }) => [start, end]);
  expect(asked).toEqual([900_000, 602_500].map((start) => [start, start + 100]));
  expect(await run(() => lab.files(), undefined)).toEqual({});
});

test("closing and signals end everything", async ({ server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  file.hold(2 * PART);
  const codes = await run(async (url) => {
    const aborted = new AbortController();
    aborted.abort();
    const early = await lab.ends(lab.open(url, { signal: aborted.signal }));
    const controller = new AbortController();
    const number = await lab.open(url, { signal: controller.signal });
    const unkept = await lab.open(url, { keep: false });
    const reads = [900_000, 900_001].map((at, i) =>
      lab.ends(lab.model(i === 0 ? number : unkept).source.read(at, 9000)),
    );
    await lab.pending(Promise.all(reads), 50);
    controller.abort();
    lab.model(unkept).source.close();
    const stored = await lab.ends(lab.model(number).stored);
    return [early, ...(await Promise.all(reads)), stored].map((failure) => failure?.code);
  }, file.url);
  expect(codes).toEqual(["cancelled", "cancelled", "cancelled", "cancelled"]);
});
