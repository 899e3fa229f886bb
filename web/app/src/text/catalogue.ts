// Messages of the app: plain text with named placeholders, or one text per plural form of the language.

/** A message that depends on a number; `other` is the form every language has. */
export type Plural = { [Form in Intl.LDMLPluralRule]?: string } & { other: string };
export type Message = string | Plural;

/** A catalogue with the keys of another one, in another language. */
export type Translation<Source> = {
  [Key in keyof Source]: Source[Key] extends string ? string : Plural;
};

/** Names between braces in a message. */
type Names<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;

/** What a message needs filled in. The count of a plural is always a number. */
export type Values<Source> = Source extends string
  ? Record<Names<Source>, string | number>
  : { count: number } & Record<Exclude<Names<Source[keyof Source]>, "count">, string | number>;

export type Filled = Record<string, string | number>;

const PLACEHOLDER = /\{(\w+)\}/gu;
const ADDRESS = /https?:\/\/(?:[\w.…/-]*[\w…/])?/gu;

/** Placeholders of a message, each once, in alphabetical order. */
export function placeholders(message: string): string[] {
  return [...new Set([...message.matchAll(PLACEHOLDER)].map(([, name = ""]) => name))].sort();
}

/** A message with its values. Numbers are written as the language writes them; in right-to-left text, names and addresses keep their own direction. */
export function fill(message: Message, values: Filled, locale: string, rtl: boolean): string {
  const count = values["count"];
  const text =
    typeof message === "string"
      ? message
      : (message[new Intl.PluralRules(locale).select(Number(count ?? 0))] ?? message.other);
  // Left-to-right isolate, pop directional isolate: slashes would move to the other end.
  const placed = rtl ? text.replace(ADDRESS, "\u2066$&\u2069") : text;
  return placed.replace(PLACEHOLDER, (whole, name: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (typeof value === "number") return new Intl.NumberFormat(locale).format(value);
    // First strong isolate, pop directional isolate.
    return rtl ? `\u2068${value}\u2069` : value;
  });
}
