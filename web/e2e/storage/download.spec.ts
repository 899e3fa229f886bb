// Downloads that are kept: whole, read while they arrive, checked, read again without a network.
import { PART, type Thread, SIZE, digest, expect, patternBody, test } from "./fixtures.ts";

const PLACES: { thread: Thread; workers: boolean }[] = [
  { thread: "worker", workers: true },
  { thread: "worker", workers: false },
  { thread: "page", workers: true },
  { thread: "page", workers: false },
];

for (const { thread, workers } of PLACES) {
  // Where most run, and where there are no workers; the rest repeats it.
  const tag = (thread === "worker") === workers ? [] : "@slow";
  test.describe(`in a ${thread}, the download ${workers ? "in a worker" : "there too"}`, { tag }, () => {
    test.use({ thread });

    test(
      "a download is kept, and read offline the next time",
      { tag: "@chromium" },
      async ({ server, run, context }) => {
        const file = server.file("/m.gguf", patternBody(SIZE));
        const sha256 = await file.sha256();
        const first = await run(
          async ({ url, sha256, workers }) => {
            const number = await lab.open(url, { sha256 }, { workers });
            const digest = await lab.digest(number);
            await Promise.all([lab.model(number).verified, lab.model(number).stored]);
            const { id, name } = lab.model(number);
            lab.model(number).source.close();
            return {
              digest,
              id,
              name,
              last: lab.heard.at(-1),
              rising: lab.heard.every((have, i, all) => i === 0 || have >= all[i - 1]!),
            };
          },
          { url: file.url, sha256, workers },
        );
        expect(first).toEqual({ digest: sha256, id: `sha256-${sha256}`, name: "m.gguf", last: SIZE, rising: true });
        const asked = file.requests.length;
        await context.setOffline(true);
        const again = await run(
          async ({ url, sha256, workers }) => {
            const number = await lab.open(url, { sha256 }, { workers });
            await Promise.all([lab.model(number).verified, lab.model(number).stored]);
            return { digest: await lab.digest(number), models: (await lab.models.report()).models };
          },
          { url: file.url, sha256, workers },
        );
        expect(again.digest).toBe(sha256);
        expect(again.models).toMatchObject([
          { id: first.id, name: "m.gguf", bytes: SIZE, have: SIZE, complete: true, source: file.url },
        ]);
        expect(file.requests.length).toBe(asked);
        // One byte to see what is there, then the file, once.
        expect(file.sent).toBeLessThan(SIZE + 1000);
      },
    );

    test("weights are read while the file arrives", async ({ server, run }) => {
      const file = server.file("/m.gguf", patternBody(SIZE));
      file.hold(8 * PART + 100);
      const early = await run(
        async ({ url, workers }) => {
          const number = await lab.open(url, {}, { workers });
          return { digest: await lab.digest(number, 0, 400_000), pending: await lab.pending(lab.model(number).stored) };
        },
        { url: file.url, workers },
      );
      expect(early).toEqual({ digest: await digest(file.body, 0, 400_000), pending: true });
      const waits = await run(() => lab.pending(lab.digest(0, 600_000, 650_000)), undefined);
      expect(waits).toBe(true);
      file.release();
      expect(await run(() => lab.digest(0), undefined)).toBe(await file.sha256());
      await run(() => lab.model(0).stored, undefined);
    });

    test("wrong bytes are refused and deleted", async ({ server, run }) => {
      const file = server.file("/m.gguf", patternBody(SIZE));
      const sha256 = await file.sha256();
      file.corruptAt = SIZE - 5;
      const seen = await run(
        async ({ url, sha256, workers }) => {
          const number = await lab.open(url, { sha256 }, { workers });
          const { verified, stored, source } = lab.model(number);
          await lab.digest(number, 0, 1000);
          const failures = [await lab.ends(verified), await lab.ends(stored), await lab.ends(source.read(0, 10))];
          source.close();
          return { failures, files: await lab.files(), models: (await lab.models.report()).models };
        },
        { url: file.url, sha256, workers },
      );
      expect(seen.failures.map((failure) => failure?.code)).toEqual(["checksum", "checksum", "checksum"]);
      expect(seen.failures[0]?.fields).toMatchObject({ expected: sha256 });
      expect(seen).toMatchObject({ files: {}, models: [] });
    });
  });
}

test("a read far ahead of the writer goes to the network, within limits", async ({ server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  file.hold(100_000);
  const reading = run(async (url) => {
    const number = await lab.open(url);
    return lab.digest(number, 900_000, 900_500);
  }, file.url);
  // The direct request is held as well until it is let go; the writer's comes first.
  await expect.poll(() => file.requests.some((request) => request.start === 900_000)).toBe(true);
  file.release();
  expect(await reading).toBe(await digest(file.body, 900_000, 900_500));
  await run(() => lab.model(0).stored, undefined);
});

test("a file that is picked needs no storage, and its checksum counts", async ({ server, run }) => {
  const body = patternBody(SIZE);
  const file = server.file("/m.gguf", body);
  const sha256 = await file.sha256();
  const seen = await run(
    async ({ url, sha256 }) => {
      const picked = new File([await (await fetch(url)).arrayBuffer()], "picked.gguf");
      const right = await lab.open(picked, { sha256 });
      const wrong = await lab.open(picked, { sha256: "0".repeat(64) });
      const outside = lab.ends(lab.model(right).source.read(picked.size - 1, 2));
      const root = await navigator.storage.getDirectory();
      const handle = await root.getFileHandle("some.gguf", { create: true });
      const stream = await handle.createWritable();
      await stream.write(picked);
      await stream.close();
      const byHandle = await lab.open(handle);
      return {
        name: lab.model(right).name,
        digests: [await lab.digest(right), await lab.digest(byHandle)],
        verified: [await lab.ends(lab.model(right).verified), (await lab.ends(lab.model(wrong).verified))?.code],
        outside: (await outside)?.code,
        malformed: (await lab.ends(lab.open(picked, { sha256: "abc" })))?.code,
      };
    },
    { url: file.url, sha256 },
  );
  expect(seen).toEqual({
    name: "picked.gguf",
    digests: [sha256, sha256],
    verified: [undefined, "checksum"],
    outside: "bad_file",
    malformed: "bad_options",
  });
});
