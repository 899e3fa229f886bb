// A file the user picked, or any other blob.

import { CancelledError, RullamaError } from "../errors.js";
import { checkRead } from "./ranges.js";
import type { ByteSource } from "./types.js";

export class BlobSource implements ByteSource {
  readonly size: number;
  private closed = false;

  constructor(private readonly blob: Blob) {
    this.size = blob.size;
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    if (this.closed) throw new CancelledError("the file was closed");
    checkRead(offset, length, this.size);
    try {
      return new Uint8Array(await this.blob.slice(offset, offset + length).arrayBuffer());
    } catch (error) {
      // Browsers refuse a picked file that was changed, moved or deleted since.
      throw new RullamaError("file_changed", "the file was changed, moved or deleted; open it again", { cause: error });
    }
  }

  close(): void {
    this.closed = true;
  }
}
