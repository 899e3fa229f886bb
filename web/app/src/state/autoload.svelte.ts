// Loads the model that was used last when the app starts, so that a reload goes on where it was.

import { someLoaded } from "../lib/loaded-lock.js";
import { engine } from "./engine.svelte.js";
import { lastChoice, model } from "./model.svelte.js";
import { settings } from "./settings.svelte.js";

/** Set while such a load is under way: one that took the tab down is not tried again by itself. */
const UNDERWAY = "rullama-autoload";

/** Loads the last model, if that takes no download, and no other tab has a model on the same GPU. */
export async function loadLast(): Promise<void> {
  const last = lastChoice();
  if (!last || !settings.autoload || model.loading || model.api) return;
  try {
    if (localStorage.getItem(UNDERWAY) !== null) return localStorage.removeItem(UNDERWAY);
    const { models } = await engine().storage();
    const kept = models.find((one) => one.complete && (one.source === last.source || one.names.includes(last.name)));
    if (!kept || (await someLoaded()) || model.loading || model.api) return;
    localStorage.setItem(UNDERWAY, last.name);
  } catch {
    // A browser that keeps nothing has nothing to load.
    return;
  }
  await model.load(last);
  localStorage.removeItem(UNDERWAY);
}
