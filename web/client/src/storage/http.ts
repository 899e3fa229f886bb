// A file on a server, read by ranges and not kept: blocks come out of long requests, ahead of those who read forwards.

import { CancelledError } from "../errors.js";
import { BlockStream } from "./block-stream.js";
import { checkRead } from "./ranges.js";
import { type Version, requestRange, withRetries } from "./request.js";
import type { Tuning } from "./tuning.js";
import type { ByteSource } from "./types.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** Asks for one byte: what file there is, and whether the server answers ranges. */
export async function probe(url: string, tuning: Tuning, signal?: AbortSignal): Promise<Version> {
  return withRetries(
    async () => {
      const answer = await requestRange(url, { start: 0, end: 1 }, undefined, tuning.stallMs, signal);
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
  /** Blocks that are here or on their way, the longest unused first. */
  private readonly blocks = new Map<number, Promise<Bytes>>();
  private stream: BlockStream | undefined;
  /** Where a sequential reader would go on. */
  private expected = 0;
  /** Sequential reads so far: whoever looks at a header alone shall not fetch what is behind it. */
  private sequence = 0;
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
    const { smallRead, blockBytes } = this.tuning;
    const sequential = offset === this.expected || this.blocks.has(Math.floor(offset / blockBytes));
    this.expected = offset + length;
    this.sequence = sequential ? this.sequence + 1 : 0;
    if (length === 0) return new Uint8Array(0);
    if (!sequential && length < smallRead) return this.fetch(offset, offset + length);
    return this.readBlocks(offset, length);
  }

  close(): void {
    this.controller.abort();
    this.blocks.clear();
    for (const go of this.queue.splice(0)) go();
  }

  private async readBlocks(offset: number, length: number): Promise<Bytes> {
    const { blockBytes, inFlight } = this.tuning;
    const first = Math.floor(offset / blockBytes);
    const last = Math.floor((offset + length - 1) / blockBytes);
    const wanted: Promise<Bytes>[] = [];
    for (let index = first; index <= last; index++) wanted.push(this.block(index));
    // The following blocks come while the caller works on these.
    const ahead = last + Math.min(this.sequence, inFlight);
    for (let index = last + 1; index <= ahead && index * blockBytes < this.size; index++) {
      this.block(index).catch(() => {});
    }
    this.trim(Math.max(2 * inFlight, last - first + 1 + inFlight));
    const result = new Uint8Array(length);
    // All are listened to from the start, so that none fails unheard.
    const arrived = await Promise.all(wanted);
    arrived.forEach((bytes, i) => {
      const at = (first + i) * blockBytes;
      const from = Math.max(offset - at, 0);
      const to = Math.min(offset + length - at, bytes.length);
      result.set(bytes.subarray(from, to), at + from - offset);
    });
    return result;
  }

  private block(index: number): Promise<Bytes> {
    const known = this.blocks.get(index);
    if (known) {
      this.blocks.delete(index);
      this.blocks.set(index, known);
      return known;
    }
    const stream = this.streamTo(index);
    if (!stream) {
      const start = index * this.tuning.blockBytes;
      return this.remember(index, this.fetch(start, Math.min(start + this.tuning.blockBytes, this.size)));
    }
    while (stream.next < index) this.remember(stream.next, stream.take()).catch(() => {});
    return this.remember(index, stream.take());
  }

  private remember(index: number, block: Promise<Bytes>): Promise<Bytes> {
    // A block that failed is asked for anew the next time.
    block.catch(() => this.blocks.get(index) === block && this.blocks.delete(index));
    this.blocks.set(index, block);
    return block;
  }

  /** A stream that will come to a block soon; undefined for one a little behind, which is fetched alone. */
  private streamTo(index: number): BlockStream | undefined {
    const { stream } = this;
    const { inFlight } = this.tuning;
    if (this.controller.signal.aborted) return undefined;
    if (stream && index < stream.next && stream.next - index <= 4 * inFlight) return undefined;
    if (stream?.alive && index >= stream.next && index < stream.end && index - stream.next <= inFlight) return stream;
    stream?.leave();
    return (this.stream = new BlockStream(this.url, this.version, this.tuning, index, this.controller.signal));
  }

  private trim(most: number): void {
    for (const index of this.blocks.keys()) {
      if (this.blocks.size <= most) return;
      this.blocks.delete(index);
    }
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
        const answer = await requestRange(this.url, range, this.version, this.tuning.stallMs, signal);
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
