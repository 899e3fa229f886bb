// How long thoughts may be. Models have no levels of effort of their own, so that the lower ones are limits, as in `rullama serve`.

import { RullamaError } from "./errors.js";

/** Whether to think, and the most tokens of thoughts. */
export interface Think {
  think?: boolean;
  thinkBudget?: number;
}

const LIMITS: Readonly<Record<string, number>> = { minimal: 512, low: 2048, medium: 8192 };
const UNLIMITED: readonly string[] = ["high", "xhigh", "max", "ultra"];

/** Thinking at a level of OpenAI's, Ollama's or Anthropic's; absent where none is given. */
export function thinkAt(level: unknown, name: string): Think {
  if (level === undefined || level === null) return {};
  if (level === false || level === "none") return { think: false };
  if (level === true || UNLIMITED.includes(level as string)) return { think: true };
  const thinkBudget = typeof level === "string" && Object.hasOwn(LIMITS, level) ? LIMITS[level] : undefined;
  if (thinkBudget !== undefined) return { think: true, thinkBudget };
  throw new RullamaError("bad_options", `${name} ${JSON.stringify(level)} is not known: it is low, medium or high`);
}

/** The longest of the levels that keeps thoughts within a budget, for servers, which take levels alone. */
export function levelWithin(budget: number, levels: readonly string[]): string {
  const fitting = levels.filter((level) => LIMITS[level]! <= budget);
  const longest = fitting.sort((a, b) => LIMITS[b]! - LIMITS[a]!)[0];
  if (longest !== undefined) return longest;
  const least = Math.min(...levels.map((level) => LIMITS[level]!));
  throw new RullamaError("bad_options", `servers of this dialect limit thoughts to ${least} tokens or more`);
}

/** A budget in the engine's words; without thoughts it has no meaning. */
export function budgetWords({ think, thinkBudget }: Think): { think_budget?: number } {
  if (thinkBudget === undefined || thinkBudget === null) return {};
  if (!Number.isInteger(thinkBudget) || thinkBudget < 1 || thinkBudget > 0xffff_ffff) {
    throw new RullamaError("bad_options", `thinkBudget cannot be ${thinkBudget}: it is a positive whole number`);
  }
  return think ? { think_budget: thinkBudget } : {};
}
