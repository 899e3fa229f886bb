// A download that is kept: one tab writes, others follow its parts and take over should it die. Complete only after the checksum.

import { CancelledError, ChecksumError, type PackedError, RullamaError, pack, unpack } from "../errors.js";
import { writeLock } from "./locks.js";
import type { StoredRecord } from "./opfs.js";
import {
  deleteEntry,
  deletePart,
  isNamed,
  modelFolder,
  partLengths,
  readRecord,
  storageError,
  writeRecord,
} from "./opfs.js";
import type { PartsSource } from "./parts.js";
import { runPump } from "./pump-remote.js";
import type { PumpReport } from "./pump.js";
import { extentOf, partCount } from "./ranges.js";
import type { Version } from "./request.js";
import type { Tuning } from "./tuning.js";
import type { HashPieces } from "./types.js";

/** What the writer tells the other tabs. */
type Announcement = { type: "report"; state: PumpReport } | { type: "failed"; error: PackedError };

export interface DownloadPlan {
  /** The record to begin with, unless there is one already. */
  record: StoredRecord;
  /** The file as the server has it now. */
  version: Version;
  /** Bytes in full parts by now. */
  readable: number;
  parts: PartsSource;
  hash: HashPieces;
  tuning: Tuning;
  onDownload?: (have: number, total: number) => void;
}

export class Download {
  /** Bytes from the start that can be read from parts. */
  readable: number;
  /** Why there will be no more; reading may go on elsewhere. */
  failure: RullamaError | undefined;
  /** Settles when the file is whole here and right. */
  readonly outcome: Promise<void>;
  private readonly controller = new AbortController();
  private readonly channel: BroadcastChannel;
  private waiting: (() => void)[] = [];

  constructor(private readonly plan: DownloadPlan) {
    this.readable = plan.readable;
    this.channel = new BroadcastChannel(`rullama/download/${plan.record.id}`);
    this.channel.onmessage = ({ data }: MessageEvent<Announcement>) => this.receive(data);
    this.outcome = this.run();
    this.outcome.catch(() => {});
  }

  /** Settles when something changed: more can be read, or there will be no more. */
  moved(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Ends it here; what was written stays, and another tab may go on. */
  stop(): void {
    this.controller.abort();
    this.fail(new CancelledError("the model was closed"));
  }

  private async run(): Promise<void> {
    const { signal } = this.controller;
    try {
      await navigator.locks.request(writeLock(this.plan.record.id), { signal }, () => this.write());
    } catch (error) {
      const failure = this.failure ?? (await this.failureOf(error));
      this.fail(failure);
      throw failure;
    } finally {
      this.channel.close();
    }
  }

  private async failureOf(error: unknown): Promise<RullamaError> {
    if (isNamed(error, "AbortError")) return new CancelledError();
    return storageError(error, this.plan.record.size - this.readable);
  }

  /** Runs while nobody else writes this model. */
  private async write(): Promise<void> {
    const { record, from } = await this.prepare();
    this.report({ written: from, readable: this.readable }, false);
    if (record.complete) return;
    const attempt = new AbortController();
    const end = () => attempt.abort();
    this.controller.signal.addEventListener("abort", end, { once: true });
    if (this.controller.signal.aborted) end();
    const pumped = this.pump(record, from, attempt.signal);
    try {
      await Promise.all([pumped, this.check(record, attempt.signal)]);
      await writeRecord({ ...record, complete: true, used: Date.now() });
    } catch (error) {
      end();
      this.wake();
      // It closes its files first; the checksum nobody needs any more is not waited for.
      await pumped.catch(() => {});
      await this.cleanUp(error, record);
      throw error;
    } finally {
      this.controller.signal.removeEventListener("abort", end);
    }
  }

  /** The record as it stands, and how much is here; parts that do not fit are deleted. */
  private async prepare(): Promise<{ record: StoredRecord; from: number }> {
    const { plan } = this;
    const folder = (await modelFolder(plan.record.id, true))!;
    const found = await readRecord(plan.record.id);
    const record = found && found.size === plan.record.size ? found : plan.record;
    const lengths = await partLengths(folder);
    const extent = extentOf(record === found ? lengths : new Map(), record.size, record.partBytes);
    if (record.complete && extent.readable === record.size) {
      this.readable = record.size;
      return { record, from: record.size };
    }
    const useless = record === found ? extent.useless : [...lengths.keys()];
    for (const index of useless) await deletePart(folder, index);
    const { source, etag, lastModified, names, served, info, used } = plan.record;
    const current = { ...record, source, etag, lastModified, names, served, info, used, complete: false };
    await writeRecord(current);
    this.readable = extent.readable;
    return { record: current, from: extent.written };
  }

  private async pump(record: StoredRecord, from: number, signal: AbortSignal): Promise<void> {
    const { version, tuning } = this.plan;
    const job = { url: record.source, version, id: record.id, partBytes: record.partBytes, from, tuning };
    await runPump(job, (state) => this.report(state, true), signal);
  }

  private async check(record: StoredRecord, signal: AbortSignal): Promise<void> {
    if (record.sha256 === undefined) return;
    const actual = await this.plan.hash(this.pieces(record, signal), signal);
    if (actual === record.sha256) return;
    const message = `${record.source} does not have the SHA-256 it should have; what was downloaded is deleted`;
    throw new ChecksumError(message, record.sha256, actual);
  }

  /** The parts in order, each as soon as it is full. */
  private async *pieces(record: StoredRecord, signal: AbortSignal): AsyncGenerator<Blob> {
    for (let index = 0; index < partCount(record.size, record.partBytes); index++) {
      const end = Math.min((index + 1) * record.partBytes, record.size);
      while (this.readable < end && !signal.aborted) await this.moved();
      if (signal.aborted) throw new CancelledError();
      yield await this.plan.parts.file(index);
    }
  }

  /** What can never become whole does not stay. */
  private async cleanUp(error: unknown, record: StoredRecord): Promise<void> {
    const code = error instanceof RullamaError ? error.code : undefined;
    const useless = code === "checksum" || (code === "file_changed" && record.sha256 === undefined);
    if (!useless || !(error instanceof RullamaError)) return;
    this.fail(error);
    this.channel.postMessage({ type: "failed", error: pack(error) } satisfies Announcement);
    this.plan.parts.close();
    await deleteEntry(record.id);
  }

  private receive(announcement: Announcement): void {
    if (announcement.type === "report") {
      this.report(announcement.state, false);
      return;
    }
    this.plan.parts.close();
    this.fail(unpack(announcement.error));
    this.controller.abort();
  }

  private report(state: PumpReport, announce: boolean): void {
    this.readable = Math.max(this.readable, state.readable);
    this.plan.onDownload?.(state.written, this.plan.record.size);
    if (announce) this.channel.postMessage({ type: "report", state } satisfies Announcement);
    this.wake();
  }

  private fail(failure: RullamaError): void {
    this.failure ??= failure;
    this.wake();
  }

  private wake(): void {
    for (const resume of this.waiting.splice(0)) resume();
  }
}
