import { afterEach, describe, expect, it, vi } from "vitest";
import { roomFor } from "../../src/storage/opfs.js";
import { PartsWriter } from "../../src/storage/parts.js";

afterEach(() => vi.unstubAllGlobals());

/** A folder whose files tell what is done to them. */
function folder(log: string[], truncate: (size: number) => void = () => {}) {
  const handle = (name: string) => ({
    name,
    createSyncAccessHandle: async () => ({
      read: () => 0,
      write: (bytes: Uint8Array) => (log.push(`${name} write`), bytes.length),
      truncate,
      flush: () => void log.push(`${name} flush`),
      close: () => void log.push(`${name} close`),
    }),
  });
  const made = {
    getFileHandle: async (name: string) => handle(name),
    getDirectoryHandle: async () => made,
    removeEntry: async (name: string) => void log.push(`${name} removed`),
  };
  return made as unknown as FileSystemDirectoryHandle;
}

describe("parts", () => {
  it("are flushed before they count as full", async () => {
    const log: string[] = [];
    const parts = new PartsWriter(folder(log), 10, 6, 0);
    await parts.write(new Uint8Array(6), 0);
    expect([parts.readable, log.at(-2), log.at(-1)]).toEqual([6, "000000.part flush", "000000.part close"]);
    await parts.write(new Uint8Array(4), 6);
    expect([parts.readable, log.at(-2), log.at(-1)]).toEqual([10, "000001.part flush", "000001.part close"]);
  });
});

describe("room for a download", () => {
  const stub = (truncate: (size: number) => void, estimate: () => Promise<StorageEstimate>) => {
    const log: string[] = [];
    vi.stubGlobal("navigator", { storage: { getDirectory: async () => folder(log, truncate), estimate } });
    return log;
  };
  const named = (name: string) => {
    throw new DOMException("no", name);
  };

  it("is found by trying, where only room limits a file", async () => {
    stub(
      (size) => size > 700 && named("QuotaExceededError"),
      async () => ({}),
    );
    const room = await roomFor(1000);
    expect(room).toBeGreaterThan(690);
    expect(room).toBeLessThanOrEqual(700);
  });

  it("is the browser's estimate where a file cannot be made longer for another reason", async () => {
    const log = stub(
      () => named("UnknownError"),
      async () => ({ quota: 900, usage: 100 }),
    );
    expect(await roomFor(1000)).toBe(800);
    expect(await roomFor(500)).toBe(500);
    expect(log).toContain("room close");
    expect(log).toContain("room removed");
  });

  it("is unknown where the browser does not tell, either", async () => {
    stub(
      () => named("InvalidStateError"),
      () => Promise.reject(new TypeError("no")),
    );
    expect(await roomFor(1000)).toBeUndefined();
  });
});
