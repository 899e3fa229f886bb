// Chats of other programs: ChatGPT's `conversations.json`, Open WebUI's and llama.cpp's exports. Read with suspicion: what is no
// message is left out, ids are new, and everything that is kept is text.

import { t } from "../text/index.svelte.js";
import type { Conversation, Role, Turn } from "./conversation.js";
import type { Stored } from "./database.js";
import { ImportError } from "./split-json.js";

type Fields = Record<string, unknown>;

/** A message of another program, before it gets an id of ours. */
interface Said {
  id: string;
  parent: string | null;
  role: Role;
  content: string;
  thinking?: string;
  created: number;
  model?: string;
}

interface Talk {
  title: string;
  created: number;
  updated: number;
  /** The last message of the branch that was shown. */
  leaf?: string;
  said: Said[];
  system?: string;
}

const MOST_TITLE = 200;

const fields = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const id = (value: unknown): string | null =>
  typeof value === "string" || typeof value === "number" ? String(value) : null;

/** Seconds or milliseconds since 1970, or an ISO date. */
function time(value: unknown, otherwise: number): number {
  const given = typeof value === "string" ? Date.parse(value) : value;
  if (typeof given !== "number" || !Number.isFinite(given) || given <= 0) return otherwise;
  const ms = given < 1e11 ? given * 1000 : given;
  return ms < 8.64e15 ? ms : otherwise;
}

function roleOf(value: unknown): Role | undefined {
  return value === "user" || value === "assistant" || value === "tool" ? value : undefined;
}

/** ChatGPT: a tree of nodes, of which some are hidden or empty. */
function fromChatGpt(from: Fields, now: number): Talk {
  const created = time(from["create_time"], now);
  const said = Object.entries(fields(from["mapping"])).map(([key, value]): Said & { hidden: boolean } => {
    const { message, parent } = fields(value);
    const { author, content, create_time: at, metadata } = fields(message);
    const parts = fields(content)["parts"];
    const words = Array.isArray(parts) ? parts.filter((part) => typeof part === "string").join("\n") : "";
    const role = roleOf(fields(author)["role"]);
    const model = text(fields(metadata)["model_slug"]);
    const shown = role === "user" || role === "assistant";
    return {
      id: key,
      parent: id(parent),
      role: role ?? "user",
      content: words,
      created: time(at, created),
      ...(model ? { model } : {}),
      hidden: !shown || words.trim() === "",
    };
  });
  const leaf = id(from["current_node"]) ?? undefined;
  return {
    title: text(from["title"]),
    created,
    updated: time(from["update_time"], created),
    leaf,
    said: visible(said),
  };
}

/** Messages that are shown answer the nearest shown one before them. */
function visible(said: (Said & { hidden: boolean })[]): Said[] {
  const all = new Map(said.map((one) => [one.id, one]));
  const shownParent = (from: string | null): string | null => {
    const seen = new Set<string>();
    for (let at = from; at !== null && !seen.has(at); at = all.get(at)?.parent ?? null) {
      seen.add(at);
      if (all.get(at)?.hidden === false) return at;
    }
    return null;
  };
  return said
    .filter((one) => !one.hidden)
    .map(({ hidden: _hidden, ...one }) => ({ ...one, parent: shownParent(one.parent) }));
}

/** Open WebUI: a chat with a history of messages by id. */
function fromOpenWebUi(from: Fields, now: number): Talk {
  const chat = fields(from["chat"]);
  const history = fields(chat["history"]);
  const created = time(from["created_at"] ?? chat["timestamp"], now);
  const said = Object.entries(fields(history["messages"])).flatMap(([key, value]): Said[] => {
    const { parentId, role, content, timestamp, model } = fields(value);
    const known = roleOf(role);
    if (!known) return [];
    return [
      {
        id: key,
        parent: id(parentId),
        role: known,
        content: text(content),
        created: time(timestamp, created),
        ...(text(model) ? { model: text(model) } : {}),
      },
    ];
  });
  const leaf = id(history["currentId"]) ?? undefined;
  const title = text(from["title"]) || text(chat["title"]);
  const system = text(chat["system"]) || text(fields(chat["params"])["system"]);
  return { title, created, updated: time(from["updated_at"], created), leaf, said, ...(system ? { system } : {}) };
}

