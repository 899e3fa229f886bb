// Conversations as JSON files: written whole, read with suspicion.

import type { Attachment } from "./attachments.js";
import type { Conversation, Turn } from "./conversation.js";
import type { Stored } from "./database.js";

const FORMAT = "rullama-conversations";
const VERSION = 1;
const MOST_BYTES = 256 * 1024 * 1024;

/** Says what is wrong with a file and where. */
export class ImportError extends Error {
  override name = "ImportError";
}

export function toJson(stored: readonly Stored[], now = new Date()): string {
  const conversations = stored.map(({ conversation, turns }) => ({
    ...conversation,
    turns: turns.map(({ conversation: _owner, ...turn }) => turn),
  }));
  return `${JSON.stringify({ format: FORMAT, version: VERSION, exported: now.toISOString(), conversations }, null, 1)}\n`;
}

/** Conversations of an exported file, checked field by field and with ids of their own. */
export function fromJson(text: string, newId: () => string = () => crypto.randomUUID()): Stored[] {
  if (text.length > MOST_BYTES) throw new ImportError("The file is larger than 256 MB.");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ImportError(`This is not JSON: ${error instanceof Error ? error.message : "it cannot be read"}.`);
  }
  const file = fields(value, "The file");
  if (file.format !== FORMAT) throw new ImportError("This is JSON, but not a file that rullama exported.");
  if (file.version !== VERSION) {
    throw new ImportError(`The file's version is ${JSON.stringify(file.version)}; this app reads version ${VERSION}.`);
  }
  return list(file.conversations, "`conversations`").map((one, index) => conversation(one, index + 1, newId));
}

function conversation(value: unknown, number: number, newId: () => string): Stored {
  const where = `Conversation ${number}`;
  const from = fields(value, where);
  const id = newId();
  const raw = list(from.turns, `${where}: \`turns\``).map((turn, index) => fields(turn, `${where}, turn ${index + 1}`));
  const ids = new Map<string, string>();
  raw.forEach((turn, index) => {
    const old = string(turn.id, `${where}, turn ${index + 1}: \`id\``);
    if (ids.has(old)) throw new ImportError(`${where}, turn ${index + 1}: the id \`${old}\` appears twice.`);
    ids.set(old, newId());
  });
  const known = (old: unknown, place: string): string | null => {
    if (old === null) return null;
    const found = ids.get(string(old, place));
    if (found === undefined) throw new ImportError(`${place} names a turn that is not there.`);
    return found;
  };
  const turns = raw.map((turn, index) => readTurn(turn, `${where}, turn ${index + 1}`, id, known));
  refuseLoops(turns, where);
  const system = optional(from.system, string, `${where}: \`system\``);
  const result: Conversation = {
    id,
    title: string(from.title, `${where}: \`title\``).slice(0, 200) || "Untitled",
    created: time(from.created, `${where}: \`created\``),
    updated: time(from.updated, `${where}: \`updated\``),
    leaf: known(from.leaf, `${where}: \`leaf\``),
    ...(system === undefined ? {} : { system }),
  };
  return { conversation: result, turns };
}

type Known = (old: unknown, place: string) => string | null;

function readTurn(from: Fields, where: string, conversation: string, known: Known): Turn {
  const turn: Turn = {
    id: known(from.id, `${where}: \`id\``) ?? "",
    conversation,
    parent: known(from.parent, `${where}: \`parent\``),
    role: oneOf(from.role, ["user", "assistant", "tool"], `${where}: \`role\``),
    content: string(from.content, `${where}: \`content\``),
    created: time(from.created, `${where}: \`created\``),
  };
  if (from.attachments !== undefined) {
    turn.attachments = list(from.attachments, `${where}: \`attachments\``).map((value) => attachment(value, where));
  }
  const thinking = optional(from.thinking, string, `${where}: \`thinking\``);
  if (thinking !== undefined) turn.thinking = thinking;
  const toolName = optional(from.toolName, string, `${where}: \`toolName\``);
  if (toolName !== undefined) turn.toolName = toolName;
  const model = optional(from.model, string, `${where}: \`model\``);
  if (model !== undefined) turn.model = model;
  if (from.badCalls !== undefined) {
    turn.badCalls = list(from.badCalls, `${where}: \`badCalls\``).map((call) => string(call, `${where}: a bad call`));
  }
  if (from.toolCalls !== undefined) {
    turn.toolCalls = list(from.toolCalls, `${where}: \`toolCalls\``).map((value) => {
      const call = fields(value, `${where}: a tool call`);
      return {
        name: string(call.name, `${where}: a tool call's \`name\``),
        arguments: fields(call.arguments, `${where}: a tool call's \`arguments\``),
      };
    });
  }
  if (turn.role === "assistant") {
    const finishes = ["stop", "length", "context", "cancelled", "failed"] as const;
    turn.finish = from.finish === undefined ? "cancelled" : oneOf(from.finish, finishes, `${where}: \`finish\``);
  }
  return turn;
}

/** Only what is inside the file: an address elsewhere would tell others that it was opened. */
function attachment(value: unknown, where: string): Attachment {
  const from = fields(value, `${where}: an attachment`);
  const kind = oneOf(from.kind, ["image", "audio", "video"], `${where}: an attachment's \`kind\``);
  const data = string(from.data, `${where}: an attachment's \`data\``);
  if (!/^data:(image|audio|video)\/[\w.+-]+(;[^,]*)?;base64,[A-Za-z0-9+/]*={0,2}$/u.test(data)) {
    throw new ImportError(`${where}: an attachment's \`data\` should be a picture, a sound or a video in base64.`);
  }
  return { kind, name: string(from.name, `${where}: an attachment's \`name\``), data };
}

function refuseLoops(turns: readonly Turn[], where: string): void {
  const parents = new Map(turns.map((turn) => [turn.id, turn.parent]));
  const safe = new Set<string>();
  for (const turn of turns) {
    const path = new Set<string>();
    for (let id: string | null = turn.id; id !== null && !safe.has(id); id = parents.get(id) ?? null) {
      if (path.has(id)) throw new ImportError(`${where}: its turns answer each other in a circle.`);
      path.add(id);
    }
    for (const id of path) safe.add(id);
  }
}

type Fields = Record<string, unknown>;

function fields(value: unknown, where: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new ImportError(`${where} should be an object.`);
}

function list(value: unknown, where: string): unknown[] {
  if (Array.isArray(value)) return value;
  throw new ImportError(`${where} should be a list.`);
}

function string(value: unknown, where: string): string {
  if (typeof value === "string") return value;
  throw new ImportError(`${where} should be text.`);
}

function time(value: unknown, where: string): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0 && value < 8.64e15) return value;
  throw new ImportError(`${where} should be a time in milliseconds.`);
}

function oneOf<T extends string>(value: unknown, allowed: readonly T[], where: string): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new ImportError(`${where} should be one of ${allowed.join(", ")}.`);
}

function optional<T>(value: unknown, read: (value: unknown, where: string) => T, where: string): T | undefined {
  return value === undefined ? undefined : read(value, where);
}
