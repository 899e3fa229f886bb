// Images, audio, video and documents of messages. Their bytes are in a store of their own: what lists or searches turns must not read them.

import type { ContentPart, ImageTokens, ModelInfo } from "rullama";
import { t } from "../text/index.svelte.js";
import { AttachmentError, documentText, isDocument, MOST_BYTES } from "./document-text.js";

export { AttachmentError, MOST_BYTES } from "./document-text.js";

/** What a turn knows of an attachment. */
export interface Attachment {
  id: string;
  kind: "image" | "audio" | "video" | "document";
  name: string;
}

export type Kinds = ReadonlySet<Attachment["kind"]>;

/** What can be attached where nobody knows yet what the model takes, and to models without encoders. */
export const ALL_KINDS: Kinds = new Set(["image", "audio", "video", "document"]);
export const DOCUMENTS: Kinds = new Set(["document"]);

/** What a model with encoders takes. Of those in a file of their own, the model's file says nothing: Gemma 3's have no audio. */
export function kindsFor({ architecture, capabilities = [] }: Pick<ModelInfo, "architecture" | "capabilities">): Kinds {
  const audio = capabilities.includes("images") ? capabilities.includes("audio") : architecture !== "gemma3";
  return audio ? ALL_KINDS : new Set(["image", "video", "document"]);
}

/** Whether an attachment is read by the model's encoders; the text of a document is not. */
export const isMedia = ({ kind }: Pick<Attachment, "kind">): boolean => kind !== "document";

/** An attachment with its bytes. */
export interface Attached extends Attachment {
  blob: Blob;
}

export function kindOf(file: Pick<File, "name" | "type">): Attachment["kind"] | undefined {
  const [kind] = file.type.split("/");
  // Systems take TypeScript for a video's transport stream.
  const isCode = /\.(?:ts|mts)$/iu.test(file.name) && file.type !== "video/mp4";
  if (!isCode && (kind === "image" || kind === "audio" || kind === "video")) return kind;
  return isDocument(file) ? "document" : undefined;
}

/** Reads a file that was picked, dropped, pasted or recorded: it may be changed or deleted before the message is sent. */
export async function attach(file: File): Promise<Attached> {
  const kind = kindOf(file);
  // Its text is kept in place of the file: that is what the model reads and what citations lead to.
  if (kind === "document") {
    const blob = new Blob([await documentText(file)], { type: "text/plain" });
    return { id: crypto.randomUUID(), kind, name: file.name, blob };
  }
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
  const parts = attachments.filter(isMedia).map(({ kind, blob }): ContentPart => {
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