/** llama.cpp's web interface: a conversation and its messages side by side. */
function fromLlamaCpp(from: Fields, now: number): Talk {
  const conversation = fields(from["conv"]);
  const messages = Array.isArray(from["messages"]) ? from["messages"].map(fields) : [];
  const updated = time(conversation["lastModified"], now);
  let system = "";
  const said = messages.map((one): Said & { hidden: boolean } => {
    const role = roleOf(one["role"]);
    if (one["role"] === "system") system = text(one["content"]);
    const thinking = text(one["thinking"]) || text(one["reasoningContent"]);
    return {
      id: id(one["id"]) ?? "",
      parent: id(one["parent"]),
      role: role ?? "user",
      content: text(one["content"]),
      created: time(one["timestamp"], updated),
      ...(thinking ? { thinking } : {}),
      ...(text(one["model"]) ? { model: text(one["model"]) } : {}),
      hidden: role === undefined || one["type"] === "root",
    };
  });
  const created = Math.min(updated, ...said.map((one) => one.created));
  const leaf = id(conversation["currNode"]) ?? undefined;
  return {
    title: text(conversation["name"]),
    created,
    updated,
    leaf,
    said: visible(said),
    ...(system ? { system } : {}),
  };
}

function talkOf(value: unknown, now: number): Talk | undefined {
  const from = fields(value);
  if ("mapping" in from) return fromChatGpt(from, now);
  if ("chat" in from && "history" in fields(from["chat"])) return fromOpenWebUi(from, now);
  if ("conv" in from && Array.isArray(from["messages"])) return fromLlamaCpp(from, now);
  return undefined;
}

function stored({ title, created, updated, leaf, said, system }: Talk, newId: () => string): Stored {
  const conversation = newId();
  const ids = new Map(said.map((one) => [one.id, newId()]));
  const turns = unlooped(said).map((one): Turn => {
    const { id: old, parent, role, content, created: at, thinking, model } = one;
    return {
      id: ids.get(old) ?? newId(),
      conversation,
      parent: parent === null ? null : (ids.get(parent) ?? null),
      role,
      content,
      created: at,
      ...(thinking ? { thinking } : {}),
      ...(model ? { model } : {}),
      ...(role === "assistant" ? { finish: "stop" } : {}),
    };
  });
  const last = turns.find((turn) => turn.id === ids.get(leaf ?? "")) ?? turns.at(-1);
  const row: Conversation = {
    id: conversation,
    title: title.trim().slice(0, MOST_TITLE) || t("common.untitled"),
    created,
    updated,
    leaf: last?.id ?? null,
    ...(system ? { system } : {}),
  };
  return { conversation: row, turns, blobs: [] };
}

/** Messages whose parents never lead back to themselves; one that does begins anew. */
function unlooped(said: readonly Said[]): Said[] {
  const parents = new Map(said.map((one) => [one.id, one.parent]));
  return said.map((one) => {
    const seen = new Set([one.id]);
    for (let at = one.parent; at !== null; at = parents.get(at) ?? null) {
      if (seen.has(at)) {
        parents.set(one.id, null);
        return { ...one, parent: null };
      }
      seen.add(at);
    }
    return one;
  });
}

/** The chats of another program's file; refuses files of none that is known. */
export function foreign(json: string, now = Date.now(), newId: () => string = () => crypto.randomUUID()): Stored[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new ImportError(t("import.notJson"), { cause });
  }
  const talks = (Array.isArray(value) ? value : [value]).flatMap((one) => talkOf(one, now) ?? []);
  const all = talks.filter(({ said }) => said.length > 0).map((talk) => stored(talk, newId));
  if (all.length === 0) throw new ImportError(t("import.unknown"));
  return all;
}
