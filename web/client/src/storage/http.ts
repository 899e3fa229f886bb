// A file on a server, read by ranges and not kept: sequential reads share one long request, others get one each.

import { CancelledError } from "../errors.js";
import { Buffers } from "./buffers.js";
import { checkRead } from "./ranges.js";
import { ReadStream } from "./read-stream.js";
import { type Version, requestRange, withRetries } from "./request.js";
import type { Tuning } from "./tuning.js";
import type { ByteSource } from "./types.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** Asks for one byte: what file there is, and whether the server answers ranges. */
export async function probe(url: string, tuning: Tuning, signal?: AbortSignal): Promise<Version> {
  return withRetries(
    async () => {
      const answer = await requestRange(url, { start: 0, end: 1 }, undefined, tuning, signal);
      answer.cancel();
      return answer.version;
    },
    tuning.firstTries,
    tuning,
    signal,
  );
}

export class HttpSource implements ByteSource {
  readonly size: number;
  private readonly buffers = new Buffers();
  private stream: ReadStream | undefined;
  /** Where a sequential reader would go on. */
  private expected = 0;
  private running = 0;
  private readonly queue: (() => void)[] = [];
  private readonly controller = new AbortController();

  constructor(
    private readonly url: string,
    private readonly version: Version,
    private readonly tuning: Tuning,
    signal?: AbortSignal,
  ) {
    this.size = version.size;
    if (signal?.aborted) this.close();
    signal?.addEventListener("abort", () => this.close(), { once: true });
  }

  async read(offset: number, length: number): Promise<Bytes> {
    checkRead(offset, length, this.size);
    const sequential = offset === this.expected;
    this.expected = offset + length;
    if (length === 0) return new Uint8Array(0);
    const { smallRead, skipBytes } = this.tuning;
    const small = length < smallRead;
    // A small read does not draw a large gap with it.
    if (this.stream?.reaches(offset, small ? Math.min(smallRead, skipBytes) : skipBytes)) {
      return this.stream.take(offset, length);
    }
    const alone = !sequential && small;
    if (alone || this.controller.signal.aborted) return this.fetch(offset, offset + length);
    this.stream?.leave();
    this.stream = new ReadStream(this.url, this.version, this.tuning, offset, this.buffers, this.controller.signal);
    return this.stream.take(offset, length);
  }

  giveBack(bytes: Bytes): void {
    this.buffers.giveBack(bytes);
  }

  close(): void {
    this.controller.abort();
    for (const go of this.queue.splice(0)) go();
  }

  /** Bytes from `start` to before `end`; after a break, what is missing is asked for. */
  private async fetch(start: number, end: number): Promise<Bytes> {
    await this.turn();
    try {
      const { signal } = this.controller;
      if (signal.aborted) throw new CancelledError("the file was closed");
      const bytes = new Uint8Array(end - start);
      let filled = 0;
      const attempt = async (progressed: () => void) => {
        if (filled === bytes.length) return;
        const range = { start: start + filled, end };
        const answer = await requestRange(this.url, range, this.version, this.tuning, signal);
        for (let chunk = await answer.next(); chunk; chunk = await answer.next()) {
          bytes.set(chunk, filled);
          filled += chunk.length;
          progressed();
        }
      };
      await withRetries(attempt, this.tuning.tries, this.tuning, signal);
      return bytes;
    } finally {
      this.running -= 1;
      this.queue.shift()?.();
    }
  }

  private async turn(): Promise<void> {
    if (this.running >= this.tuning.inFlight) await new Promise<void>((resolve) => this.queue.push(resolve));
    this.running += 1;
  }
}
