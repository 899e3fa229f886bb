// Names, what is stored, and tidying up.
import { PART, SIZE, expect, patternBody, test } from "./fixtures.ts";

test(
  "a name is looked up at the host, and later offline with all it brought",
  { tag: "@chromium" },
  async ({ context, server, run }) => {
    const file = server.file("/rullama/blobs/x", patternBody(SIZE));
    const sha256 = await file.sha256();
    const layers = [
      { kind: "projector", digest: null, size: 1, url: "/nothing" },
      { kind: "model", digest: `sha256:${sha256}`, size: SIZE, url: "/rullama/blobs/x" },
    ];
    const model = { name: "gemma4:e2b", size: SIZE, layers, parameters: { temperature: 0.5 }, system: "Be brief." };
    const broken = { name: "gemma4:e4b", size: 0, layers: [], error: "a blob is missing" };
    server.json("/rullama/models", { models: [model, broken, { nonsense: true }] });
    const seen = await run(async () => {
      const served = await lab.storage.servedModels(self.location.origin);
      const number = await lab.open("gemma4:e2b");
      const { name, id, info, stored } = lab.model(number);
      await stored;
      const digest = await lab.digest(number);
      const missing = await lab.ends(lab.open("gemma4:e2c"));
      const broken = await lab.ends(lab.open("gemma4:e4b"));
      return { served: served?.map(({ name }) => name), name, id, info, digest, missing, broken };
    }, undefined);
    expect(seen).toMatchObject({
      name: "gemma4:e2b",
      id: `sha256-${sha256}`,
      digest: sha256,
      info: { system: "Be brief." },
    });
    expect(seen.served).toEqual(["gemma4:e2b", "gemma4:e4b"]);
    expect(seen.missing).toMatchObject({ code: "not_found", fields: { similar: ["gemma4:e2b", "gemma4:e4b"] } });
    expect(seen.missing?.message).toContain("did you mean gemma4:e2b");
    expect(seen.broken).toMatchObject({ code: "bad_file", message: expect.stringContaining("a blob is missing") });
    await context.setOffline(true);
    const offline = await run(async () => {
      const number = await lab.open("gemma4:e2b");
      const missing = await lab.ends(lab.open("gemma4:e4b"));
      return { info: lab.model(number).info, digest: await lab.digest(number), missing: missing?.code };
    }, undefined);
    expect(offline).toMatchObject({ info: { parameters: { temperature: 0.5 } }, digest: sha256, missing: "network" });
  },
);

test("without a rullama at the host, a name is not found", async ({ server, run }) => {
  server.html("/rullama/models", "<!doctype html><title>An app</title>");
  const failure = await run(() => lab.ends(lab.open("gemma4:e2b")), undefined);
  expect(failure).toMatchObject({ code: "not_found", message: expect.stringContaining("no rullama serves names") });
  const other = await run(() => lab.ends(lab.open("file:///etc/passwd")), undefined);
  expect(other?.code).toBe("not_found");
  expect((await run(() => lab.ends(lab.open(new URL("blob:x"))), undefined))?.code).toBe("bad_options");
});

test("the same file under two names is stored once and found by both", async ({ server, run }) => {
  const file = server.file("/rullama/blobs/x", patternBody(SIZE));
  const sha256 = await file.sha256();
  const layers = [{ kind: "model", digest: `sha256:${sha256}`, size: SIZE, url: "/rullama/blobs/x" }];
  const named = ["a:1", "b:2"].map((name) => ({ name, size: SIZE, layers }));
  server.json("/rullama/models", { models: named });
  await run(async () => {
    for (const name of ["a:1", "b:2"]) {
      const number = await lab.open(name);
      await lab.model(number).stored;
      lab.model(number).source.close();
    }
  }, undefined);
  server.json("/rullama/models", {}, 500);
  const seen = await run(async () => {
    const names = [];
    for (const name of ["a:1", "b:2"]) names.push(lab.model(await lab.open(name)).name);
    return { names, stored: (await lab.models.report()).models.length };
  }, undefined);
  expect(seen).toEqual({ names: ["a:1", "b:2"], stored: 1 });
  expect(file.sent).toBeLessThanOrEqual(SIZE + 2);
});

