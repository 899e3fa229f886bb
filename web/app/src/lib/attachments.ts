// Images, audio and video of messages. Their bytes are in a store of their own: what lists or searches turns must not read them.

import type { ContentPart, ImageTokens } from "rullama";
import { t } from "../text/index.svelte.js";

/** What a turn knows of an attachment. */
export interface Attachment {
  id: string;
  kind: "image" | "audio" | "video";
  name: string;
}

/** An attachment with its bytes. */
export interface Attached extends Attachment {
  blob: Blob;
}

/** What a conversation can bear in its database; photographs have a few megabytes. */
export const MOST_BYTES = 20_000_000;

/** Why a file cannot be attached, for a person. */
export class AttachmentError extends Error {
  override name = "AttachmentError";
}

export function kindOf(type: string): Attachment["kind"] | undefined {
  const [kind] = type.split("/");
  return kind === "image" || kind === "audio" || kind === "video" ? kind : undefined;
}

/** Reads a file that was picked, dropped, pasted or recorded: it may be changed or deleted before the message is sent. */
export async function attach(file: File): Promise<Attached> {
  const kind = kindOf(file.type);
  if (!kind) throw new AttachmentError(t("attach.notMedia", { name: file.name }));
  if (file.size === 0) throw new AttachmentError(t("attach.empty", { name: file.name }));
  if (file.size > MOST_BYTES) throw new AttachmentError(t("attach.tooLarge", { name: file.name }));
  const bytes = await file.arrayBuffer().catch(() => {
    throw new AttachmentError(t("attach.unreadable", { name: file.name }));
  });
  const blob = new Blob([bytes], { type: file.type });
  if (kind === "image" && !(await decodable(blob)))
    throw new AttachmentError(t("attach.undecodable", { name: file.name }));
  return { id: crypto.randomUUID(), kind, name: file.name, blob };
}

/** Whether the browser can read an image; said when it is attached, not when the message fails. */
async function decodable(blob: Blob): Promise<boolean> {
  if (typeof createImageBitmap === "undefined") return true;
  try {
    (await createImageBitmap(blob)).close();
    return true;
  } catch {
    // Vector images have no bitmap without a page, and may still be drawn by one.
    return blob.type === "image/svg+xml";
  }
}

/** What the model gets: images and audio before the words about them. */
export function partsOf(attachments: readonly Attached[], text: string, tokens?: ImageTokens): ContentPart[] {
  const parts = attachments.map(({ kind, blob }): ContentPart => {
    if (kind === "image") return { type: "image", image: blob, ...(tokens ? { tokens } : {}) };
    return kind === "audio" ? { type: "audio", audio: blob } : { type: "video", video: blob };
  });
  return text === "" ? parts : [...parts, { type: "text", text }];
}

/** A blob of a `data:` address, as files of conversations and earlier versions of the database hold them. */
export function toBlob(data: string): Blob {
  const [head = "", body = ""] = data.split(",", 2);
  return new Blob([bytesOf(atob(body))], { type: /^data:(.*?)(?:;base64)?$/u.exec(head)?.[1] ?? "" });
}

/** Bytes of a text whose letters are bytes, as `atob` gives it. Not `Uint8Array.from`, which takes seconds for a large image. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}
