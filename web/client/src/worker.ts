// The worker: an engine of its own behind the protocol.

import { InProcessTransport } from "./in-process.js";
import { pack } from "./errors.js";
import type { FromWorker, Kind, Requests, ToWorker } from "./protocol.js";

/** What of a worker's global scope is used here; the page's types say nothing of it. */
const scope = globalThis as unknown as {
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
  postMessage(message: FromWorker, transfer?: Transferable[]): void;
};

let engine = new InProcessTransport({});
const running = new Map<number, AbortController>();

async function answer(id: number, kind: Kind, params: unknown): Promise<void> {
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const result = await engine.call(kind, params as Requests[typeof kind]["params"], {
      signal: controller.signal,
      onEvent: (event: unknown) => scope.postMessage({ type: "event", id, event }),
    });
    const transfer =
      result instanceof Uint8Array || result instanceof Uint32Array ? [result.buffer as ArrayBuffer] : [];
    scope.postMessage({ type: "result", id, result }, transfer);
  } catch (error) {
    scope.postMessage({ type: "error", id, error: pack(error) });
  } finally {
    running.delete(id);
  }
}

scope.onmessage = ({ data }) => {
  if (data.type === "settings") engine = new InProcessTransport(data.settings);
  else if (data.type === "abort") running.get(data.id)?.abort();
  else void answer(data.id, data.kind, data.params);
};
