// A download that is shared with other sites: Cross-Origin Storage is faked, this browser's own storage is not.
import { SIZE, digest, expect, patternBody, test } from "./fixtures.ts";

test.use({ thread: "page" });

test("a stored model is shared whole, and read from there once it is gone here", async ({ run, server }) => {
  const body = patternBody(SIZE);
  const sha256 = await digest(body);
  server.file("/model.gguf", body);
  const result = await run(
    async ({ url, sha256 }) => {
      const files = new Map<string, Blob>();
      const requestFileHandle = async ({ value }: { value: string }, { create = false } = {}) => {
        if (!create && !files.has(value)) throw new DOMException("none", "NotFoundError");
        const pieces: Blob[] = [];
        return {
          getFile: async () => files.get(value)!,
          createWritable: async () => ({
            write: async (piece: Blob) => void pieces.push(new Blob([await piece.arrayBuffer()])),
            close: async () => void files.set(value, new Blob(pieces)),
          }),
        };
      };
      Object.defineProperty(navigator, "crossOriginStorage", { value: { requestFileHandle }, configurable: true });
      const early = await lab.crossOrigin.shareStored(sha256);
      const first = await lab.open(url, { sha256 });
      await lab.model(first).verified;
      const isShared = await lab.crossOrigin.shareStored(sha256);
      lab.model(first).source.close();
      for (const { id } of (await lab.models.report()).models) {
        await lab.models.remove(id);
      }
      const sharedFiles = await lab.crossOrigin.findShared([sha256]);
      const second = await lab.open(url, { sha256, sharedFiles });
      const same = (await lab.digest(second)) === sha256;
      const left = (await lab.models.report()).models.length;
      return { early, isShared, same, left, heard: lab.heard };
    },
    { url: `${server.origin}/model.gguf`, sha256 },
  );
  expect(result).toEqual({ early: false, isShared: true, same: true, left: 0, heard: [] });
});
