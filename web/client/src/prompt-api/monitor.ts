// Progress of a download, as the specification wants it: from 0 to 1, in steps of 1/65536, rising, and not too often.

import type { CreateMonitor } from "./types.js";

const STEP = 65_536;
const EVERY_MS = 50;

type Handler = ((event: ProgressEvent) => unknown) | null;

/** Where there is no `ProgressEvent`, as outside of browsers. */
class OwnProgressEvent extends Event {
  readonly lengthComputable = true;
  readonly total = 1;

  constructor(
    type: string,
    readonly loaded: number,
  ) {
    super(type);
  }
}

function progressEvent(loaded: number): Event {
  if (typeof ProgressEvent === "undefined") return new OwnProgressEvent("downloadprogress", loaded);
  return new ProgressEvent("downloadprogress", { lengthComputable: true, loaded, total: 1 });
}

export class Monitor extends EventTarget implements CreateMonitor {
  #handler: Handler = null;
  #listens = false;

  get ondownloadprogress(): Handler {
    return this.#handler;
  }

  set ondownloadprogress(value: unknown) {
    this.#handler = typeof value === "function" ? (value as NonNullable<Handler>) : null;
    if (this.#listens) return;
    this.#listens = true;
    this.addEventListener("downloadprogress", (event) => this.#handler?.call(this, event as ProgressEvent));
  }

  get [Symbol.toStringTag](): string {
    return "CreateMonitor";
  }
}

/** Fires events of a monitor. */
export class ProgressReporter {
  private last = -1;
  private told = -Infinity;
  private ended = false;

  constructor(
    private readonly monitor: EventTarget,
    private readonly now = () => performance.now(),
  ) {}

  report(fraction: number): void {
    const loaded = Math.floor(Math.min(1, Math.max(0, fraction)) * STEP) / STEP;
    const due = this.now() - this.told >= EVERY_MS || loaded === 0 || loaded === 1;
    if (this.ended || loaded <= this.last || !due) return;
    this.last = loaded;
    this.told = this.now();
    this.monitor.dispatchEvent(progressEvent(loaded));
  }

  /** Nothing is told after this. */
  end(): void {
    this.ended = true;
  }
}
