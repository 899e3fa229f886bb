// A split model: its parts are downloaded, kept, and found again without a server.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { splitFile } from "../../client/test/storage/split-file.ts";
import { GOLDENS } from "../client/goldens.ts";
import { bytesBody } from "../support/body.ts";
import { expect, test } from "./fixtures.ts";

const NAMES = [1, 2, 3].map((part) => `m-0000${part}-of-00003.gguf`);

test("parts are kept, and read as one file by address, by name and as picked files", async ({ run, server }) => {
  const parts = await splitFile(new Uint8Array(await readFile(join(GOLDENS, "gguf/micro-e2b-Q8_0.gguf"))), 3);
  for (const [index, part] of parts.entries()) server.file(`/${NAMES[index]}`, bytesBody(part));
  const layers = parts.map((part, index) => ({
    kind: "model",
    digest: `sha256:${createHash("sha256").update(part).digest("hex")}`,
    size: part.length,
    url: `/${NAMES[index]}`,
  }));
  server.json("/rullama/models", { models: [{ name: "split:latest", size: 1, layers }] });
  const first = await run(
    async ({ origin }) => {
      const open = async (source: string) => {
        const opened = await lab.open(source, { host: origin });
        const { stored, source: bytes, name } = lab.model(opened);
        const start = await lab.sha256(await bytes.read(0, 100_000));
        await stored;
        bytes.close();
        return { name, start, size: bytes.size, most: Math.max(...lab.heard) };
      };
      const byAddress = await open(`${origin}/m-00002-of-00003.gguf`);
      const byName = await open("split:latest");
      const { models } = await lab.models.report();
      return { byAddress, byName, stored: models.map(({ complete }) => complete) };
    },
    { origin: server.origin },
  );
  const total = parts.reduce((sum, { length }) => sum + length, 0);
  expect(first.byAddress).toMatchObject({ name: "m.gguf", most: total });
  expect(first.byName).toMatchObject({ name: "split:latest", most: total, start: first.byAddress.start });
  expect(first.stored).toEqual(Array(6).fill(true));
  for (const name of NAMES) server.forget(`/${name}`);
  server.forget("/rullama/models");
  const again = await run(
    async ({ origin, bytes }) => {
      const open = async (source: string | File[]) => {
        const { source: opened, name } = lab.model(await lab.open(source, { host: origin }));
        const start = await lab.sha256(await opened.read(0, 100_000));
        opened.close();
        return { name, start, heard: lab.heard };
      };
      const files = bytes.map(
        (part, at) => new File([Uint8Array.from(atob(part), (c) => c.charCodeAt(0))], `p-0000${at + 1}-of-00003.gguf`),
      );
      const picked = await open(files);
      for (const file of files) await lab.storage.keepFile(file);
      return {
        byAddress: await open(`${origin}/m-00001-of-00003.gguf`),
        byName: await open("split:latest"),
        picked,
        kept: await open("p-00001-of-00003.gguf"),
        missing: (await lab.ends(lab.open(files.slice(1))))?.code,
      };
    },
    { origin: server.origin, bytes: parts.map((part) => Buffer.from(part).toString("base64")) },
  );
  const { start } = first.byAddress;
  expect(again.byAddress).toEqual({ name: "m.gguf", start, heard: [] });
  expect(again.byName).toEqual({ name: "split:latest", start, heard: [] });
  expect(again.picked).toEqual({ name: "p.gguf", start, heard: [] });
  expect(again.kept).toEqual({ name: "p.gguf", start, heard: [] });
  expect(again.missing).toBe("not_found");
});
