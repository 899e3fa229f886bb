/**
 * Whether a key belongs to an input method that is composing text, as for Chinese, Japanese and Korean: Enter takes its proposal then.
 * Safari ends the composition before it tells of the key, and then only the old code 229 is left of it.
 */
export function composing({ isComposing, keyCode }: Pick<KeyboardEvent, "isComposing" | "keyCode">): boolean {
  return isComposing || keyCode === 229;
}
