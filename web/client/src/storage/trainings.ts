// Trainings that can go on: `rullama/training/<id>/` with what they are, their data, and two places for checkpoints.
//
// A checkpoint goes where the older one lies, with its digest behind it: whenever the browser dies, the other one is whole.

import { NotFoundError, RullamaError } from "../errors.js";
import type { SavedTraining, TrainingOptions } from "../training-types.js";
import { ifFree } from "./locks.js";
import { deleteFolder, fileIn, foldersIn, jsonIn, ownFolder, writeNamed } from "./private-files.js";

const FOLDER = "training";
const ABOUT = "run.json";
const DATA = "data.jsonl";
const PROGRESS = "progress.json";
const PLACES = ["checkpoint-a", "checkpoint-b"] as const;
/** Behind a checkpoint: its step, and the SHA-256 of everything before. */
const STEP_BYTES = 4;
const DIGEST_BYTES = 32;

/** What a training is, written once when it begins. */
export interface RunRecord {
  id: string;
  name: string;
  model: string;
  options: TrainingOptions;
  begun: number;
}

/** How far it was at its last checkpoint. */
export type RunProgress = Pick<SavedTraining, "step" | "steps" | "loss" | "saved">;

const runLock = (id: string) => `rullama/training/${id}`;

/** Runs `work` as the only one who has this training; fails where another tab has it. */
export async function holdingRun(id: string, work: () => Promise<void>): Promise<void> {
  if (await ifFree(runLock(id), work)) return;
  throw new RullamaError("storage", "this training is open in another tab; go on there, or close it first");
}

export async function beginRun(record: RunRecord, data: string): Promise<void> {
  const folder = await ownFolder(FOLDER, record.id);
  await writeNamed(folder, DATA, data);
  await writeNamed(folder, ABOUT, JSON.stringify(record));
}

export async function readRun(id: string): Promise<{ record: RunRecord; data: string }> {
  const folder = (await foldersIn(FOLDER)).get(id);
  const record = folder && (await jsonIn<RunRecord>(folder, ABOUT));
  const data = record && (await fileIn(folder, DATA));
  if (!data) throw new NotFoundError(`no training with the id ${id} is stored in this browser`);
  return { record, data: await data.text() };
}

/** Trainings that are stored, the last one first. */
export async function savedTrainings(): Promise<SavedTraining[]> {
  const all: SavedTraining[] = [];
  for (const folder of (await foldersIn(FOLDER)).values()) {
    const record = await jsonIn<RunRecord>(folder, ABOUT);
    if (!record) continue;
    const progress = await jsonIn<RunProgress>(folder, PROGRESS);
    const begun = { step: 0, steps: record.options.steps ?? 0, saved: record.begun };
    all.push({ ...record, ...begun, ...progress });
  }
  return all.sort((a, b) => b.saved - a.saved);
}

/** Deletes a training; fails with code `storage` while a tab works on it. */
export async function discardTraining(id: string): Promise<void> {
  await holdingRun(id, () => deleteRun(id));
}

/** The same while the lock is held. */
export function deleteRun(id: string): Promise<void> {
  return deleteFolder(FOLDER, id);
}

/** Writes a checkpoint in the place of the older one. */
export async function writeCheckpoint(
  id: string,
  pieces: Uint8Array<ArrayBuffer>[],
  progress: RunProgress,
): Promise<void> {
  const folder = await ownFolder(FOLDER, id);
  const step = new Uint8Array(STEP_BYTES);
  new DataView(step.buffer).setUint32(0, progress.step, true);
  const whole = new Blob([...pieces, step]);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await whole.arrayBuffer()));
  const last = await lastStep(folder);
  const place = last?.place === PLACES[0] ? PLACES[1] : PLACES[0];
  await writeNamed(folder, place, new Blob([whole, digest]));
  await writeNamed(folder, PROGRESS, JSON.stringify(progress));
}

/** The newest checkpoint that is whole; undefined where there is none. */
export async function readCheckpoint(id: string): Promise<Blob | undefined> {
  const folder = await ownFolder(FOLDER, id);
  const last = await lastStep(folder);
  return last?.file.slice(0, last.file.size - STEP_BYTES - DIGEST_BYTES);
}

interface Place {
  place: (typeof PLACES)[number];
  file: File;
  step: number;
}

async function lastStep(folder: FileSystemDirectoryHandle): Promise<Place | undefined> {
  const found: Place[] = [];
  for (const place of PLACES) {
    const file = await fileIn(folder, place);
    const step = file && (await stepOf(file));
    if (file && step !== undefined) found.push({ place, file, step });
  }
  return found.sort((a, b) => b.step - a.step)[0];
}

/** The step of a checkpoint that is whole. */
async function stepOf(file: File): Promise<number | undefined> {
  const end = file.size - DIGEST_BYTES;
  if (end < STEP_BYTES) return undefined;
  const bytes = await file.arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.slice(0, end)));
  const wanted = new Uint8Array(bytes, end);
  if (!digest.every((byte, index) => byte === wanted[index])) return undefined;
  return new DataView(bytes).getUint32(end - STEP_BYTES, true);
}
