// Synchronous handles of private files, which only dedicated workers have and the library's types for pages leave out.

export interface SyncHandle {
  read(target: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  write(bytes: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  truncate(size: number): void;
  flush(): void;
  close(): void;
}

/** `read-only` lets several readers have the same file; browsers without modes let one handle per file exist. */
export type Mode = "readwrite" | "read-only";

interface Opener {
  createSyncAccessHandle(options: { mode: Mode }): Promise<SyncHandle>;
}

/** A synchronous handle; undefined where this thread cannot have one. */
export async function openSync(file: FileSystemFileHandle, mode: Mode): Promise<SyncHandle | undefined> {
  if (!("createSyncAccessHandle" in file)) return undefined;
  try {
    return await (file as FileSystemFileHandle & Opener).createSyncAccessHandle({ mode });
  } finally {
    // Somebody must know the file until then: Chromium 156 collects it otherwise, and the promise never settles.
    void file.name;
  }
}
