// Blocks of a file in order, out of one long request: many short ones get a fraction of its speed.

import { CancelledError } from "../errors.js";
import { type Version, requestRange, withRetries } from "./request.js";
import type { Tuning } from "./tuning.js";

type Bytes = Uint8Array<ArrayBuffer>;

interface Promised {
  length: number;
  resolve: (bytes: Bytes) => void;
  reject: (error: unknown) => void;
}

export class BlockStream {
  /** The first block that nobody took yet. */
  next: number;
  /** The block behind the last one. */
  readonly end: number;
  private readonly promised: Promised[] = [];
  private leaving = false;
  private wake: () => void = () => {};
  private failure: unknown;

  constructor(
    private readonly url: string,
    private readonly version: Version,
    private readonly tuning: Tuning,
    first: number,
    /** Ends it at once. */
    private readonly signal: AbortSignal,
  ) {
    const { blockBytes, streamBytes } = tuning;
    this.next = first;
    this.end = Math.min(
      first + Math.max(1, Math.floor(streamBytes / blockBytes)),
      Math.ceil(version.size / blockBytes),
    );
    signal.addEventListener("abort", () => this.leave(), { once: true });
    this.run().catch((error: unknown) => {
      this.failure = error;
      for (const { reject } of this.promised.splice(0)) reject(error);
    });
  }

  /** Whether it can be asked for blocks. */
  get alive(): boolean {
    return !this.leaving && this.failure === undefined && this.next < this.end;
  }

  /** The next block. Nothing is read ahead of what was taken, but what network and browser hold by themselves. */
  take(): Promise<Bytes> {
    const start = this.next * this.tuning.blockBytes;
    this.next += 1;
    const length = Math.min(this.tuning.blockBytes, this.version.size - start);
    return new Promise((resolve, reject) => {
      if (this.failure !== undefined) reject(this.failure);
      else this.promised.push({ length, resolve, reject });
      this.wake();
    });
  }

  /** Ends it when what was taken has come. */
  leave(): void {
    this.leaving = true;
    this.wake();
  }

  /** The block to fill now, when somebody took it. */
  private async wanted(): Promise<Promised> {
    for (;;) {
      const [first] = this.promised;
      if (first && !this.signal.aborted) return first;
      if (this.leaving) throw new CancelledError("the file was closed");
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  private async run(): Promise<void> {
    const { signal } = this;
    const { blockBytes, stallMs, tries } = this.tuning;
    let at = this.next * blockBytes;
    const end = Math.min(this.end * blockBytes, this.version.size);
    let bytes: Bytes | undefined;
    let filled = 0;
    const attempt = async (progressed: () => void) => {
      if (at === end) return;
      const answer = await requestRange(this.url, { start: at, end }, this.version, stallMs, signal);
      try {
        for (let chunk = await answer.next(); chunk; chunk = at < end ? await answer.next() : undefined) {
          progressed();
          for (let used = 0; used < chunk.length;) {
            const block = await this.wanted();
            bytes ??= new Uint8Array(block.length);
            const piece = chunk.subarray(used, used + block.length - filled);
            bytes.set(piece, filled);
            [used, filled, at] = [used + piece.length, filled + piece.length, at + piece.length];
            if (filled < block.length) continue;
            this.promised.shift();
            block.resolve(bytes);
            [bytes, filled] = [undefined, 0];
          }
          // A connection that nobody reads from is no stalled one.
          if (at < end) await this.wanted();
        }
      } finally {
        answer.cancel();
      }
    };
    await withRetries(attempt, tries, this.tuning, signal);
  }
}
