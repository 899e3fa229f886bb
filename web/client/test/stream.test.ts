import { describe, expect, it } from "vitest";
import { CancelledError, RullamaError } from "../src/errors.js";
import type { CallOptions, Transport } from "../src/protocol.js";
import { answerEvents } from "../src/stream.js";
import type { GenerateEvent, Usage } from "../src/types.js";

const USAGE = { answerTokens: 1 } as Usage;
const text = (said: string): GenerateEvent => ({ type: "text", text: said });
const done = (finish: "stop" | "cancelled"): GenerateEvent => ({ type: "done", finish, usage: USAGE });

/** An engine that says what `script` makes it say. */
function engine(script: (options: CallOptions<"answer">) => Promise<void>): Transport {
  return {
    call: (_kind: string, _params: unknown, options: CallOptions<"answer">) => script(options),
    close() {},
  } as unknown as Transport;
}

const params = async () => ({ model: 1, request: { options: {} } });

async function all(events: AsyncIterable<GenerateEvent>): Promise<GenerateEvent[]> {
  const list: GenerateEvent[] = [];
  for await (const event of events) list.push(event);
  return list;
}

describe("answerEvents", () => {
  it("gives every event, also those that came before anybody asked", async () => {
    const transport = engine(async ({ onEvent }) => {
      onEvent?.(text("a"));
      onEvent?.(text("b"));
      await Promise.resolve();
      onEvent?.(done("stop"));
    });
    expect(await all(answerEvents(transport, params))).toEqual([text("a"), text("b"), done("stop")]);
  });

  it("does nothing until it is asked", async () => {
    let begun = false;
    const events = answerEvents(
      engine(async () => void (begun = true)),
      params,
    );
    await Promise.resolve();
    expect(begun).toBe(false);
    await all(events);
    expect(begun).toBe(true);
  });

  it("ends the answer on break and waits for its end", async () => {
    let ended = false;
    const transport = engine(async ({ onEvent, signal }) => {
      onEvent?.(text("a"));
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
      await new Promise((resolve) => setTimeout(resolve, 5));
      ended = true;
    });
    for await (const _ of answerEvents(transport, params)) break;
    expect(ended).toBe(true);
  });

  it("throws what went wrong, after what was said", async () => {
    const transport = engine(async ({ onEvent }) => {
      onEvent?.(text("a"));
      throw new RullamaError("device_lost", "gone");
    });
    const heard: GenerateEvent[] = [];
    const reading = (async () => {
      for await (const event of answerEvents(transport, params)) heard.push(event);
    })();
    await expect(reading).rejects.toMatchObject({ code: "device_lost" });
    expect(heard).toEqual([text("a")]);
  });

  it("ends with `cancelled` where a signal came before it began", async () => {
    const transport = engine(({ signal }) =>
      Promise.reject(signal?.aborted ? new CancelledError() : new Error("not told")),
    );
    const signal = AbortSignal.abort();
    expect(await all(answerEvents(transport, params, signal))).toMatchObject([{ type: "done", finish: "cancelled" }]);
  });
});
