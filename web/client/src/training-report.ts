// What a training would take, and whether that fits.

import { deviceReport } from "./device.js";
import { fit } from "./fit.js";
import type { LoadedDecoder } from "./loaded-decoder.js";
import type { TrainingOptions, TrainingReport } from "./training-types.js";

export async function inspectTraining(
  model: LoadedDecoder,
  data: string,
  options: TrainingOptions,
): Promise<TrainingReport> {
  const found = await model.trainings.inspect(data, options);
  if (!found.memory) return { ...found, warnings: [] };
  const { deviceMemory } = navigator as { deviceMemory?: number };
  const limit = options.memory === undefined ? {} : { gpuMemory: options.memory };
  return { ...found, ...fit(found.memory, await deviceReport(), limit, deviceMemory) };
}
