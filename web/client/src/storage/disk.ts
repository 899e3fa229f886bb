// A file on this machine, by its path: under Node, Deno and Bun.

import { CancelledError, NotFoundError, RullamaError } from "../errors.js";
import { checkRead } from "./ranges.js";
import type { ByteSource } from "./types.js";

/** What is used of `node:fs/promises`, which the other runtimes have too. */
interface Files {
  open(path: string | URL): Promise<FileHandle>;
}

interface FileHandle {
  stat(): Promise<{ size: number; isFile(): boolean }>;
  read(into: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
  close(): Promise<void>;
}

/** Whether a source is a path or a `file:` address; pages have neither, and paths there are addresses. */
export function diskPath(source: unknown): string | URL | undefined {
  const address = source instanceof URL ? source : undefined;
  if (address?.protocol === "file:") return address;
  if (typeof source !== "string") return undefined;
  if (/^file:/iu.test(source)) return new URL(source);
  const { document, location } = globalThis as { document?: unknown; location?: unknown };
  if (document !== undefined || location !== undefined) return undefined;
  const isPath = /^(?:\.{0,2}[/\\]|[a-z]:[/\\])/iu.test(source) || /^[^:]+\.gguf$/iu.test(source);
  return isPath && !/^hf\.co\//iu.test(source) ? source : undefined;
}

export class DiskSource implements ByteSource {
  private closed = false;

  private constructor(
    private readonly file: FileHandle,
    readonly size: number,
  ) {}

  static async open(path: string | URL): Promise<DiskSource> {
    try {
      // The name is not written out, so that bundlers leave it alone.
      const module = "node:fs/promises";
      const files = (await import(/* @vite-ignore */ /* webpackIgnore: true */ module)) as Files;
      const file = await files.open(path);
      const { size, isFile } = await file.stat().then((stat) => ({ size: stat.size, isFile: stat.isFile() }));
      if (isFile) return new DiskSource(file, size);
      await file.close();
    } catch (error) {
      const advice = "check the path, and that this process may read it";
      throw new NotFoundError(`${String(path)} cannot be opened: ${advice}`, [], { cause: error });
    }
    throw new RullamaError("bad_options", `${String(path)} is not a file`);
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    if (this.closed) throw new CancelledError("the file was closed");
    checkRead(offset, length, this.size);
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length;) {
      const { bytesRead } = await this.file.read(bytes, done, length - done, offset + done);
      if (bytesRead === 0)
        throw new RullamaError("file_changed", "the file became shorter while it was read; open it again");
      done += bytesRead;
    }
    return bytes;
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    void this.file.close();
  }
}
