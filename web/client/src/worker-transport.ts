// The worker transport: requests posted to the engine's worker, results and events posted back.

import { FreedError, RullamaError, unpack } from "./errors.js";
import type { CallOptions, FromWorker, Kind, Requests, Settings, ToWorker, Transport } from "./protocol.js";

interface Waiting {
  resolve: (result: never) => void;
  reject: (error: Error) => void;
  onEvent: ((event: never) => void) | undefined;
}

export class WorkerTransport implements Transport {
  private readonly waiting = new Map<number, Waiting>();
  private nextId = 1;
  private ended: RullamaError | undefined;

  constructor(
    private readonly worker: Worker,
    settings: Settings,
  ) {
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.receive(data);
    // A script that cannot be loaded, or a trap inside it: nothing it was asked for will come.
    worker.onerror = (event) => {
      const why = event.message || "its script could not be loaded";
      this.end(new RullamaError("internal", `the engine's worker broke: ${why}`));
    };
    this.post({ type: "settings", settings });
  }

  call<K extends Kind>(
    kind: K,
    params: Requests[K]["params"],
    options: CallOptions<K> = {},
  ): Promise<Requests[K]["result"]> {
    if (this.ended) return Promise.reject(this.ended);
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      const abort = () => this.post({ type: "abort", id });
      const settled = () => {
        this.waiting.delete(id);
        options.signal?.removeEventListener("abort", abort);
      };
      this.waiting.set(id, {
        resolve: (result) => (settled(), resolve(result)),
        reject: (error) => (settled(), reject(error)),
        onEvent: options.onEvent,
      });
      this.post({ type: "call", id, kind, params });
      if (options.signal?.aborted) abort();
      else options.signal?.addEventListener("abort", abort);
    });
  }

  get alive(): boolean {
    return this.ended === undefined;
  }

  close(): void {
    this.worker.terminate();
    this.end(new FreedError("the engine was closed"));
  }

  private end(error: RullamaError): void {
    this.ended ??= error;
    for (const waiting of this.waiting.values()) waiting.reject(error);
  }

  private post(message: ToWorker): void {
    this.worker.postMessage(message);
  }

  private receive(message: FromWorker): void {
    const waiting = this.waiting.get(message.id);
    if (!waiting) return;
    if (message.type === "event") waiting.onEvent?.(message.event as never);
    else if (message.type === "result") waiting.resolve(message.result as never);
    else waiting.reject(unpack(message.error));
  }
}
