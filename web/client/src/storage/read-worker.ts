// The worker that reads a file on a server; what it read is handed over, not copied.

import { RullamaError, pack } from "../errors.js";
import { HttpSource } from "./http.js";
import type { FromReader, ToReader } from "./read-remote.js";

const post = (message: FromReader, transfer: Transferable[] = []) => postMessage(message, { transfer });
let source: HttpSource | undefined;

async function read(id: number, offset: number, length: number): Promise<void> {
  try {
    if (!source) throw new RullamaError("internal", "the reading worker was told of no file");
    const bytes = await source.read(offset, length);
    post({ type: "bytes", id, bytes }, [bytes.buffer]);
  } catch (error) {
    post({ type: "failed", id, error: pack(error) });
  }
}

addEventListener("message", ({ data }: MessageEvent<ToReader>) => {
  if (data.type === "open") source = new HttpSource(data.url, data.version, data.tuning);
  else if (data.type === "back") source?.giveBack(data.bytes);
  else void read(data.id, data.offset, data.length);
});
post({ type: "ready" });
