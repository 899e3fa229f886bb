import { notices } from "../state/notices.svelte.js";

/** Puts a text on the clipboard and says so on the button that asked for it. */
export async function copy(text: string, button?: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    notices.show("The browser did not allow copying.");
    return;
  }
  notices.speak("Copied.");
  if (!button) return;
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = before), 1500);
}
