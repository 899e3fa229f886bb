// Conversations of exported files: read with suspicion, checked field by field, and with ids of their own.

import { MOST_BYTES, toBlob, type Attachment } from "./attachments.js";
import type { Conversation, Turn } from "./conversation.js";
import type { Stored, StoredBlob } from "./database.js";
import { FORMAT, VERSION } from "./export.js";
import { ImportError, Splitter, type Piece } from "./split-json.js";

export { ImportError } from "./split-json.js";

/** Conversations of a file, each as soon as it is whole. What is wrong may show at the end: then none of them counts. */
export async function* imported(
  chunks: AsyncIterable<string>,
  newId: () => string = () => crypto.randomUUID(),
): AsyncGenerator<Stored> {
  const splitter = new Splitter();
  let number = 0;
  for await (const chunk of chunks) {
    splitter.push(chunk);
    for (const piece of splitter.pieces.splice(0)) {
      if (piece.head !== undefined) checkHead(parsed(piece.head), false);
      number += 1;
      yield conversation(parsed(piece.text), number, newId, piece.blobs);
    }
  }
  checkHead(parsed(splitter.end()), true);
}

/** The text of a file, piece by piece. */
export async function* textOf(file: Blob): AsyncGenerator<string> {
  const reader = file.stream().getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      yield decoder.decode(value, { stream: !done });
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ImportError(`This is not JSON: ${error instanceof Error ? error.message : "it cannot be read"}.`);
  }
}

/** Whether the file is one of ours. What is around the conversations counts when all of it was read. */
function checkHead(value: unknown, whole: boolean): void {
  const file = fields(value, "The file");
  if (file.format !== FORMAT && (whole || file.format !== undefined)) {
    throw new ImportError("This is JSON, but not a file that rullama exported.");
  }
  if (file.version !== VERSION && (whole || file.version !== undefined)) {
    throw new ImportError(`The file's version is ${JSON.stringify(file.version)}; this app reads version ${VERSION}.`);
  }
  list(file.conversations, "`conversations`");
}

function conversation(value: unknown, number: number, newId: () => string, given: Piece["blobs"]): Stored {
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
  const blobs: StoredBlob[] = [];
  const attach = (blob: Blob): string => {
    const attached = newId();
    blobs.push({ id: attached, conversation: id, blob });
    return attached;
  };
  const reading: Reading = { conversation: id, known, given, attach };
  const turns = raw.map((turn, index) => readTurn(turn, `${where}, turn ${index + 1}`, reading));
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
  return { conversation: result, turns, blobs };
}

/** What turns are read with. */
interface Reading {
  conversation: string;
  /** The new id of a turn. */
  known: (old: unknown, place: string) => string | null;
  /** Attachments that were taken out of the file's text. */
  given: Piece["blobs"];
  /** Keeps an attachment's bytes; gives its id. */
  attach: (blob: Blob) => string;
}

function readTurn(from: Fields, where: string, reading: Reading): Turn {
  const { conversation, known } = reading;
  const turn: Turn = {
    id: known(from.id, `${where}: \`id\``) ?? "",
    conversation,
    parent: known(from.parent, `${where}: \`parent\``),
    role: oneOf(from.role, ["user", "assistant", "tool"], `${where}: \`role\``),
    content: string(from.content, `${where}: \`content\``),
    created: time(from.created, `${where}: \`created\``),
  };
  if (from.attachments !== undefined) {
    turn.attachments = list(from.attachments, `${where}: \`attachments\``).map((value) =>
      attachment(value, where, reading),
    );
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
        arguments: plain(fields(call.arguments, `${where}: a tool call's \`arguments\``)) as Fields,
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
function attachment(value: unknown, where: string, { given, attach }: Reading): Attachment {
  const from = fields(value, `${where}: an attachment`);
  const kind = oneOf(from.kind, ["image", "audio", "video"], `${where}: an attachment's \`kind\``);
  const name = string(from.name, `${where}: an attachment's \`name\``);
  const data = string(from.data, `${where}: an attachment's \`data\``);
  return { id: attach(given.get(data) ?? blobOf(data, where)), kind, name };
}

/** Bytes that are still text, as in files whose keys another program spelt in its own way. */
function blobOf(data: string, where: string): Blob {
  if (!/^data:(image|audio|video)\/[\w.+-]+(;[^,]*)?;base64,[A-Za-z0-9+/]*={0,2}$/u.test(data)) {
    throw new ImportError(`${where}: an attachment's \`data\` should be an image, audio or video in base64.`);
  }
  let blob: Blob;
  try {
    blob = toBlob(data);
  } catch {
    throw new ImportError(`${where}: an attachment is not in base64.`);
  }
  if (blob.size > MOST_BYTES) throw new ImportError(`${where}: an attachment is larger than 20 MB.`);
  return blob;
}

/** A copy of JSON without a key that some code would take for an object's prototype. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([key]) => key !== "__proto__");
  return Object.fromEntries(kept.map(([key, inner]) => [key, plain(inner)]));
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
