/**
 * Whether a key belongs to an input method that is composing text, as for Chinese, Japanese and Korean: Enter takes its proposal then.
 * Safari ends the composition before it tells of the key, and then only the old code 229 is left of it.
 */
export function composing({ isComposing, keyCode }: Pick<KeyboardEvent, "isComposing" | "keyCode">): boolean {
  return isComposing || keyCode === 229;
}

/** Keyboards on glass have one Enter key, which people need for new lines. */
export const onGlass = (): boolean => matchMedia("(pointer: coarse)").matches;

/** Whether a key sends what is in a field, rather than begin a new line. */
export function sends(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" || composing(event)) return false;
  return event.ctrlKey || event.metaKey || !(event.shiftKey || onGlass());
}
