// The download itself: one request after the other's break, from the network into parts. Knows nothing of locks, records or hashes.

import { modelFolder, storageError } from "./opfs.js";
import { PartsWriter } from "./parts.js";
import { type Version, requestRange, withRetries } from "./request.js";
import type { Tuning } from "./tuning.js";

export interface PumpJob {
  url: string;
  version: Version;
  /** The model's folder. */
  id: string;
  partBytes: number;
  /** Bytes that are here already. */
  from: number;
  tuning: Tuning;
}

/** How far it is: bytes written, and bytes in full parts, which can be read. */
export interface PumpReport {
  written: number;
  readable: number;
}

/** Runs until the file is whole here. What was written stays, whatever happens. */
export async function pump(job: PumpJob, report: (state: PumpReport) => void, signal: AbortSignal): Promise<void> {
  const { url, version, tuning } = job;
  let at = job.from;
  const writing = <T>(step: Promise<T>) =>
    step.catch(async (error: unknown) => {
      throw await storageError(error, version.size - at);
    });
  const folder = (await writing(modelFolder(job.id, true)))!;
  const parts = new PartsWriter(folder, version.size, job.partBytes, at);
  const tell = reporter(tuning.reportMs, report);
  const attempt = async (progressed: () => void) => {
    if (at === version.size) return;
    const answer = await requestRange(url, { start: at }, version, tuning, signal);
    try {
      for (let chunk = await answer.next(); chunk; chunk = await answer.next()) {
        await writing(parts.write(chunk, at));
        at += chunk.length;
        progressed();
        tell({ written: at, readable: parts.readable });
      }
    } finally {
      answer.cancel();
    }
  };
  try {
    await withRetries(attempt, tuning.tries, tuning, signal);
  } finally {
    await writing(parts.close());
    report({ written: at, readable: parts.readable });
  }
}

/** Passes each new part on at once, and anything else only now and then. */
function reporter(everyMs: number, report: (state: PumpReport) => void): (state: PumpReport) => void {
  let last = 0;
  let readable = -1;
  return (state) => {
    const now = performance.now();
    if (state.readable === readable && now - last < everyMs) return;
    last = now;
    readable = state.readable;
    report(state);
  };
}
