// The page's side of hashing in a worker, with a worker that tests control.
import { describe, expect, it } from "vitest";
import { hashInWorker } from "../../src/storage/index.js";

/** Answers as a hash worker does; `fails` breaks it before it was asked anything. */
class FakeWorker {
  onmessage: ((event: { data: object }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;
  terminated = false;
  constructor(fails = false) {
    if (fails) queueMicrotask(() => this.onerror?.({ message: "no script" }));
    this.fails = fails;
  }
  private readonly fails: boolean;
  postMessage({ type }: { type: string }) {
    const data = type === "end" ? { type: "digest", digest: "abc" } : { type: "taken" };
    if (!this.fails) queueMicrotask(() => this.onmessage?.({ data }));
  }
  terminate() {
    this.terminated = true;
  }
}

/** Pieces that arrive after a while. */
async function* late(): AsyncGenerator<Blob, void, void> {
  await new Promise((resolve) => setTimeout(resolve, 5));
  yield new Blob(["x"]);
}

describe("hashing in a worker", () => {
  const hashed = (worker: FakeWorker, signal = new AbortController().signal) =>
    hashInWorker(() => worker as unknown as Worker)(late(), signal);

  it("gives the digest", async () => {
    const worker = new FakeWorker();
    expect(await hashed(worker)).toBe("abc");
    expect(worker.terminated).toBe(true);
  });

  it("fails where the worker's script cannot be loaded, before the first piece is there", async () => {
    const worker = new FakeWorker(true);
    await expect(hashed(worker)).rejects.toMatchObject({
      code: "internal",
      message: expect.stringContaining("no script"),
    });
    expect(worker.terminated).toBe(true);
  });

  it("ends when its signal aborts", async () => {
    const controller = new AbortController();
    const digest = hashed(new FakeWorker(), controller.signal);
    controller.abort();
    await expect(digest).rejects.toMatchObject({ code: "cancelled" });
  });
});
