// Whole files in the origin's private file system: written in one step, read if they are there.

import { RullamaError } from "../errors.js";
import { openSync } from "./sync-access.js";

/** A folder of ours, made where it is missing. */
export async function ownFolder(...path: string[]): Promise<FileSystemDirectoryHandle> {
  let folder = await navigator.storage.getDirectory();
  for (const name of ["rullama", ...path]) folder = await folder.getDirectoryHandle(name, { create: true });
  return folder;
}

/** Puts bytes in a file's place: where the browser can, the old ones stay until the new ones are whole. */
export async function writeFile(handle: FileSystemFileHandle, bytes: Uint8Array<ArrayBuffer> | Blob): Promise<void> {
  if ("createWritable" in handle) {
    const stream = await handle.createWritable();
    try {
      await stream.write(bytes);
    } catch (error) {
      await stream.abort().catch(() => {});
      throw error;
    }
    await stream.close();
    return;
  }
  const access = await openSync(handle, "readwrite");
  if (!access) throw new RullamaError("storage", "this browser cannot write files here");
  try {
    const all = bytes instanceof Blob ? new Uint8Array(await bytes.arrayBuffer()) : bytes;
    access.truncate(0);
    access.write(all, { at: 0 });
    access.flush();
  } finally {
    access.close();
  }
}

export async function writeNamed(
  folder: FileSystemDirectoryHandle,
  name: string,
  content: Uint8Array<ArrayBuffer> | Blob | string,
): Promise<void> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  await writeFile(await folder.getFileHandle(name, { create: true }), bytes);
}

/** A file of a folder; undefined where there is none. */
export async function fileIn(folder: FileSystemDirectoryHandle, name: string): Promise<File | undefined> {
  try {
    return await (await folder.getFileHandle(name)).getFile();
  } catch (error) {
    if (missing(error)) return undefined;
    throw error;
  }
}

/** What a file of JSON holds; undefined where there is none that can be read. */
export async function jsonIn<T>(folder: FileSystemDirectoryHandle, name: string): Promise<T | undefined> {
  const file = await fileIn(folder, name);
  if (!file) return undefined;
  try {
    return JSON.parse(await file.text()) as T;
  } catch (error) {
    if (error instanceof SyntaxError || missing(error)) return undefined;
    throw error;
  }
}

/** Folders in a folder of ours, by name; none where this browser has no such file system. */
export async function foldersIn(name: string): Promise<Map<string, FileSystemDirectoryHandle>> {
  const found = new Map<string, FileSystemDirectoryHandle>();
  if (!(await hasFiles())) return found;
  for await (const [id, handle] of (await ownFolder(name)).entries()) {
    if (handle.kind === "directory") found.set(id, handle as FileSystemDirectoryHandle);
  }
  return found;
}

/** Whether private files can be had: private windows of some browsers have none. */
export async function hasFiles(): Promise<boolean> {
  try {
    await navigator.storage.getDirectory();
    return true;
  } catch {
    return false;
  }
}

/** Deletes a folder of ours; nothing happens where there is none. */
export async function deleteFolder(parent: string, id: string): Promise<void> {
  try {
    await (await ownFolder(parent)).removeEntry(id, { recursive: true });
  } catch (error) {
    if (!missing(error)) throw error;
  }
}

function missing(error: unknown): boolean {
  return error instanceof Error && error.name === "NotFoundError";
}
