// Kernels against their CPU references, on this GPU.

import { openGpu } from "./device.js";
import { CancelledError } from "./errors.js";
import type { OpResult } from "./types.js";
import { Device, OpSuite } from "./wasm/rullama.js";

interface Suite {
  levels: string[];
  cases: { op: string; name: string }[];
}

/** At most `most` of each operation's cases, spread over all of them: a software adapter takes minutes for the whole. */
function sample(cases: Suite["cases"], most: number): Set<number> {
  const all = new Map<string, number[]>();
  for (const [index, { op }] of cases.entries()) all.set(op, [...(all.get(op) ?? []), index]);
  const spread = (places: number[]) => places.filter((_, i) => i % Math.max(1, Math.ceil(places.length / most)) === 0);
  return new Set([...all.values()].flatMap(spread));
}

/** Runs cases of every operation at every feature level this device can emulate. */
export async function selfTest(
  most: number,
  onResult: (result: OpResult) => void,
  signal?: AbortSignal,
): Promise<OpResult[]> {
  const device = await openGpu(Device, {});
  const suite = new OpSuite(device.engine);
  try {
    const { levels, cases } = JSON.parse(suite.describe()) as Suite;
    const wanted = sample(cases, most);
    const results: OpResult[] = [];
    const total = levels.length * wanted.size;
    for (const [l, featureLevel] of levels.entries()) {
      for (const [c, { op, name }] of cases.entries()) {
        if (!wanted.has(c)) continue;
        if (signal?.aborted) throw new CancelledError();
        const outcome = JSON.parse(await suite.run(c, l)) as Pick<OpResult, "verdict" | "message">;
        const result = { op, name, featureLevel, ...outcome, total };
        results.push(result);
        onResult(result);
      }
    }
    return results;
  } finally {
    suite.free();
    device.engine.destroy();
    device.engine.free();
  }
}
