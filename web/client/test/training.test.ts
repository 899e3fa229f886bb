import { describe, expect, it } from "vitest";
import { BadAdapterError, BadDataError, FreedError, pack, rullamaError, unpack } from "../src/errors.js";
import type { CallOptions, Transport } from "../src/protocol.js";
import { adapterWords } from "../src/sampling.js";
import { TrainingSession } from "../src/training.js";
import type { TrainingNote } from "../src/training-protocol.js";
import type { TrainingProgress, TrainingResult } from "../src/training-types.js";

const BEGUN: TrainingNote = { type: "begun", step: 2, steps: 4, losses: [3, 2], evaluations: [{ step: 2, loss: 2.5 }] };
const RESULT = { steps: 4, loss: 0.5, early: false } as TrainingResult;
const step = (at: number, loss: number): TrainingNote => ({
  type: "step",
  step: at,
  loss,
  learningRate: 1e-3,
  tokensPerSecond: 10,
  eta: 4 - at,
});

/** An engine whose trainings go as `script` says; what it was asked for besides is kept. */
function engine(script: (options: CallOptions<"train">) => Promise<TrainingResult>) {
  const asked: unknown[] = [];
  const transport = {
    call: (kind: string, params: unknown, options: CallOptions<"train">) => {
      if (kind === "train") return script(options);
      asked.push(params);
      return Promise.resolve();
    },
    close() {},
    alive: true,
  } as unknown as Transport;
  return { transport, asked };
}

const begin = (transport: Transport) => TrainingSession.begin(transport, { model: 1, id: "a" });

describe("a training", () => {
  it("tells everybody everything from its beginning, and what it goes on from", async () => {
    const { transport } = engine(async ({ onEvent }) => {
      for (const note of [BEGUN, step(3, 1), step(4, 0.8), { type: "evaluated", step: 4, loss: 2 } as const]) {
        onEvent?.(note);
        await Promise.resolve();
      }
      return RESULT;
    });
    const session = await begin(transport);
    const heard = async () => {
      const all: TrainingProgress[] = [];
      for await (const progress of session) all.push(progress);
      return all;
    };
    const [first, second] = await Promise.all([heard(), heard()]);
    expect(second).toEqual(first);
    expect(first.map((one) => [one.state, one.step, one.loss, one.evalLoss])).toEqual([
      ["running", 3, 1, 2.5],
      ["running", 4, 0.8, 2.5],
      ["running", 4, 0.8, 2],
      ["done", 4, 0.5, 2],
    ]);
    expect(session.losses).toEqual([3, 2, 1, 0.8]);
    expect(session.evaluations).toHaveLength(2);
    expect(await session.result).toBe(RESULT);
    await expect(session.pause()).rejects.toBeInstanceOf(FreedError);
  });

  it("fails where it begins, or where it is listened to", async () => {
    const never = engine(() => Promise.reject(new BadDataError("line 3", 3)));
    await expect(begin(never.transport)).rejects.toMatchObject({ code: "bad_data", line: 3 });
    const later = engine(async ({ onEvent }) => {
      onEvent?.(BEGUN);
      throw new FreedError("gone");
    });
    const session = await begin(later.transport);
    await expect(session[Symbol.asyncIterator]().next()).resolves.toMatchObject({ value: { state: "failed" } });
    await expect(session.result).rejects.toBeInstanceOf(FreedError);
  });

  it("is steered by its id, and cancelled by its signal", async () => {
    const { transport, asked } = engine(
      ({ onEvent, signal }) =>
        new Promise((_, reject) => {
          onEvent?.(BEGUN);
          signal?.addEventListener("abort", () => reject(new FreedError("cancelled")));
        }),
    );
    const session = await begin(transport);
    await session.pause();
    await session.resume();
    await session.checkpoint();
    expect(asked).toEqual(["pause", "resume", "checkpoint"].map((command) => ({ model: 1, id: "a", command })));
    await session.cancel();
    expect(session.progress.state).toBe("failed");
  });
});

describe("adapters of a request", () => {
  it("count whole unless they say otherwise", () => {
    expect(adapterWords(undefined)).toEqual({});
    expect(adapterWords([{ id: "a" }, { id: "b", weight: 0.5 }])).toEqual({
      adapters: [
        { id: "a", weight: 1 },
        { id: "b", weight: 0.5 },
      ],
    });
    expect(() => adapterWords([{ id: "a", weight: NaN }])).toThrow("must be a number");
  });

  it("that do not fit say what, also from the wasm and across a worker", () => {
    const thrown = Object.assign(new Error("no"), { code: "bad_adapter", fields: '{"misfits":["x","y"]}' });
    const error = unpack(pack(rullamaError(thrown)));
    expect(error).toBeInstanceOf(BadAdapterError);
    expect(error).toMatchObject({ misfits: ["x", "y"], message: "no" });
  });
});
