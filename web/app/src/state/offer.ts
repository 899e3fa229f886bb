// Model files that were dropped or picked: one, or the parts of one, is offered for loading, a projector goes with it.

import { splitPart } from "rullama/catalogue";
import { codeOf } from "../lib/failures.js";
import { picked } from "./catalogue.svelte.js";
import { engine } from "./engine.svelte.js";
import { model } from "./model.svelte.js";

function isProjector(file: File): Promise<boolean> {
  return engine()
    .inspect(file)
    .then(
      () => false,
      (error: unknown) => codeOf(error) === "projector",
    );
}

/** Offers what was given; a projector alone goes with the model that is offered already, or loaded. */
export async function offer(files: readonly File[]): Promise<void> {
  const projectors: File[] = [];
  for (const file of files) if (await isProjector(file)) projectors.push(file);
  const [projector] = projectors;
  const models = files.filter((file) => !projectors.includes(file));
  const [first] = models;
  const parts = models.filter(({ name }) => splitPart(name));
  const source = parts.length > 1 ? parts : first;
  const chosen =
    source && first ? { source, name: first.name } : (picked.choice ?? (model.api ? model.choice : undefined));
  if (chosen)
    picked.choice = projector ? { ...chosen, projector: { source: projector, name: projector.name } } : chosen;
  // Without a model it is offered as one, and its card says what is missing.
  else if (projector) picked.choice = { source: projector, name: projector.name };
}
