// Replies with at most one tool call: `parallelToolCalls: false`.

import type { GenerateEvent } from "./types.js";

/** Ends a reply after its first tool call. */
export function untilFirstCall(
  reply: (signal: AbortSignal) => AsyncIterable<GenerateEvent>,
  signal?: AbortSignal,
): AsyncGenerator<GenerateEvent, void, void> {
  const stop = new AbortController();
  const events = reply(signal ? AbortSignal.any([signal, stop.signal]) : stop.signal);
  return (async function* () {
    for await (const event of events) {
      if (!stop.signal.aborted) yield event;
      // The model may have written more before it heard of the end.
      else if (event.type === "done") yield { ...event, finish: signal?.aborted ? event.finish : "stop" };
      if (event.type === "tool_call") stop.abort();
    }
  })();
}
