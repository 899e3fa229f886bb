// The tools that the app brings. Models read names, descriptions and results, so they are English.

import { calculate, shown } from "./calculator.js";

/** A tool that the app can run. */
export interface AppTool {
  /** What it is switched on by: its name, or its server. */
  key: string;
  /** What consent is given for. */
  consent: string;
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  /** Milliseconds it may take. */
  limit: number;
  run: (input: Record<string, unknown>, signal: AbortSignal) => Promise<unknown> | unknown;
}

/** Tools that need nothing but the page. */
export type BuiltinKey = "calculator" | "time" | "javascript" | "documents";
export const BUILTIN: readonly BuiltinKey[] = ["calculator", "time", "javascript", "documents"];

const parameters = (properties: Record<string, { type: string; description: string }>, required: string[]) => ({
  type: "object",
  properties,
  required,
});

/** A text among a call's arguments; models are told where it is missing. */
export function textArgument(input: Record<string, unknown>, name: string): string {
  const value = input[name];
  if (typeof value === "string" && value.trim() !== "") return value;
  if (typeof value === "number") return String(value);
  throw new Error(`the argument ${name} must be a text that is not empty`);
}

const calculator: AppTool = {
  key: "calculator",
  consent: "calculator",
  name: "calculator",
  description:
    "Computes an arithmetic expression exactly. Operators + - * / % ^ !, parentheses, constants pi and e, functions such as sqrt, log, ln, sin, round, min, max.",
  parameters: parameters({ expression: { type: "string", description: "For example: (12.5 + 7) * 3^2" } }, [
    "expression",
  ]),
  limit: 2000,
  run: (input) => shown(calculate(textArgument(input, "expression"))),
};

/** The time here, or at another place. */
export function timeAt(zone: string, now = new Date()): Record<string, string> {
  const options = { timeZone: zone, dateStyle: "full", timeStyle: "long", hourCycle: "h23" } as const;
  let local: string;
  try {
    local = new Intl.DateTimeFormat("en-GB", options).format(now);
  } catch {
    throw new Error(`there is no time zone ${zone}: use names such as Europe/Berlin`);
  }
  return { local, timezone: zone, utc: now.toISOString() };
}

const time: AppTool = {
  key: "time",
  consent: "time",
  name: "current_time",
  description: "Tells the current date, weekday and time, here or in another time zone.",
  parameters: parameters(
    { timezone: { type: "string", description: "IANA name such as Europe/Berlin; the user's own where absent" } },
    [],
  ),
  limit: 2000,
  run: ({ timezone }) => {
    const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
    return timeAt(typeof timezone === "string" && timezone.trim() ? timezone.trim() : own);
  },
};

const javascript: AppTool = {
  key: "javascript",
  consent: "javascript",
  name: "run_javascript",
  description:
    "Runs JavaScript in a sandbox without network, files, DOM or modules, for at most 10 seconds. Gives the value of the last expression, or what is returned, and what console.log printed.",
  parameters: parameters({ code: { type: "string", description: "The program; await may be used" } }, ["code"]),
  limit: 10_000,
  run: async (input, signal) => {
    const { runJavaScript } = await import("./sandbox.js");
    const { value, lines, error } = await runJavaScript(textArgument(input, "code"), signal);
    if (error !== undefined) throw new Error(lines.length > 0 ? `${error}\nprinted: ${lines.join("\n")}` : error);
    return { ...(value === undefined ? {} : { value }), ...(lines.length > 0 ? { printed: lines.join("\n") } : {}) };
  },
};

/** The tool that searches documents, with what it searches. */
export function documentsTool(search: (query: string, signal: AbortSignal) => Promise<string>): AppTool {
  return {
    key: "documents",
    consent: "documents",
    name: "search_documents",
    description:
      "Searches the documents that the user attached or chose. Gives the most relevant passages with numbers; cite them like [1].",
    parameters: parameters({ query: { type: "string", description: "What to look for, in a few words" } }, ["query"]),
    limit: 120_000,
    run: (input, signal) => search(textArgument(input, "query"), signal),
  };
}

/** The tools of these keys that need nothing but the page. */
export const plainTools = (keys: readonly string[]): AppTool[] =>
  [calculator, time, javascript].filter(({ key }) => keys.includes(key));
