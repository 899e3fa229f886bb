// Conversations of exported files: read with suspicion, checked field by field, and with ids of their own.

import { MOST_BYTES, toBlob, type Attachment } from "./attachments.js";
import type { Conversation, Source, Step, ToolRun, Turn } from "./conversation.js";
import type { Stored, StoredBlob } from "./database.js";
import { FORMAT, VERSION } from "./export.js";
import { t } from "../text/index.svelte.js";
import { ImportError, Splitter, type Piece } from "./split-json.js";

export { ImportError } from "./split-json.js";

const SEARCHED = ["meaning", "keywords", "too_many"] as const;
/** Characters of a folder's name. */
const MOST_FOLDER_NAME = 100;

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
  } catch (cause) {
    throw new ImportError(t("import.notJson"), { cause });
  }
}

/** Whether the file is one of ours. What is around the conversations counts when all of it was read. */
function checkHead(value: unknown, whole: boolean): void {
  const file = fields(value, () => t("import.file"));
  if (file.format !== FORMAT && (whole || file.format !== undefined)) {
    throw new ImportError(t("import.foreign"));
  }
  if (file.version !== VERSION && (whole || file.version !== undefined)) {
    throw new ImportError(t("import.version", { found: JSON.stringify(file.version) ?? "?", known: VERSION }));
  }
  list(file.conversations, () => "`conversations`");
}

function conversation(value: unknown, number: number, newId: () => string, given: Piece["blobs"]): Stored {
  const where: Place = () => t("import.conversation", { number });
  const turnPlace =
    (index: number): Place =>
    () =>
      t("import.turn", { number, turn: index + 1 });
  const from = fields(value, where);
  const id = newId();
  const raw = list(from.turns, at(where, "turns")).map((turn, index) => fields(turn, turnPlace(index)));
  const ids = new Map<string, string>();
  raw.forEach((turn, index) => {
    const old = string(turn.id, at(turnPlace(index), "id"));
    if (ids.has(old)) throw new ImportError(t("import.twice", { where: turnPlace(index)(), id: old }));
    ids.set(old, newId());
  });
  const known = (old: unknown, place: Place): string | null => {
    if (old === null) return null;
    const found = ids.get(string(old, place));
    if (found === undefined) throw new ImportError(t("import.missing", { where: place() }));
    return found;
  };
  const blobs: StoredBlob[] = [];
  const attach = (blob: Blob): string => {
    const attached = newId();
    blobs.push({ id: attached, conversation: id, blob });
    return attached;
  };
  const reading: Reading = { conversation: id, known, given, attach };
  const turns = raw.map((turn, index) => readTurn(turn, turnPlace(index), reading));
  refuseLoops(turns, where);
  const system = optional(from.system, string, at(where, "system"));
  const folder = optional(from.folder, string, at(where, "folder"))?.trim().slice(0, MOST_FOLDER_NAME);
  const result: Conversation = {
    id,
    title: string(from.title, at(where, "title")).slice(0, 200) || t("common.untitled"),
    created: time(from.created, at(where, "created")),
    updated: time(from.updated, at(where, "updated")),
    leaf: known(from.leaf, at(where, "leaf")),
    ...(system === undefined ? {} : { system }),
    ...(folder ? { folder } : {}),
    ...(from.pinned === true ? { pinned: true } : {}),
  };
  return { conversation: result, turns, blobs };
}

/** What turns are read with. */
interface Reading {
  conversation: string;
  /** The new id of a turn. */
  known: (old: unknown, place: Place) => string | null;
  /** Attachments that were taken out of the file's text. */
  given: Piece["blobs"];
  /** Keeps an attachment's bytes; gives its id. */
  attach: (blob: Blob) => string;
}

function readTurn(from: Fields, where: Place, reading: Reading): Turn {
  const { conversation, known } = reading;
  const turn: Turn = {
    id: known(from.id, at(where, "id")) ?? "",
    conversation,
    parent: known(from.parent, at(where, "parent")),
    role: oneOf(from.role, ["user", "assistant", "tool"], at(where, "role")),
    content: string(from.content, at(where, "content")),
    created: time(from.created, at(where, "created")),
  };
  if (from.attachments !== undefined) {
    turn.attachments = list(from.attachments, at(where, "attachments")).map((value) =>
      attachment(value, where, reading),
    );
  }
  const thinking = optional(from.thinking, string, at(where, "thinking"));
  if (thinking !== undefined) turn.thinking = thinking;
  const toolName = optional(from.toolName, string, at(where, "toolName"));
  if (toolName !== undefined) turn.toolName = toolName;
  const model = optional(from.model, string, at(where, "model"));
  if (model !== undefined) turn.model = model;
  if (from.badCalls !== undefined) {
    turn.badCalls = list(from.badCalls, at(where, "badCalls")).map((call) => string(call, at(where, "badCalls")));
  }
  if (from.toolCalls !== undefined) {
    turn.toolCalls = list(from.toolCalls, at(where, "toolCalls")).map((value) => {
      const call = fields(value, at(where, "toolCalls"));
      return {
        name: string(call.name, at(where, "toolCalls.name")),
        arguments: plain(fields(call.arguments, at(where, "toolCalls.arguments"))) as Fields,
      };
    });
  }
  if (from.steps !== undefined) {
    turn.steps = list(from.steps, at(where, "steps")).map((value) => readStep(value, at(where, "steps")));
  }
  if (from.sources !== undefined) {
    turn.sources = list(from.sources, at(where, "sources")).map((value) => readSource(value, at(where, "sources")));
  }
  const searched = optional(from.searched, (value, place) => oneOf(value, SEARCHED, place), at(where, "searched"));
  if (searched !== undefined) turn.searched = searched;
  for (const name of ["edited", "mediaLeftOut"] as const) if (from[name] === true) turn[name] = true;
  if (turn.role === "assistant") {
    const finishes = ["stop", "length", "context", "cancelled", "failed"] as const;
    turn.finish = from.finish === undefined ? "cancelled" : oneOf(from.finish, finishes, at(where, "finish"));
  }
  return turn;
}

