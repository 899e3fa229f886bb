// How far a load is, how fast it goes, and how long it will take; not more often than anybody can look.

import type { Progress } from "./types.js";

const EVERY_MS = 100;
/** Speed is that of the last seconds. */
const WINDOW_MS = 4000;

type Told = (progress: Progress) => void;

export class ProgressMeter {
  private current: Progress = { phase: "open", loaded: 0, total: 0, speed: 0, waited: 0 };
  private readonly samples: { at: number; bytes: number }[] = [];
  private told = -Infinity;

  constructor(
    private readonly tell: Told,
    private readonly now: () => number = () => performance.now(),
  ) {}

  phase(phase: Progress["phase"]): void {
    this.current = { ...this.current, phase };
    this.report(true);
  }

  /** Bytes of weights on the GPU, and seconds that were waited for them. */
  loaded(loaded: number, total: number, waited = 0): void {
    this.current = { ...this.current, phase: "load", loaded, total, waited };
    this.report(loaded === total);
  }

  /** Bytes of the file that are here. */
  downloaded(downloaded: number, downloadTotal: number): void {
    this.current = { ...this.current, downloaded, downloadTotal };
    this.report(false);
  }

  /** What counts is the slower of two: the download where there is one, else what goes to the GPU. */
  private report(atOnce: boolean): void {
    const now = this.now();
    const { loaded, total, downloaded, downloadTotal } = this.current;
    const [done, all] =
      downloaded === undefined || downloaded === downloadTotal ? [loaded, total] : [downloaded, downloadTotal ?? 0];
    const last = this.samples.at(-1);
    if (last !== undefined && done < last.bytes) this.samples.length = 0;
    this.samples.push({ at: now, bytes: done });
    while (this.samples.length > 2 && this.samples[0]!.at < now - WINDOW_MS) this.samples.shift();
    if (!atOnce && now - this.told < EVERY_MS) return;
    this.told = now;
    const first = this.samples[0]!;
    const speed = now > first.at ? ((done - first.bytes) * 1000) / (now - first.at) : 0;
    const eta = speed > 0 && all > 0 ? (all - done) / speed : undefined;
    this.tell({ ...this.current, speed, ...(eta === undefined ? {} : { eta }) });
  }
}
