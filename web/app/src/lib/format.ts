// Numbers for people.

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** `3.6 GB`: three digits at most, powers of 1000 as file managers and Ollama show them. */
export function bytes(count: number): string {
  if (!Number.isFinite(count) || count < 0) return "?";
  let value = count;
  let unit = 0;
  while (unit < UNITS.length - 1 && value >= (unit === 0 ? 1000 : 999.5)) {
    value /= 1000;
    unit++;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** `5.1 B`, `270 M`: how many parameters a model has. */
export function count(value: number): string {
  for (const [size, name] of [
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (value >= size) return `${(value / size).toFixed(value >= 100 * size ? 0 : 1)} ${name}`;
  }
  return String(value);
}

/** `1 min 20 s` left or taken. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return "?";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}

export function rate(tokensPerSecond: number): string {
  return `${tokensPerSecond >= 100 ? tokensPerSecond.toFixed(0) : tokensPerSecond.toFixed(1)} tokens/s`;
}

export function tokens(value: number): string {
  return value.toLocaleString("en");
}

/** `today`, `yesterday`, or the day. */
export function day(time: number, now = Date.now()): string {
  const start = (at: number) => new Date(at).setHours(0, 0, 0, 0);
  const days = Math.round((start(now) - start(time)) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "This week";
  return new Date(time).toLocaleDateString("en", { month: "long", year: "numeric" });
}
