// Loading with one click, where that is safe: what may be too much for a small device is shown with its needs first.

import { isIos } from "../lib/platform.js";
import { picked } from "./catalogue.svelte.js";
import { model, type Choice } from "./model.svelte.js";
import { go } from "./route.svelte.js";

/** Whether the system ends a page that takes too much memory, instead of refusing it: phones do. */
function isSmall(): boolean {
  const { deviceMemory = 8 } = navigator as { deviceMemory?: number };
  return deviceMemory <= 4 || isIos(navigator.userAgent, navigator.maxTouchPoints);
}

/** Loads a model, or opens its card where it may not fit. True when it is ready. */
export async function loadIfFits(choice: Choice): Promise<boolean> {
  // A model that cannot be inspected says why when it is loaded.
  const report = await model.inspect(choice).catch(() => undefined);
  const slow = isSmall() || report?.runsOn === "cpu";
  const doubtful = report?.verdict === "too-large" || (report?.verdict === "tight" && slow);
  if (!doubtful) return model.load(choice);
  picked.choice = choice;
  go("models");
  return false;
}
