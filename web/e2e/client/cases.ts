// What the demo model is asked, and what counts as right.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Message, Tool } from "../../client/src/types.ts";
import { GOLDENS } from "./goldens.ts";

export type Check =
  | { kind: "number"; value: number }
  | { kind: "letters"; value: string }
  | { kind: "contains"; value: string[] }
  | { kind: "call"; value: { name: string; arguments: Record<string, unknown> } };

export interface Case {
  skill: string;
  messages: Message[];
  thinking: boolean;
  tools?: Tool[];
  check: Check;
}

export interface MediaCase {
  file: string;
  question: string;
  check: Check;
}

export interface Answer {
  text: string;
  thinking: string;
  calls: unknown[];
}

function lines<T>(name: string): T[] {
  const text = readFileSync(join(GOLDENS, "demo", name), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as T);
}

export const CASES = lines<Case>("cases.jsonl");
export const MEDIA = lines<MediaCase>("media.jsonl");

/** Whether an answer says what it should. */
export function right(check: Check, { text, calls }: Answer): boolean {
  if (check.kind === "number") return new RegExp(`(^|\\D)${check.value}\\D*$`, "u").test(text);
  if (check.kind === "letters")
    return text
      .toLowerCase()
      .replaceAll(/[^a-z]/gu, "")
      .includes(check.value);
  if (check.kind === "contains") return check.value.every((word) => text.toLowerCase().includes(word.toLowerCase()));
  return isDeepStrictEqual(calls, [check.value]);
}
