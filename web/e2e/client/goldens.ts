// Golden models and what they say, as other implementations computed it.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const GOLDENS = fileURLToPath(new URL("../../../goldens/", import.meta.url));

/** Below this a rounding may choose the other token. */
const MARGIN = 2e-3;

export interface Golden {
  model: string;
  prompt: number[];
  /** The tokens that follow, as long as there is no doubt. */
  greedy: number[];
}

interface Entry {
  dtype: "F32" | "I32";
  data_offsets: [number, number];
}

/** The numbers of a golden file, by name. */
export async function numbersOf(path: string): Promise<(name: string) => number[]> {
  const bytes = await readFile(join(GOLDENS, path));
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString("utf8", 8, start)) as Record<string, Entry>;
  return (name) => {
    const entry = header[name];
    if (!entry) throw new Error(`${path} has no ${name}`);
    const [from, to] = entry.data_offsets;
    const count = (to - from) / 4;
    const at = (i: number) => start + from + 4 * i;
    return Array.from({ length: count }, (_, i) =>
      entry.dtype === "F32" ? bytes.readFloatLE(at(i)) : bytes.readInt32LE(at(i)),
    );
  };
}

export async function golden(model: string, prompt = "short", most = 16): Promise<Golden> {
  const numbers = await numbersOf(`text/${model}.safetensors`);
  const doubt = numbers(`${prompt}.greedy_margin`).findIndex((margin) => margin < MARGIN);
  const sure = doubt < 0 ? most : Math.min(doubt, most);
  if (sure < 4) throw new Error(`${model} is never sure`);
  return { model, prompt: numbers(`${prompt}.ids`), greedy: numbers(`${prompt}.greedy`).slice(0, sure) };
}