test("tidying takes leftovers and leaves downloads that can go on", async ({ page, server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  file.hold(3 * PART + 5);
  await run(async (url) => void (await lab.open(url)), file.url);
  await expect.poll(() => run(() => lab.heard.at(-1), undefined)).toBe(3 * PART + 5);
  await page.reload();
  await page.waitForFunction(() => "runInWorker" in globalThis);
  const seen = await run(async () => {
    const root = await navigator.storage.getDirectory();
    const models = await (await root.getDirectoryHandle("rullama")).getDirectoryHandle("models");
    const write = async (folder: FileSystemDirectoryHandle, name: string, text: string) => {
      const stream = await (await folder.getFileHandle(name, { create: true })).createWritable();
      await stream.write(text);
      await stream.close();
    };
    const unknown = await models.getDirectoryHandle("unknown", { create: true });
    await write(unknown, "000000.part", "bytes without a record");
    const torn = await models.getDirectoryHandle("torn", { create: true });
    await write(torn, "record.json", '{"format":1,"id":"to');
    const empty = await models.getDirectoryHandle("empty", { create: true });
    const record = { format: 1, id: "empty", names: ["e"], source: "x", size: 5, partBytes: 5, complete: false };
    await write(empty, "record.json", JSON.stringify(record));
    await write(models, "stray", "a file among folders");
    await write(root, "not-ours", "somebody else's");
    const gone = await lab.models.clean();
    const { models: left, usage, quota, persisted } = await lab.models.report();
    return {
      gone,
      left,
      usage,
      quota,
      persisted,
      files: Object.keys(await lab.files()),
    };
  }, undefined);
  expect(seen.gone).toEqual(["empty", "stray", "torn", "unknown"]);
  expect(seen.left).toMatchObject([{ have: 3 * PART + 5, complete: false, name: "m.gguf" }]);
  expect(seen.files).toContain("not-ours");
  expect(seen.usage).toBeGreaterThan(3 * PART);
  expect(seen.quota).toBeGreaterThan(seen.usage);
  expect(seen.persisted).toBe(false);
});

test("a download that nobody went on with is listed, and deleted after two weeks", async ({ page, server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  file.hold(3 * PART);
  await run(async (url) => void (await lab.open(url)), file.url);
  await expect.poll(() => run(() => lab.heard.at(-1), undefined)).toBe(3 * PART);
  await page.reload();
  await page.waitForFunction(() => "runInWorker" in globalThis);
  const aged = (days: number) =>
    run(async (age) => {
      const root = await navigator.storage.getDirectory();
      const models = await (await root.getDirectoryHandle("rullama")).getDirectoryHandle("models");
      for await (const folder of models.values()) {
        const handle = await (folder as FileSystemDirectoryHandle).getFileHandle("record.json");
        const record = JSON.parse(await (await handle.getFile()).text());
        const stream = await handle.createWritable();
        await stream.write(JSON.stringify({ ...record, used: Date.now() - age * 86_400_000 }));
        await stream.close();
      }
      const { models: listed } = await lab.models.report();
      return { listed, files: await lab.files() };
    }, days);
  expect((await aged(13)).listed).toMatchObject([{ have: 3 * PART, complete: false, names: [] }]);
  expect(await aged(15)).toEqual({ listed: [], files: {} });
});

test("a file from an address does not answer to a name that its address ends in", async ({ server, run }) => {
  const forged = server.file("/somewhere/gemma4:e2b", patternBody(SIZE));
  const real = server.file("/rullama/blobs/x", patternBody(SIZE, 3));
  await run(async (url) => {
    const number = await lab.open(url);
    await lab.model(number).stored;
    lab.model(number).source.close();
  }, forged.url);
  const unknown = await run(() => lab.ends(lab.open("gemma4:e2b")), undefined);
  expect(unknown).toMatchObject({ code: "not_found", fields: { similar: [] } });
  const sha256 = await real.sha256();
  const layers = [{ kind: "model", digest: `sha256:${sha256}`, size: SIZE, url: "/rullama/blobs/x" }];
  server.json("/rullama/models", { models: [{ name: "gemma4:e2b", size: SIZE, layers }] });
  const seen = await run(async () => {
    const number = await lab.open("gemma4:e2b");
    const digest = await lab.digest(number);
    await lab.model(number).stored;
    return { digest, models: (await lab.models.report()).models.map(({ source, names }) => ({ source, names })) };
  }, undefined);
  expect(seen.digest).toBe(sha256);
  expect(seen.models).toHaveLength(2);
  expect(seen.models).toContainEqual({ source: forged.url, names: [] });
  expect(seen.models).toContainEqual({ source: real.url, names: ["gemma4:e2b"] });
});

test("hashing in a worker of its own gives the digest, and its failure is heard", async ({ server, run }) => {
  const file = server.file("/m.gguf", patternBody(SIZE));
  const sha256 = await file.sha256();
  const seen = await run(
    async ({ url, sha256 }) => {
      const start = (script: string) => () => new Worker(new URL(script, self.location.origin), { type: "module" });
      const hash = lab.storage.hashInWorker(start("/e2e/storage/hash-worker.js"));
      const right = await lab.open(url, { sha256, hash });
      await lab.model(right).verified;
      const picked = new Blob([await (await fetch(url)).arrayBuffer()]);
      const wrong = await lab.open(picked, { sha256: "0".repeat(64), hash });
      const missing = lab.storage.hashInWorker(start("/none.js"));
      const lost = await lab.open(picked, { sha256, hash: missing });
      return [(await lab.ends(lab.model(wrong).verified))?.code, (await lab.ends(lab.model(lost).verified))?.code];
    },
    { url: file.url, sha256 },
  );
  expect(seen).toEqual(["checksum", "internal"]);
});
