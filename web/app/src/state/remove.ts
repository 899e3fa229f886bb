// Deletes chats: at once from sight, for good when nobody wants them back.

import { t } from "../text/index.svelte.js";
import { answer } from "./answer.svelte.js";
import { chats, UNDO_MS } from "./chats.svelte.js";
import { compare } from "./compare.svelte.js";
import { draft } from "./draft.svelte.js";
import { notices } from "./notices.svelte.js";
import { go, route } from "./route.svelte.js";

/** Deletes chats together; one notice brings all of them back. */
export async function removeChats(ids: readonly string[]): Promise<void> {
  const [first] = ids;
  if (first === undefined) return;
  const title = chats().list.find((one) => one.id === first)?.title ?? "";
  const { page, id: shown } = route.current;
  for (const id of ids) {
    answer.stop(id);
    await compare.end(id);
    await chats().remove(id);
  }
  if (page === "chat" && shown !== undefined && ids.includes(shown)) go("chat");
  const text = ids.length === 1 ? t("chats.deleted", { title }) : t("manage.deleted", { count: ids.length });
  notices.show(text, {
    action: { label: t("common.undo"), run: () => void restore(ids, page === "chat") },
    stays: UNDO_MS,
    gone: () => {
      for (const id of ids) {
        draft.forget(id);
        void chats().forget(id);
      }
    },
  });
}

async function restore(ids: readonly string[], open: boolean): Promise<void> {
  for (const id of ids) await chats().restore(id);
  if (open && ids.length === 1) go("chat", ids[0]);
}
