// Progress of a download, as the specification wants it: from 0 to 1, in steps of 1/65536, rising, and not too often.

import { HandlerAttribute, asInterface } from "./interface.js";
import type { CreateMonitor } from "./types.js";

const STEP = 65_536;
const EVERY_MS = 50;

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

/** Only this module makes them. */
const PRIVATE = Symbol("CreateMonitor");

class CreateMonitorTarget extends EventTarget implements CreateMonitor {
  readonly #handler = new HandlerAttribute<ProgressEvent>(this, "downloadprogress");

  constructor(key: unknown) {
    if (key !== PRIVATE) throw new TypeError("Illegal constructor");
    super();
  }

  get ondownloadprogress(): CreateMonitor["ondownloadprogress"] {
    return this.#handler.value;
  }

  set ondownloadprogress(value: unknown) {
    this.#handler.value = value;
  }
}

/** The interface of what the `monitor` of a page gets. */
export const Monitor = asInterface(CreateMonitorTarget, "CreateMonitor");

export const newMonitor = (): CreateMonitor => new Monitor(PRIVATE);

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
