// Folders of chats. A folder is a name that chats carry, so that exported chats bring theirs along; folders without a chat are remembered
// in the settings.

import { t } from "../text/index.svelte.js";
import { chats, UNDO_MS } from "./chats.svelte.js";
import { notices } from "./notices.svelte.js";
import { change, MOST_NAME, settings } from "./settings.svelte.js";

/** All folders, in the order of their names. */
export function folders(): string[] {
  const used = chats().list.flatMap(({ folder }) => (folder === undefined ? [] : [folder]));
  return [...new Set([...settings.folders, ...used])].sort((a, b) => a.localeCompare(b));
}

/** A folder's name as it is kept; empty where there is none. */
export const folderName = (text: string): string => text.trim().slice(0, MOST_NAME).trim();

/** Makes a folder; false where there is one with that name. */
export function addFolder(text: string): boolean {
  const name = folderName(text);
  if (name === "" || folders().includes(name)) return false;
  change({ folders: [...settings.folders, name] });
  return true;
}

/** Gives a folder another name; false where another one has it. */
export async function renameFolder(old: string, text: string): Promise<boolean> {
  const name = folderName(text);
  if (name === old) return true;
  if (name === "" || folders().includes(name)) return false;
  change({ folders: [...settings.folders.filter((one) => one !== old), name] });
  await move(inFolder(old), name);
  return true;
}

/** Deletes a folder and keeps its chats; a notice offers it back. */
export async function removeFolder(name: string): Promise<void> {
  const ids = inFolder(name);
  change({ folders: settings.folders.filter((one) => one !== name) });
  await move(ids, undefined);
  const undo = async () => {
    addFolder(name);
    await move(ids, name);
  };
  const action = { label: t("common.undo"), run: () => void undo() };
  notices.show(t("folders.deleted", { name }), { action, stays: UNDO_MS });
}

function inFolder(name: string): string[] {
  return chats()
    .list.filter((one) => one.folder === name)
    .map((one) => one.id);
}

async function move(ids: readonly string[], folder: string | undefined): Promise<void> {
  for (const id of ids) await chats().move(id, folder);
}
