// Starts a download in a worker of its own, or in this thread where that cannot be.

import { CancelledError, type PackedError, RullamaError, unpack } from "../errors.js";
import { type PumpJob, type PumpReport, pump } from "./pump.js";

export type ToPump = { type: "start"; job: PumpJob } | { type: "stop" };
export type FromPump =
  { type: "ready" } | { type: "report"; state: PumpReport } | { type: "done" } | { type: "failed"; error: PackedError };

/** Like `pump`, elsewhere. */
export async function runPump(job: PumpJob, report: (state: PumpReport) => void, signal: AbortSignal): Promise<void> {
  const worker = job.tuning.pumpInWorker ? await spawn() : undefined;
  if (!worker) return pump(job, report, signal);
  const tell = (message: ToPump) => worker.postMessage(message);
  const stop = () => tell({ type: "stop" });
  try {
    if (signal.aborted) throw new CancelledError();
    await new Promise<void>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<FromPump>) => {
        if (data.type === "report") report(data.state);
        else if (data.type === "done") resolve();
        else if (data.type === "failed") reject(unpack(data.error));
      };
      worker.onerror = (event) => reject(new RullamaError("internal", `the download worker failed: ${event.message}`));
      signal.addEventListener("abort", stop, { once: true });
      tell({ type: "start", job });
    });
  } finally {
    signal.removeEventListener("abort", stop);
    worker.terminate();
  }
}

/** A worker that has started; undefined where there are none, or the page's policy or a build left this one out. */
async function spawn(): Promise<Worker | undefined> {
  if (typeof Worker === "undefined") return undefined;
  let worker: Worker;
  try {
    worker = startWorker();
  } catch {
    return undefined;
  }
  const started = await new Promise<boolean>((resolve) => {
    worker.onmessage = () => resolve(true);
    worker.onerror = (event) => {
      event.preventDefault();
      resolve(false);
    };
  });
  if (started) return worker;
  worker.terminate();
  return undefined;
}

function startWorker(): Worker {
  try {
    // Bundlers look for exactly this.
    return new Worker(new URL("./pump-worker.js", import.meta.url), { type: "module" });
  } catch {
    // Workers must be of the page's origin; a script of that origin may import one from elsewhere.
    const address = import.meta.url.replace(/[^/]*$/, "pump-worker.js");
    const script = new Blob([`import ${JSON.stringify(address)};`], { type: "text/javascript" });
    return new Worker(URL.createObjectURL(script), { type: "module" });
  }
}
