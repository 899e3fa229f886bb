// A conversation is a tree of turns: editing a message or asking again adds a branch and loses nothing.

import type { ErrorCode, Finish, Message, ImageTokens, ToolCall, Usage } from "rullama";
import { t } from "../text/index.svelte.js";
import type { FieldName } from "./options.js";
import { isMedia, partsOf, type Attached, type Attachment } from "./attachments.js";
import { documentBlock } from "./excerpts.js";

export type Role = "user" | "assistant" | "tool";

/** A call of a tool that was run, with what came of it. */
export interface ToolRun extends ToolCall {
  result: string;
  isError?: boolean;
}

/** What a model wrote before it called tools, and the calls. */
export interface Step {
  content: string;
  thinking?: string;
  calls: ToolRun[];
}

/** A passage that a model was shown. */
export interface Source {
  /** The document's name. */
  name: string;
  text: string;
  page?: number;
  /** The attachment or the document of a collection, and the place of the passage in its text. */
  document?: string;
  start?: number;
  end?: number;
}

/** How passages were found: by meaning; by words because no embedding model is loaded, or because there are too many passages to embed. */
export type SearchedBy = "meaning" | "keywords" | "too_many";

export interface Turn {
  id: string;
  conversation: string;
  /** The turn it answers; null for the first one. */
  parent: string | null;
  role: Role;
  content: string;
  attachments?: Attachment[];
  thinking?: string;
  toolCalls?: ToolCall[];
  /** Calls of tools that were run before this answer was written, with what was written in between. */
  steps?: Step[];
  /** Passages of documents that the model was shown, in the order of their numbers. */
  sources?: Source[];
  /** How these were found. */
  searched?: SearchedBy;
  /** Calls of tools that could not be read, as they were written. */
  badCalls?: string[];
  toolName?: string;
  /** Milliseconds since 1970. */
  created: number;
  /** Which model answered. */
  model?: string;
  /** Absent while the answer is being written, or where the tab was closed meanwhile. */
  finish?: Finish | "failed";
  failure?: ErrorCode;
  /** The engine's own words on that. */
  failureDetail?: string;
  usage?: Usage;
  /** How many of the oldest turns the model was not shown, so that the rest fitted. */
  leftOut?: number;
  /** Whether the model was shown none of the attachments. */
  mediaLeftOut?: boolean;
  /** Milliseconds from the request to the first token, with images and audio encoded. */
  firstToken?: number;
  /** What it was written with: what was set, over the model's own defaults. */
  settings?: Partial<Record<FieldName, number>> & { think: boolean };
  /** Whether a person wrote or changed this answer. */
  edited?: boolean;
  /** Tokens that did not fit into the context, about. */
  needed?: number;
}

export interface Conversation {
  id: string;
  title: string;
  created: number;
  updated: number;
  /** The last turn of the branch that is shown. */
  leaf: string | null;
  /** Its own system prompt; the default one where absent. */
  system?: string;
  /** Tools that it offers to the model; those of the settings where absent. */
  tools?: string[];
  /** Tools that may run here without asking. */
  allowedTools?: string[];
  /** Collections whose documents the model may be shown. */
  collections?: string[];
  /** Whether it stays at the top of the list. */
  pinned?: boolean;
  /** The name of the folder it is in. */
  folder?: string;
  /** When it was deleted, while that can still be undone. */
  deleted?: number;
}

export type Turns = Readonly<Record<string, Turn>>;

/** The turns from the first one to `leaf`. */
export function branch(turns: Turns, leaf: string | null): Turn[] {
  const path: Turn[] = [];
  const seen = new Set<string>();
  for (let id = leaf; id !== null && !seen.has(id);) {
    const turn = turns[id];
    if (!turn) break;
    seen.add(id);
    path.push(turn);
    id = turn.parent;
  }
  return path.reverse();
}

function byAge(a: Turn, b: Turn): number {
  return a.created - b.created || (a.id < b.id ? -1 : 1);
}

