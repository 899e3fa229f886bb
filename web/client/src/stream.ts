// Answers as async iterators.

import { CancelledError } from "./errors.js";
import type { Requests, Transport } from "./protocol.js";
import type { GenerateEvent, Usage } from "./types.js";

/**
 * Events of an answer as they come. It begins when it is first asked for an event; `break` ends the answer and waits until it has
 * ended. A signal ends it too: then the last event is `done` with `cancelled`.
 */
export async function* answerEvents(
  transport: Transport,
  /** What to ask for, once it is known. */
  params: (onEvent: (event: GenerateEvent) => void) => Promise<Requests["answer"]["params"]>,
  signal?: AbortSignal,
): AsyncGenerator<GenerateEvent, void, void> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort);
  const events: GenerateEvent[] = [];
  let wake = () => {};
  let ended = false;
  const onEvent = (event: GenerateEvent) => {
    events.push(event);
    wake();
  };
  const ask = async () => transport.call("answer", await params(onEvent), { signal: stop.signal, onEvent });
  const finished = ask().finally(() => {
    ended = true;
    wake();
  });
  // Failures are thrown where the answer ends.
  finished.catch(() => {});
  let done = false;
  try {
    for (;;) {
      const event = events.shift();
      if (event) {
        done = event.type === "done";
        yield event;
      } else if (ended) {
        break;
      } else {
        await new Promise<void>((resolve) => (wake = resolve));
      }
    }
    await finished;
  } catch (error) {
    // An answer that was cancelled before it began ends like any other.
    if (!(error instanceof CancelledError) || !signal?.aborted || done) throw error;
    yield { type: "done", finish: "cancelled", usage: NOTHING };
  } finally {
    signal?.removeEventListener("abort", abort);
    stop.abort();
    await finished.catch(() => {});
  }
}

const NOTHING: Usage = {
  promptTokens: 0,
  cachedTokens: 0,
  answerTokens: 0,
  timeToFirstToken: 0,
  prefillTokensPerSecond: 0,
  decodeTokensPerSecond: 0,
  seed: 0,
  contextUsed: 0,
  context: 0,
};
