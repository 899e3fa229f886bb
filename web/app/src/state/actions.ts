// Carries out what a failure's button promises.

import type { Action } from "../lib/failures.js";
import type { Turn } from "../lib/conversation.js";
import { contextFor } from "../lib/options.js";
import { answer } from "./answer.svelte.js";
import { model } from "./model.svelte.js";
import { chats } from "./chats.svelte.js";
import { go } from "./route.svelte.js";
import { change } from "./settings.svelte.js";

/** `turn`: the answer that failed, where it was one; `retry`: what to do again otherwise. */
export async function perform(action: Action, turn?: Turn, retry?: () => unknown): Promise<void> {
  switch (action) {
    case "choose_model":
      return go("models");
    case "open_device":
      return go("device");
    case "open_settings":
      return go("settings");
    case "open_storage":
      return go("storage");
    case "open_training":
      return go("training");
    case "reload_page":
      return location.reload();
    case "reload_model":
      if (model.api !== undefined || (await model.reload())) {
        // What was written before the model was lost is not written again.
        if (turn) await answer.resume(turn);
      } else if (!model.failure && !model.choice) go("models");
      return;
    case "answer_without_oldest":
      if (turn) await answer.withoutOldest(turn);
      return;
    case "answer_without_media":
      if (turn) await answer.withoutMedia(turn);
      return;
    case "enlarge_context":
      if (turn?.needed === undefined) return go("settings");
      change({ context: contextFor(turn.needed) });
      if (await model.reload()) await answer.again(turn);
      return;
    case "edit_message":
      if (turn?.parent) chats().editing = turn.parent;
      return;
    case "try_again":
      if (turn) await answer.again(turn);
      else await (retry ?? (() => model.reload()))();
  }
}
