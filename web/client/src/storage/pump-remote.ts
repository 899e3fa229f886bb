// Starts a download in a worker of its own, or in this thread where that cannot be.

import { CancelledError, type PackedError, RullamaError, unpack } from "../errors.js";
import { type PumpJob, type PumpReport, pump } from "./pump.js";
import { spawn } from "./spawn.js";

export type ToPump = { type: "start"; job: PumpJob } | { type: "stop" };
export type FromPump =
  { type: "ready" } | { type: "report"; state: PumpReport } | { type: "done" } | { type: "failed"; error: PackedError };

/** Like `pump`, elsewhere. */
export async function runPump(job: PumpJob, report: (state: PumpReport) => void, signal: AbortSignal): Promise<void> {
  const start = () => new Worker(new URL("./pump-worker.js", import.meta.url), { type: "module" });
  const worker = job.tuning.workers ? await spawn(start, "pump-worker.js") : undefined;
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