/** A turn and its alternatives, oldest first. */
export function alternatives(turns: Turns, turn: Turn): Turn[] {
  return Object.values(turns)
    .filter((other) => other.parent === turn.parent && other.role === turn.role)
    .sort(byAge);
}

/** The end of the newest branch that goes through `id`. */
export function newestLeaf(turns: Turns, id: string): string {
  const children = new Map<string, Turn[]>();
  for (const turn of Object.values(turns)) {
    if (turn.parent !== null) children.set(turn.parent, [...(children.get(turn.parent) ?? []), turn]);
  }
  const seen = new Set([id]);
  let leaf = id;
  for (;;) {
    const next = children.get(leaf)?.sort(byAge).at(-1);
    if (!next || seen.has(next.id)) return leaf;
    seen.add(next.id);
    leaf = next.id;
  }
}

/** A conversation's name, from what was asked first. */
export function titleOf(text: string): string {
  const line = text.trim().split(/\s*\n/u)[0]?.replace(/\s+/gu, " ") ?? "";
  const letters = [...line];
  if (letters.length <= 60) return line || t("chat.title");
  const cut = letters.slice(0, 57).join("");
  const word = cut.lastIndexOf(" ");
  return `${word > 30 ? cut.slice(0, word) : cut}…`;
}

interface Shown {
  /** An empty one clears the model's own; without any, the model's own counts. */
  system?: string;
  /** Most tokens of an image. */
  images?: ImageTokens;
  /** The bytes of attachments, by their ids. */
  blobs?: ReadonlyMap<string, Blob>;
  /** Texts of documents that are shown in full, by the ids of attachments. */
  documents?: ReadonlyMap<string, string>;
  /** Passages of other documents, which the last message is about. */
  excerpts?: string;
}

/** What the model is shown. Thoughts of earlier turns are not: models were not trained to see them. */
export function toMessages(path: readonly Turn[], shown: Shown = {}): Message[] {
  const { system, images, blobs, documents, excerpts } = shown;
  const asked = path.findLast((turn) => turn.role === "user");
  const messages: Message[] = [];
  if (system !== undefined) messages.push({ role: "system", content: system.trim() === "" ? "" : system });
  for (const turn of path) {
    for (const step of turn.steps ?? []) messages.push(...stepMessages(step));
    if (turn.role === "assistant" && turn.content === "" && !turn.toolCalls?.length) continue;
    const attached = (turn.attachments ?? []).filter(isMedia).flatMap((one): Attached[] => {
      const blob = blobs?.get(one.id);
      return blob ? [{ ...one, blob }] : [];
    });
    const whole = (turn.attachments ?? []).flatMap(({ id, name }) => {
      const text = documents?.get(id);
      return text === undefined ? [] : [documentBlock(name, text)];
    });
    const parts = [...whole, turn === asked ? (excerpts ?? "") : "", turn.content];
    const text = parts.filter((part) => part !== "").join("\n\n");
    messages.push({
      role: turn.role,
      content: attached.length > 0 ? partsOf(attached, text, images) : text,
      ...(turn.toolCalls?.length ? { toolCalls: turn.toolCalls } : {}),
      ...(turn.toolName === undefined ? {} : { toolName: turn.toolName }),
    });
  }
  return messages;
}

/** A round of calls as the model saw it. */
export function stepMessages({ content, calls }: Step): Message[] {
  const toolCalls = calls.map(({ name, arguments: given }) => ({ name, arguments: given }));
  return [
    { role: "assistant", content, toolCalls },
    ...calls.map(({ name, result }): Message => ({ role: "tool", toolName: name, content: result })),
  ];
}

/** How many of the oldest turns to leave out so that the rest has at most `room` tokens: whole exchanges, never the last question. */
export function tooOld(path: readonly Turn[], sizes: readonly number[], room: number): number {
  let left = sizes.reduce((sum, size) => sum + size, 0);
  let start = 0;
  while (left > room) {
    const next = path.findIndex((turn, index) => index > start && turn.role === "user");
    if (next < 0) break;
    for (let index = start; index < next; index++) left -= sizes[index] ?? 0;
    start = next;
  }
  return start;
}
