// A file that is being downloaded: what is here is read from its parts, the rest is waited for or, far ahead, asked for directly.

import { CancelledError } from "../errors.js";
import type { Download } from "./download.js";
import type { HttpSource } from "./http.js";
import type { PartsSource } from "./parts.js";
import { checkRead, goDirect } from "./ranges.js";
import type { Tuning } from "./tuning.js";
import type { ByteSource } from "./types.js";

export class FollowingSource implements ByteSource {
  readonly size: number;
  private fetchedTwice = 0;
  private closed = false;

  constructor(
    private readonly download: Download,
    private readonly parts: PartsSource,
    private readonly direct: HttpSource,
    private readonly tuning: Tuning,
  ) {
    this.size = direct.size;
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    checkRead(offset, length, this.size);
    const end = offset + length;
    for (;;) {
      if (this.closed) throw new CancelledError("the file was closed");
      const { readable, failure } = this.download;
      // Wrong bytes are of no use, wherever they are.
      if (failure?.code === "checksum" || failure?.code === "file_changed") throw failure;
      if (end <= readable) return this.readParts(offset, length);
      if (failure) return this.direct.read(offset, length);
      const state = { readable, size: this.size, fetchedTwice: this.fetchedTwice };
      if (goDirect({ end, length }, state, this.tuning)) {
        this.fetchedTwice += length;
        return this.direct.read(offset, length);
      }
      await this.download.moved();
    }
  }

  giveBack(bytes: Uint8Array<ArrayBuffer>): void {
    this.parts.giveBack(bytes);
  }

  close(): void {
    this.closed = true;
    this.download.stop();
    this.direct.close();
    this.parts.close();
  }

  /** Should the browser have dropped the parts meanwhile, the server still has them. */
  private async readParts(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    try {
      return await this.parts.read(offset, length);
    } catch (error) {
      if (this.closed) throw error;
      if (this.download.failure) throw this.download.failure;
      return this.direct.read(offset, length);
    }
  }
}
