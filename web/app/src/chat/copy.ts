import { notices } from "../state/notices.svelte.js";
import { t } from "../text/index.svelte.js";

/** Puts a text on the clipboard and says so, on the button that was pressed where it is given. */
export async function copy(text: string, button?: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    notices.show(t("copy.denied"));
    return false;
  }
  notices.speak(t("common.copied"));
  if (!button) return true;
  const before = button.textContent;
  button.textContent = t("common.copied");
  setTimeout(() => (button.textContent = before), 2000);
  return true;
}
