// A file on a server, read in a worker of its own: the thread that uploads weights has no time for the network meanwhile.

import { CancelledError, type PackedError, RullamaError, unpack } from "../errors.js";
import { HttpSource } from "./http.js";
import { checkRead } from "./ranges.js";
import type { Version } from "./request.js";
import { spawn } from "./spawn.js";
import type { Tuning } from "./tuning.js";
import type { ByteSource } from "./types.js";

type Bytes = Uint8Array<ArrayBuffer>;

export type ToReader =
  | { type: "open"; url: string; version: Version; tuning: Tuning }
  | { type: "read"; id: number; offset: number; length: number }
  | { type: "back"; bytes: Bytes };
export type FromReader =
  { type: "ready" } | { type: "bytes"; id: number; bytes: Bytes } | { type: "failed"; id: number; error: PackedError };

/** Like `HttpSource`, elsewhere; in this thread where that cannot be. */
export async function readElsewhere(
  url: string,
  version: Version,
  tuning: Tuning,
  signal?: AbortSignal,
): Promise<ByteSource> {
  const start = () => new Worker(new URL("./read-worker.js", import.meta.url), { type: "module" });
  const worker = tuning.workers ? await spawn(start, "read-worker.js") : undefined;
  if (!worker) return new HttpSource(url, version, tuning, signal);
  const source = new WorkersSource(worker, version.size);
  worker.postMessage({ type: "open", url, version, tuning } satisfies ToReader);
  if (signal?.aborted) source.close();
  signal?.addEventListener("abort", () => source.close(), { once: true });
  return source;
}

interface Waiting {
  resolve: (bytes: Bytes) => void;
  reject: (error: Error) => void;
}

class WorkersSource implements ByteSource {
  private readonly waiting = new Map<number, Waiting>();
  private nextId = 1;
  private ended: RullamaError | undefined;

  constructor(
    private readonly worker: Worker,
    readonly size: number,
  ) {
    worker.onmessage = ({ data }: MessageEvent<FromReader>) => this.receive(data);
    worker.onerror = ({ message }) => this.end(new RullamaError("internal", `the reading worker failed: ${message}`));
  }

  async read(offset: number, length: number): Promise<Bytes> {
    checkRead(offset, length, this.size);
    if (this.ended) throw this.ended;
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ type: "read", id, offset, length } satisfies ToReader);
    });
  }

  giveBack(bytes: Bytes): void {
    if (!this.ended) this.worker.postMessage({ type: "back", bytes } satisfies ToReader, [bytes.buffer]);
  }

  close(): void {
    this.end(new CancelledError("the file was closed"));
  }

  private receive(message: FromReader): void {
    if (message.type === "ready") return;
    const waiting = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.type === "bytes") waiting?.resolve(message.bytes);
    else waiting?.reject(unpack(message.error));
  }

  private end(error: RullamaError): void {
    this.ended ??= error;
    this.worker.terminate();
    for (const { reject } of this.waiting.values()) reject(this.ended);
    this.waiting.clear();
  }
}