function readStep(value: unknown, where: Place): Step {
  const from = fields(value, where);
  const thinking = optional(from.thinking, string, where);
  return {
    content: string(from.content, where),
    ...(thinking === undefined ? {} : { thinking }),
    calls: list(from.calls, where).map((one): ToolRun => {
      const call = fields(one, where);
      return {
        name: string(call.name, where),
        arguments: plain(fields(call.arguments, where)) as Fields,
        result: string(call.result, where),
        ...(call.isError === true ? { isError: true } : {}),
      };
    }),
  };
}

/** What was cited; the document itself has another id here, if it is here at all. */
function readSource(value: unknown, where: Place): Source {
  const from = fields(value, where);
  const { page } = from;
  return {
    name: string(from.name, where),
    text: string(from.text, where),
    ...(typeof page === "number" && Number.isInteger(page) && page > 0 ? { page } : {}),
  };
}

/** Only what is inside the file: an address elsewhere would tell others that it was opened. */
function attachment(value: unknown, where: Place, { given, attach }: Reading): Attachment {
  const from = fields(value, at(where, "attachments"));
  const kind = oneOf(from.kind, ["image", "audio", "video", "document"], at(where, "attachments.kind"));
  const name = string(from.name, at(where, "attachments.name"));
  const data = string(from.data, at(where, "attachments.data"));
  return { id: attach(given.get(data) ?? blobOf(data, where)), kind, name };
}

/** Bytes that are still text, as in files whose keys another program spelt in its own way. */
function blobOf(data: string, where: Place): Blob {
  if (!/^data:((image|audio|video)\/[\w.+-]+|text\/plain)(;[^,]*)?;base64,[A-Za-z0-9+/]*={0,2}$/u.test(data)) {
    throw new ImportError(t("import.notMedia", { where: where() }));
  }
  let blob: Blob;
  try {
    blob = toBlob(data);
  } catch {
    throw new ImportError(t("import.notBase64", { where: where() }));
  }
  if (blob.size > MOST_BYTES) throw new ImportError(t("import.attachmentSize", { where: where() }));
  return blob;
}

/** A copy of JSON without a key that some code would take for an object's prototype. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([key]) => key !== "__proto__");
  return Object.fromEntries(kept.map(([key, inner]) => [key, plain(inner)]));
}

function refuseLoops(turns: readonly Turn[], where: Place): void {
  const parents = new Map(turns.map((turn) => [turn.id, turn.parent]));
  const safe = new Set<string>();
  for (const turn of turns) {
    const path = new Set<string>();
    for (let id: string | null = turn.id; id !== null && !safe.has(id); id = parents.get(id) ?? null) {
      if (path.has(id)) throw new ImportError(t("import.loop", { where: where() }));
      path.add(id);
    }
    for (const id of path) safe.add(id);
  }
}

type Fields = Record<string, unknown>;
/** A place in the file, in words; made only where something is wrong. */
type Place = () => string;

function at(where: Place, field: string): Place {
  return () => t("import.field", { where: where(), field });
}

function fields(value: unknown, where: Place): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new ImportError(t("import.object", { where: where() }));
}

function list(value: unknown, where: Place): unknown[] {
  if (Array.isArray(value)) return value;
  throw new ImportError(t("import.list", { where: where() }));
}

function string(value: unknown, where: Place): string {
  if (typeof value === "string") return value;
  throw new ImportError(t("import.text", { where: where() }));
}

function time(value: unknown, where: Place): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0 && value < 8.64e15) return value;
  throw new ImportError(t("import.time", { where: where() }));
}

function oneOf<T extends string>(value: unknown, allowed: readonly T[], where: Place): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new ImportError(t("import.oneOf", { where: where(), allowed: allowed.join(", ") }));
}

function optional<T>(value: unknown, read: (value: unknown, where: Place) => T, where: Place): T | undefined {
  return value === undefined ? undefined : read(value, where);
}
