// Reading and writing the parts of a stored file: by synchronous handles in a worker, which are fastest, otherwise by files and streams.

import { CancelledError, RullamaError } from "../errors.js";
import { Buffers } from "./buffers.js";
import { LOCKED_PAUSE_MS, LOCKED_TRIES, isNamed } from "./opfs.js";
import { checkRead, partLength, partName, piecesOf } from "./ranges.js";
import { sleep } from "./request.js";
import { type SyncHandle, openSync } from "./sync-access.js";
import type { ByteSource } from "./types.js";

/** More than reads at a time touch. */
const OPEN_HANDLES = 8;

/** Reads full parts. */
export class PartsSource implements ByteSource {
  private readonly handles = new Map<number, Promise<SyncHandle | undefined>>();
  private readonly buffers = new Buffers();
  private closed = false;

  constructor(
    private readonly folder: FileSystemDirectoryHandle,
    readonly size: number,
    private readonly partBytes: number,
  ) {}

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    checkRead(offset, length, this.size);
    const result = this.buffers.take(length);
    let filled = 0;
    for (const piece of piecesOf(offset, length, this.partBytes)) {
      if (this.closed) throw new CancelledError("the file was closed");
      await this.readPiece(piece.part, piece.start, result.subarray(filled, filled + piece.length));
      filled += piece.length;
    }
    return result;
  }

  giveBack(bytes: Uint8Array<ArrayBuffer>): void {
    this.buffers.giveBack(bytes);
  }

  /** A full part as a file, for those that read it elsewhere. */
  async file(index: number): Promise<File> {
    const file = await (await this.folder.getFileHandle(partName(index))).getFile();
    if (file.size !== partLength(index, this.size, this.partBytes)) throw damaged();
    return file;
  }

  close(): void {
    this.closed = true;
    for (const handle of this.handles.values()) closeSoon(handle);
    this.handles.clear();
  }

  private async readPiece(index: number, start: number, target: Uint8Array<ArrayBuffer>): Promise<void> {
    try {
      const handle = await this.open(index);
      if (handle && handle.read(target, { at: start }) === target.length) return;
    } catch {
      // Another tab may hold the file, or this handle was closed to make room for others: files can be read all the same.
    }
    try {
      const file = await this.file(index);
      target.set(new Uint8Array(await file.slice(start, start + target.length).arrayBuffer()));
    } catch (error) {
      throw error instanceof RullamaError ? error : damaged(error);
    }
  }

  /** The handle of a part, opened once for reads that run at the same time. */
  private open(index: number): Promise<SyncHandle | undefined> {
    const known = this.handles.get(index);
    if (known) return known;
    const opening = this.folder.getFileHandle(partName(index)).then((file) => openSync(file, "read-only"));
    opening.catch(() => this.handles.get(index) === opening && this.handles.delete(index));
    this.handles.set(index, opening);
    for (const [oldest, old] of this.handles) {
      if (this.handles.size <= OPEN_HANDLES) break;
      this.handles.delete(oldest);
      closeSoon(old);
    }
    return opening;
  }
}

function closeSoon(opening: Promise<SyncHandle | undefined>): void {
  // What could not be opened need not be closed.
  opening.then((handle) => handle?.close()).catch(() => {});
}

function damaged(cause?: unknown): RullamaError {
  const message = "the stored copy of this model cannot be read any more; remove it and load it again";
  return new RullamaError("storage", message, { cause });
}

/** One part that is being written. */
interface OpenPart {
  write(bytes: Uint8Array<ArrayBuffer>, at: number): void | Promise<void>;
  close(): void | Promise<void>;
}

/** Writes a file into parts, from anywhere on, in order. */
export class PartsWriter {
  private part: OpenPart | undefined;
  private index = -1;
  /** Bytes from the file's start in full and closed parts. */
  readable: number;

  constructor(
    private readonly folder: FileSystemDirectoryHandle,
    private readonly size: number,
    private readonly partBytes: number,
    from: number,
  ) {
    this.readable = from - (from % partBytes);
  }

  async write(bytes: Uint8Array<ArrayBuffer>, offset: number): Promise<void> {
    let taken = 0;
    for (const piece of piecesOf(offset, bytes.length, this.partBytes)) {
      if (piece.part !== this.index || !this.part) {
        await this.close();
        this.part = await openPart(this.folder, partName(piece.part));
        this.index = piece.part;
      }
      await this.part.write(bytes.subarray(taken, taken + piece.length), piece.start);
      taken += piece.length;
      if (piece.start + piece.length === partLength(piece.part, this.size, this.partBytes)) {
        await this.close();
        this.readable = offset + taken;
      }
    }
  }

  async close(): Promise<void> {
    const { part } = this;
    this.part = undefined;
    await part?.close();
  }
}

async function openPart(folder: FileSystemDirectoryHandle, name: string): Promise<OpenPart> {
  const handle = await folder.getFileHandle(name, { create: true });
  for (let tries = 1; ; tries++) {
    try {
      const access = await openSync(handle, "readwrite");
      return access ? new SyncPart(access) : await openStream(handle);
    } catch (error) {
      if (!isNamed(error, "NoModificationAllowedError") || tries >= LOCKED_TRIES) throw error;
      await sleep(LOCKED_PAUSE_MS);
    }
  }
}

class SyncPart implements OpenPart {
  constructor(private readonly handle: SyncHandle) {}

  write(bytes: Uint8Array<ArrayBuffer>, at: number): void {
    for (let done = 0; done < bytes.length;) {
      const written = this.handle.write(bytes.subarray(done), { at: at + done });
      if (written === 0) throw new DOMException("nothing could be written", "QuotaExceededError");
      done += written;
    }
  }

  /** Flushed first: a part counts as full by its length, which a crash of the machine may leave without its bytes. */
  close(): void {
    try {
      this.handle.flush();
    } finally {
      this.handle.close();
    }
  }
}

/** What is written counts when the stream is closed: a crash loses the unfinished part. */
async function openStream(handle: FileSystemFileHandle): Promise<OpenPart> {
  const stream = await handle.createWritable({ keepExistingData: true });
  return {
    write: (bytes, at) => stream.write({ type: "write", position: at, data: bytes }),
    close: () => stream.close(),
  };
}
