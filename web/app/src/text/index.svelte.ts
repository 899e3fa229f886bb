// The language of the app: chosen in the settings or taken from the browser. English is built in, others are loaded when needed.

import { fill, type Filled, type Message, type Values } from "./catalogue.js";
import { en } from "./en/index.js";

export const LANGUAGES = { en: "English", de: "Deutsch", ja: "日本語", ar: "العربية" } as const;
export type Language = keyof typeof LANGUAGES;
export type Key = keyof typeof en;

type Catalogue = Record<Key, Message>;
const LOADERS: Record<Language, () => Promise<Catalogue>> = {
  en: async () => en,
  de: async () => (await import("./de/index.js")).de,
  ja: async () => (await import("./ja/index.js")).ja,
  ar: async () => (await import("./ar/index.js")).ar,
};
const RIGHT_TO_LEFT: ReadonlySet<Language> = new Set(["ar"]);

let shown = $state.raw<{ language: Language; texts: Catalogue }>({ language: "en", texts: en });
let wanted: Language = "en";

export function isLanguage(value: unknown): value is Language {
  return typeof value === "string" && Object.hasOwn(LANGUAGES, value);
}

/** The first language of a list that the app speaks: `de-CH` is German. */
export function choose(preferred: readonly string[]): Language {
  for (const tag of preferred) {
    const [base] = tag.toLowerCase().split("-");
    if (isLanguage(base)) return base;
  }
  return "en";
}

/** Switches to a language, or to the browser's own; keeps the current one if the texts cannot be fetched. */
export async function speak(language: Language | "system"): Promise<void> {
  const next = language === "system" ? choose(globalThis.navigator?.languages ?? []) : language;
  wanted = next;
  const texts = await LOADERS[next]().catch(() => undefined);
  // Another choice was made while this one was loading.
  if (!texts || wanted !== next) return;
  shown = { language: next, texts };
  document.documentElement.lang = next;
  document.documentElement.dir = RIGHT_TO_LEFT.has(next) ? "rtl" : "ltr";
}

/** The language that is shown, as a tag for `Intl`. */
export const locale = (): Language => shown.language;

/** A message in the language of the app. */
export function t<K extends Key>(
  key: K,
  ...[values]: keyof Values<(typeof en)[K]> extends never ? [] : [values: Values<(typeof en)[K]>]
): string {
  return fill(shown.texts[key], (values ?? {}) as Filled, shown.language, RIGHT_TO_LEFT.has(shown.language));
}

/** `a, b and c`, as the language joins lists. */
export function listed(parts: readonly string[], type: "conjunction" | "disjunction" | "unit" = "conjunction"): string {
  // Japanese lists of units have nothing but spaces in between.
  if (type === "unit" && locale() === "ja") return listed(parts);
  return new Intl.ListFormat(locale(), { type, style: type === "unit" ? "short" : "long" }).format(parts);
}
