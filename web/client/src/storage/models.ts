// What is kept in this browser: a list, and ways to keep it for good, delete it and tidy up.

import { NotFoundError, RullamaError } from "../errors.js";
import type { StorageReport, StoredModel } from "../types.js";
import { ifFree, useLock } from "./locks.js";
import type { StoredRecord } from "./opfs.js";
import { deleteEntry, listEntries, listRecords, modelFolder, namesOf, partLengths, readRecord } from "./opfs.js";
import { canKeep } from "./open-remote.js";
import { extentOf } from "./ranges.js";

/** A download that was cut can go on this long; then what there is of it is deleted. */
export const ABANDONED_DAYS = 14;
const DAY_MS = 86_400_000;

export class ModelStorage {
  /** Everything that is stored, finished or not, the last used first. What was abandoned goes first. */
  async report(): Promise<StorageReport> {
    // What cannot be deleted now is no reason not to list the rest.
    await this.clean().catch(() => {});
    const records = (await canKeep()) ? await listRecords() : [];
    const models = await Promise.all(records.map(describe));
    const storage = (globalThis.navigator as Navigator | undefined)?.storage;
    const { usage = 0, quota = 0 } = (await storage?.estimate?.()) ?? {};
    const persisted = (await storage?.persisted?.()) ?? false;
    return { models: models.sort((a, b) => b.used - a.used), usage, quota, persisted };
  }

  /** Deletes a model. Fails with code `storage` while any tab has it open or downloads it. */
  async remove(id: string): Promise<void> {
    const entries = (await canKeep()) ? await listEntries() : [];
    if (!entries.includes(id)) throw new NotFoundError(`no model with the id ${id} is stored in this browser`);
    if (await ifFree(useLock(id), () => deleteEntry(id))) return;
    throw new RullamaError("storage", "this model is in use; close it in all tabs first, then remove it");
  }

  /**
   * Deletes what nobody can use and nobody would see: things without a record, records of downloads that have nothing, and downloads
   * that nobody went on with for `ABANDONED_DAYS`. Says what went.
   */
  async clean(now = Date.now()): Promise<string[]> {
    const gone: string[] = [];
    const oldest = now - ABANDONED_DAYS * DAY_MS;
    const useful = async (id: string) => {
      const record = await readRecord(id);
      return record?.complete || (record !== undefined && record.used >= oldest && (await haveOf(record)) > 0);
    };
    for (const id of (await canKeep()) ? await listEntries() : []) {
      // Looked at without the lock first: opening or removing a model meanwhile need not wait.
      if (await useful(id)) continue;
      await ifFree(useLock(id), async () => {
        if (await useful(id)) return;
        await deleteEntry(id);
        gone.push(id);
      });
    }
    return gone;
  }
}

async function describe(record: StoredRecord): Promise<StoredModel> {
  const { id, names: labels, source, size, complete, added, used } = record;
  const [name = id] = labels;
  const have = complete ? size : await haveOf(record);
  return { id, name, names: namesOf(record), source, bytes: size, have, complete, added, used };
}

async function haveOf(record: StoredRecord): Promise<number> {
  const folder = await modelFolder(record.id, false);
  if (!folder) return 0;
  return extentOf(await partLengths(folder), record.size, record.partBytes).written;
}
