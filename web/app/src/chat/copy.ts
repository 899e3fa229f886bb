import { notices } from "../state/notices.svelte.js";
import { t } from "../text/index.svelte.js";

/** Puts a text on the clipboard and shows that on the button that was pressed. */
export async function copy(text: string, button?: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    notices.show(t("copy.denied"));
    return;
  }
  notices.speak(t("common.copied"));
  if (!button) return;
  const before = button.textContent;
  button.textContent = t("common.copied");
  setTimeout(() => (button.textContent = before), 1500);
}
