// Numbers for people, as their language writes them.

import { locale, t } from "../text/index.svelte.js";

const SIZES = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

type Unit = (typeof SIZES)[number] | "millisecond" | "second" | "minute" | "hour";

function unit(value: number, name: Unit, digits = 0, unitDisplay: "short" | "narrow" | "long" = "narrow"): string {
  const fixed = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return new Intl.NumberFormat(locale(), { style: "unit", unit: name, unitDisplay, ...fixed }).format(value);
}

/** `3.6 GB`: three digits at most, powers of 1000 as file managers and Ollama show them. */
export function bytes(count: number): string {
  if (!Number.isFinite(count) || count < 0) return "?";
  let value = count;
  let size = 0;
  while (size < SIZES.length - 1 && value >= (size === 0 ? 1000 : 999.5)) {
    value /= 1000;
    size++;
  }
  // The short form of bytes has no plural: 0 byte.
  if (size === 0) return unit(value, "byte", 0, "long");
  return unit(value, SIZES[size] ?? "byte", value >= 99.95 ? 0 : 1, "short");
}

/** `5.1B`, `270M`: how many parameters a model has. */
export function count(value: number): string {
  const digits = value >= 1000 ? { minimumSignificantDigits: 2, maximumSignificantDigits: 3 } : {};
  return new Intl.NumberFormat(locale(), { notation: "compact", ...digits }).format(value);
}

/** `1m 20s` left or taken. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return "?";
  if (seconds < 1) return unit(Math.round(seconds * 1000), "millisecond");
  // Seconds that are counted as they pass have no tenths.
  if (seconds < 10) return unit(seconds, "second", Number.isInteger(seconds) ? 0 : 1);
  const whole = Math.round(seconds);
  if (whole < 60) return unit(whole, "second");
  if (whole < 3600) return `${unit(Math.floor(whole / 60), "minute")} ${unit(whole % 60, "second")}`;
  return `${unit(Math.floor(whole / 3600), "hour")} ${unit(Math.round((whole % 3600) / 60), "minute")}`;
}

/** A number with a fixed number of decimal places. */
export function decimal(value: number, digits: number): string {
  return new Intl.NumberFormat(locale(), { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(
    value,
  );
}

/** `82%`. */
export function percent(share: number): string {
  return new Intl.NumberFormat(locale(), { style: "percent" }).format(share);
}

export function rate(tokensPerSecond: number): string {
  return t("turn.rate", { rate: decimal(tokensPerSecond, tokensPerSecond >= 100 ? 0 : 1) });
}

/** A number with as many decimal places as it has, up to four. */
export function number(value: number): string {
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: 4 }).format(value);
}

export function whole(value: number): string {
  return new Intl.NumberFormat(locale()).format(value);
}

export function date(time: number): string {
  return new Date(time).toLocaleDateString(locale(), { dateStyle: "medium" });
}

/** `Today`, `Yesterday`, or the month. */
export function day(time: number, now = Date.now()): string {
  const start = (at: number) => new Date(at).setHours(0, 0, 0, 0);
  const days = Math.round((start(now) - start(time)) / 86_400_000);
  if (days <= 0) return t("day.today");
  if (days === 1) return t("day.yesterday");
  if (days < 7) return t("day.week");
  return new Date(time).toLocaleDateString(locale(), { month: "long", year: "numeric" });
}
