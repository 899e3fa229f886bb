// Responses of the in-page server: whole ones, streams, and failures with the status that clients act on.

import { RullamaError, rullamaError } from "../errors.js";
import type { GenerateEvent } from "../types.js";

export const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });

/** A request that names no route, or is not what its route takes. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Status and message of a failure. Local failures do not pass by themselves, so clients are told not to retry. */
export function failureOf(error: unknown): { status: number; message: string; code: string } {
  if (error instanceof HttpError) return { status: error.status, message: error.message, code: "bad_options" };
  const { code, message } = rullamaError(error);
  const statuses: Partial<Record<typeof code, number>> = {
    bad_options: 400,
    bad_media: 400,
    context_full: 400,
    projector: 400,
    unsupported_model: 400,
    not_found: 404,
    does_not_fit: 422,
    out_of_memory: 422,
  };
  return { status: statuses[code] ?? 500, message, code };
}

export const NO_RETRY = { "x-should-retry": "false" };

/** How a client wants failures. */
export interface ErrorShape {
  body(failure: { status: number; message: string; code: string }): unknown;
  /** A failure inside of a stream. */
  frame(failure: { status: number; message: string; code: string }): string;
}

/** Waits until a reply has really begun, so that what fails before that gets a status of its own. */
export async function begun(events: AsyncIterator<GenerateEvent>): Promise<AsyncGenerator<GenerateEvent, void, void>> {
  let first = await events.next();
  while (!first.done && (first.value.type === "prefill" || first.value.type === "media")) first = await events.next();
  return (async function* () {
    try {
      while (!first.done) {
        yield first.value;
        first = await events.next();
      }
    } finally {
      await events.return?.();
    }
  })();
}

/** A stream of frames. Ends with the signal's reason when that aborts, and ends the reply when its reader goes away. */
export function streamed(
  frames: AsyncIterator<string>,
  type: "text/event-stream" | "application/x-ndjson",
  shape: ErrorShape,
  signal: AbortSignal,
): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      const abort = () => {
        controller.error(signal.reason);
        void frames.return?.();
      };
      signal.addEventListener("abort", abort, { once: true });
    },
    async pull(controller) {
      try {
        const { done, value } = await frames.next();
        if (signal.aborted) return;
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value));
      } catch (error) {
        if (signal.aborted) return;
        controller.enqueue(encoder.encode(shape.frame(failureOf(error))));
        controller.close();
      }
    },
    async cancel() {
      await frames.return?.();
    },
  });
  return new Response(body, { headers: { "content-type": type, "cache-control": "no-store" } });
}

export const sse = (data: unknown, event?: string): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

export function randomId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return prefix + [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function record(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new RullamaError("bad_options", `${what} must be an object`);
}

export function list(value: unknown, what: string): unknown[] {
  if (Array.isArray(value)) return value;
  throw new RullamaError("bad_options", `${what} must be a list`);
}

export function text(value: unknown, what: string): string {
  if (typeof value === "string") return value;
  throw new RullamaError("bad_options", `${what} must be text`);
}

/** Options without those that are absent. */
export function given<T extends object>(options: { [K in keyof T]: T[K] | null | undefined }): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== null)) as T;
}
