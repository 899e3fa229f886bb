// Conversations as a JSON file, written in pieces: with attachments in it, the whole may be larger than a text can be.

import type { Attachment } from "./attachments.js";
import type { Conversation, Turn } from "./conversation.js";

export const FORMAT = "rullama-conversations";
export const VERSION = 1;

/** Bytes that become base64 at a time; a multiple of three, so that the pieces fit together. */
const STEP = 3 * 256 * 1024;
/** Characters that are collected before they leave the memory of scripts. */
const COLLECTED = 4 << 20;

type ReadBlob = (id: string) => Promise<Blob | undefined>;

/** The text of an exported file, piece by piece; no piece is much longer than the words of a turn or a megabyte. */
export async function* exported(
  conversations: AsyncIterable<{ conversation: Conversation; turns: Turn[] }>,
  blob: ReadBlob,
  now = new Date(),
): AsyncGenerator<string> {
  const head = JSON.stringify({ format: FORMAT, version: VERSION, exported: now.toISOString() });
  yield `${head.slice(0, -1)},"conversations":[`;
  let between = "\n";
  for await (const { conversation, turns } of conversations) {
    yield `${between}${JSON.stringify(conversation).slice(0, -1)},"turns":[`;
    between = ",\n";
    for (const [index, turn] of turns.entries()) {
      yield index === 0 ? "\n" : ",\n";
      yield* exportedTurn(turn, blob);
    }
    yield "]}";
  }
  yield "]}\n";
}

async function* exportedTurn(turn: Turn, blob: ReadBlob): AsyncGenerator<string> {
  const { conversation: _owner, attachments = [], ...words } = turn;
  const text = JSON.stringify(words);
  if (attachments.length === 0) return yield text;
  yield `${text.slice(0, -1)},"attachments":[`;
  let between = "";
  for (const one of attachments) {
    const bytes = await blob(one.id);
    // What the browser lost cannot be exported.
    if (!bytes) continue;
    yield between;
    between = ",";
    yield* exportedBlob(one, bytes);
  }
  yield "]}";
}

async function* exportedBlob({ kind, name }: Attachment, blob: Blob): AsyncGenerator<string> {
  const address = JSON.stringify(`data:${blob.type};base64,`);
  yield `${JSON.stringify({ kind, name }).slice(0, -1)},"data":${address.slice(0, -1)}`;
  for (let at = 0; at < blob.size; at += STEP) yield base64(await blob.slice(at, at + STEP).arrayBuffer());
  yield `"}`;
}

function base64(bytes: ArrayBuffer): string {
  let text = "";
  // A call takes only so many arguments.
  for (let at = 0; at < bytes.byteLength; at += 0x4000) {
    text += String.fromCharCode(...new Uint8Array(bytes, at, Math.min(0x4000, bytes.byteLength - at)));
  }
  return btoa(text);
}

/** The pieces as a file, which browsers put on disk as it grows. */
export async function toFile(pieces: AsyncIterable<string>): Promise<Blob> {
  const type = "application/json";
  const parts: Blob[] = [];
  let texts: string[] = [];
  let collected = 0;
  for await (const piece of pieces) {
    texts.push(piece);
    collected += piece.length;
    if (collected < COLLECTED) continue;
    parts.push(new Blob(texts));
    texts = [];
    collected = 0;
  }
  return new Blob([...parts, ...texts], { type });
}
