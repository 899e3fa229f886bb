import { describe, expect, it } from "vitest";
import { untilFirstCall } from "../src/one-call.js";
import { drained, fakeModel } from "./fake-model.js";

const CALL = { type: "tool_call" as const, index: 0, call: { name: "f", arguments: {} } };

const run = (model: ReturnType<typeof fakeModel>, outer?: AbortSignal) =>
  drained(untilFirstCall((signal) => model.chat([], { signal }), outer));

describe("a reply with at most one call", () => {
  it("ends after its first call", async () => {
    const model = fakeModel(() => ["Wait.", CALL, CALL, "more"]);
    const events = await run(model);
    expect(events.map(({ type }) => type)).toEqual(["text", "tool_call", "done"]);
    expect(events.at(-1)).toMatchObject({ finish: "stop" });
    expect(model.running).toBe(0);
  });

  it("is like any other without a call, and when it is cancelled", async () => {
    expect((await run(fakeModel())).map(({ type }) => type)).toEqual(["text", "text", "done"]);
    const stop = new AbortController();
    stop.abort();
    expect(
      await run(
        fakeModel(() => [CALL]),
        stop.signal,
      ),
    ).toMatchObject([{ finish: "cancelled" }]);
  });
});
