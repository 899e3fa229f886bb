// SHA-256 of a file in a worker: one side hands out pieces, the other reads and hashes them.

import { CancelledError, type PackedError, RullamaError, pack, unpack } from "../errors.js";
import type { HashPieces } from "./types.js";

/** A running hash. */
export interface Hasher {
  update(bytes: Uint8Array<ArrayBuffer>): void | Promise<void>;
  /** Lower-case hex digits. */
  digest(): string | Promise<string>;
}

type ToHasher = { type: "piece"; piece: Blob } | { type: "end" };
type FromHasher = { type: "taken" } | { type: "digest"; digest: string } | { type: "failed"; error: PackedError };

const SLICE = 4 << 20;

/** Hashes in workers that `start` makes, one per file, which call `answerHashing`. */
export function hashInWorker(start: () => Worker): HashPieces {
  return async (pieces, signal) => {
    const worker = start();
    // Heard from the start: the first piece may come after the failure.
    const ended = new Promise<never>((_, reject) => {
      worker.onerror = (event) => reject(new RullamaError("internal", `the hash worker failed: ${event.message}`));
      signal.addEventListener("abort", () => reject(new CancelledError()), { once: true });
    });
    ended.catch(() => {});
    const ask = (message: ToHasher) => {
      const answer = new Promise<FromHasher>((resolve, reject) => {
        worker.onmessage = ({ data }: MessageEvent<FromHasher>) =>
          data.type === "failed" ? reject(unpack(data.error)) : resolve(data);
        worker.postMessage(message);
      });
      return Promise.race([ended, answer]);
    };
    try {
      for await (const piece of pieces) await ask({ type: "piece", piece });
      const answer = await ask({ type: "end" });
      if (answer.type !== "digest") throw new RullamaError("internal", "the hash worker gave no digest");
      return answer.digest;
    } finally {
      worker.terminate();
    }
  };
}

/** The worker's side. */
export function answerHashing(create: () => Promise<Hasher>): void {
  const hasher = create();
  // Reported with the first answer.
  hasher.catch(() => {});
  const answer = async (message: ToHasher): Promise<FromHasher> => {
    try {
      if (message.type === "end") return { type: "digest", digest: await (await hasher).digest() };
      await hashBlob(await hasher, message.piece);
      return { type: "taken" };
    } catch (error) {
      return { type: "failed", error: pack(error) };
    }
  };
  addEventListener("message", ({ data }: MessageEvent<ToHasher>) => {
    void answer(data).then((reply) => postMessage(reply));
  });
}

/** Reads the next slice while this one is hashed. */
async function hashBlob(hasher: Hasher, blob: Blob): Promise<void> {
  const slice = (at: number) => blob.slice(at, at + SLICE).arrayBuffer();
  let next = slice(0);
  for (let at = 0; at < blob.size; at += SLICE) {
    const bytes = new Uint8Array(await next);
    next = slice(at + SLICE);
    await hasher.update(bytes);
  }
  await next;
}
