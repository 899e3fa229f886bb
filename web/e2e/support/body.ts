// What a test server serves: bytes in memory, a file on disk, or bytes made up on the way (gigabytes that take no room).
import { open, stat } from "node:fs/promises";

/** Bytes with random access. */
export interface Body {
  readonly size: number;
  read(start: number, end: number): Promise<Uint8Array> | Uint8Array;
}

export function bytesBody(bytes: Uint8Array): Body {
  return { size: bytes.length, read: (start, end) => bytes.subarray(start, end) };
}

export async function fileBody(path: string): Promise<Body> {
  const { size } = await stat(path);
  return {
    size,
    async read(start, end) {
      const file = await open(path);
      try {
        const bytes = new Uint8Array(end - start);
        let filled = 0;
        while (filled < bytes.length) {
          const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled);
          if (bytesRead === 0) throw new Error(`${path} is shorter than it was`);
          filled += bytesRead;
        }
        return bytes;
      } finally {
        await file.close();
      }
    },
  };
}

const PERIOD = 1 << 20;

/** `size` bytes that look random, differ from megabyte to megabyte, and cost next to nothing to make. */
export function patternBody(size: number, seed = 1): Body {
  const noise = noiseBytes(PERIOD, seed);
  return {
    size,
    read(start, end) {
      const bytes = new Uint8Array(end - start);
      for (let at = start; at < end;) {
        const inside = at % PERIOD;
        const length = Math.min(PERIOD - inside, end - at);
        bytes.set(noise.subarray(inside, inside + length), at - start);
        // The megabyte's number at its start tells equal stretches apart.
        for (let i = inside; i < 4 && i < inside + length; i++) {
          bytes[at - start + i - inside] = Math.floor(at / PERIOD) >> (8 * i);
        }
        at += length;
      }
      return bytes;
    },
  };
}

/** Repeatable noise (xorshift). */
export function noiseBytes(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = (seed * 2654435761) >>> 0 || 1;
  for (let i = 0; i < length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state;
  }
  return bytes;
}
