// Reads in order out of long requests: many short ones get a fraction of their speed, and bytes that go straight to where they
// are wanted are copied once.

import { CancelledError } from "../errors.js";
import type { Buffers } from "./buffers.js";
import { type Version, requestRange, sleep, withRetries } from "./request.js";
import type { Tuning } from "./tuning.js";

type Bytes = Uint8Array<ArrayBuffer>;

interface Wanted {
  start: number;
  bytes: Bytes;
  filled: number;
  resolve: (bytes: Bytes) => void;
  reject: (error: unknown) => void;
}

export class ReadStream {
  /** Where the last read that was taken ends: the next one begins there or further on. */
  private taken: number;
  private readonly wanted: Wanted[] = [];
  private leaving = false;
  private wake: () => void = () => {};
  private failure: unknown;

  constructor(
    private readonly url: string,
    private readonly version: Version,
    private readonly tuning: Tuning,
    start: number,
    private readonly buffers: Buffers,
    /** Ends it at once. */
    private readonly signal: AbortSignal,
  ) {
    this.taken = start;
    signal.addEventListener("abort", () => this.leave(), { once: true });
    this.run().catch((error: unknown) => {
      this.failure = error;
      for (const { reject } of this.wanted.splice(0)) reject(error);
    });
  }

  /** Whether it will come to a place soon, leaving out so many bytes at most. */
  reaches(offset: number, most: number): boolean {
    const skipped = offset - this.taken;
    return skipped >= 0 && skipped <= most && !this.leaving && this.failure === undefined;
  }

  /** Bytes from a place on that it reaches. Nothing is read ahead of what was taken, but what network and browser hold by themselves. */
  take(offset: number, length: number): Promise<Bytes> {
    this.taken = offset + length;
    return new Promise((resolve, reject) => {
      this.wanted.push({ start: offset, bytes: this.buffers.take(length), filled: 0, resolve, reject });
      this.wake();
    });
  }

  /** Ends it when what was taken has come. */
  leave(): void {
    this.leaving = true;
    this.wake();
  }

  /** What is to be filled now, when somebody wants something. */
  private async first(): Promise<Wanted> {
    for (;;) {
      const [first] = this.wanted;
      if (first && !this.signal.aborted) return first;
      if (this.leaving) throw new CancelledError("the file was closed");
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  /** Whether somebody wants something now or soon. */
  private async soon(): Promise<boolean> {
    if (this.wanted.length === 0 && !this.leaving) {
      await Promise.race([new Promise<void>((resolve) => (this.wake = resolve)), sleep(this.tuning.idleMs)]);
    }
    return this.wanted.length > 0 && !this.signal.aborted;
  }

  /** Gives bytes from `at` on to those who want them: how many of them found somebody. */
  private async hand(chunk: Bytes, at: number): Promise<number> {
    let used = 0;
    while (used < chunk.length && (await this.soon())) {
      const wanted = await this.first();
      const { bytes } = wanted;
      used = Math.max(used, wanted.start + wanted.filled - at);
      const piece = chunk.subarray(used, used + bytes.length - wanted.filled);
      bytes.set(piece, wanted.filled);
      used += piece.length;
      wanted.filled += piece.length;
      if (wanted.filled < bytes.length) continue;
      this.wanted.shift();
      wanted.resolve(bytes);
    }
    return Math.min(used, chunk.length);
  }

  /** Requests until all is read; none is open while nobody wants anything, for a browser would go on and fill its memory. */
  private async run(): Promise<void> {
    const { size } = this.version;
    const { streamBytes, tries } = this.tuning;
    for (let at = 0; at < size;) {
      const { start, filled } = await this.first();
      at = start + filled;
      const end = Math.min(at + streamBytes, size);
      const attempt = async (progressed: () => void) => {
        if (at === end) return;
        const answer = await requestRange(this.url, { start: at, end }, this.version, this.tuning, this.signal);
        try {
          while (at < end) {
            const chunk = await answer.next();
            progressed();
            const used = chunk ? await this.hand(chunk, at) : 0;
            at += used;
            if (used !== chunk?.length || !(await this.soon())) return;
          }
        } finally {
          answer.cancel();
        }
      };
      await withRetries(attempt, tries, this.tuning, this.signal);
    }
  }
}
