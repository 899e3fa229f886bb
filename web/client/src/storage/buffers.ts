// Arrays that are used again: fresh memory is made and cleared by the system page by page, which costs more than filling it.

type Bytes = Uint8Array<ArrayBuffer>;

/** Shorter arrays are not worth keeping. */
const LEAST_BYTES = 1 << 20;
/** The pieces in which weights are read, and a little. */
const USUAL_BYTES = 17 << 20;
/** As many as are read ahead and worked on at a time. */
const MOST = 6;

export class Buffers {
  private free: ArrayBuffer[] = [];

  /** An array of so many bytes, which may hold old ones. */
  take(length: number): Bytes {
    if (length < LEAST_BYTES) return new Uint8Array(length);
    const at = this.free.findIndex((buffer) => buffer.byteLength >= length);
    const [found = new ArrayBuffer(Math.max(length, USUAL_BYTES))] = at < 0 ? [] : this.free.splice(at, 1);
    return new Uint8Array(found, 0, length);
  }

  /** Takes an array back that nobody uses any more. */
  giveBack({ buffer }: Bytes): void {
    if (buffer.byteLength >= USUAL_BYTES && this.free.length < MOST) this.free.push(buffer);
  }
}
