// The worker of a download: reading the network and writing parts takes no time from the engine's thread.

import { pack } from "../errors.js";
import { type PumpJob, pump } from "./pump.js";
import type { FromPump, ToPump } from "./pump-remote.js";

const controller = new AbortController();
const post = (message: FromPump) => postMessage(message);

async function run(job: PumpJob): Promise<void> {
  try {
    await pump(job, (state) => post({ type: "report", state }), controller.signal);
    post({ type: "done" });
  } catch (error) {
    post({ type: "failed", error: pack(error) });
  }
}

addEventListener("message", ({ data }: MessageEvent<ToPump>) => {
  if (data.type === "start") void run(data.job);
  else controller.abort();
});
post({ type: "ready" });
