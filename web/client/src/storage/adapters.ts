// Adapters that are kept: `rullama/adapters/<id>/about.json` and their files beside it.

import { NotFoundError } from "../errors.js";
import type { StoredAdapter } from "../training-types.js";
import { deleteFolder, fileIn, foldersIn, hasFiles, jsonIn, ownFolder, writeNamed } from "./private-files.js";

const FOLDER = "adapters";
const ABOUT = "about.json";
/** PEFT's configuration; what else lies there is the adapter itself. */
export const CONFIG = "adapter_config.json";
export const WEIGHTS = "adapter_model.safetensors";
export const SINGLE = "adapter.gguf";

/** The files an adapter is made of. */
export interface AdapterFiles {
  weights: Blob;
  /** The text of the configuration beside it, where there is one. */
  config?: string;
}

/** Every adapter that is kept, the newest first. */
export async function storedAdapters(): Promise<StoredAdapter[]> {
  const folders = [...(await foldersIn(FOLDER)).values()];
  const all = await Promise.all(folders.map((folder) => jsonIn<StoredAdapter>(folder, ABOUT)));
  return all.filter((one) => one !== undefined).sort((a, b) => b.added - a.added);
}

/** Keeps an adapter. What it is comes last: without that, nobody takes the rest for one. */
export async function storeAdapter(about: StoredAdapter, files: AdapterFiles): Promise<void> {
  await deleteFolder(FOLDER, about.id);
  const folder = await ownFolder(FOLDER, about.id);
  await writeNamed(folder, about.format === "gguf" ? SINGLE : WEIGHTS, files.weights);
  if (files.config !== undefined) await writeNamed(folder, CONFIG, files.config);
  await writeNamed(folder, ABOUT, JSON.stringify(about));
}

/** A kept adapter with its files. */
export async function openAdapter(id: string): Promise<{ about: StoredAdapter; files: AdapterFiles } | undefined> {
  if (!(await hasFiles())) return undefined;
  const folder = (await foldersIn(FOLDER)).get(id);
  const about = folder && (await jsonIn<StoredAdapter>(folder, ABOUT));
  const weights = about && (await fileIn(folder, about.format === "gguf" ? SINGLE : WEIGHTS));
  if (!weights) return undefined;
  const config = await (await fileIn(folder, CONFIG))?.text();
  return { about, files: { weights, ...(config === undefined ? {} : { config }) } };
}

export async function renameAdapter(id: string, name: string): Promise<void> {
  const folder = (await foldersIn(FOLDER)).get(id);
  const about = folder && (await jsonIn<StoredAdapter>(folder, ABOUT));
  if (!about) throw unknownAdapter(id);
  await writeNamed(folder, ABOUT, JSON.stringify({ ...about, name }));
}

export function removeAdapter(id: string): Promise<void> {
  return deleteFolder(FOLDER, id);
}

export function unknownAdapter(id: string): NotFoundError {
  return new NotFoundError(`no adapter with the id ${id} is stored in this browser`);
}
