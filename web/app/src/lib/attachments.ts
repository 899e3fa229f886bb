// Pictures, sounds and videos of messages. They are kept as `data:` addresses: these go into the database and into exported files as they are.

import type { ContentPart, PictureTokens } from "rullama";

export interface Attachment {
  kind: "image" | "audio" | "video";
  name: string;
  /** A `data:` address. */
  data: string;
}

/** What a conversation can bear in its database; photographs have a few megabytes. */
const MOST_BYTES = 20_000_000;

/** Why a file cannot be attached, for a person. */
export class AttachmentError extends Error {
  override name = "AttachmentError";
}

export function kindOf(type: string): Attachment["kind"] | undefined {
  const [kind] = type.split("/");
  return kind === "image" || kind === "audio" || kind === "video" ? kind : undefined;
}

/** Reads a file that was picked, dropped, pasted or recorded. */
export async function attach(file: File): Promise<Attachment> {
  const kind = kindOf(file.type);
  if (!kind) throw new AttachmentError(`${file.name} is no picture, sound or video.`);
  if (file.size === 0) throw new AttachmentError(`${file.name} is empty.`);
  if (file.size > MOST_BYTES) throw new AttachmentError(`${file.name} is larger than 20 MB.`);
  const data = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(new AttachmentError(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
  return { kind, name: file.name, data };
}

/** What the model gets: pictures and sounds before the words about them. */
export function partsOf(attachments: readonly Attachment[], text: string, tokens?: PictureTokens): ContentPart[] {
  const parts = attachments.map(({ kind, data }): ContentPart => {
    if (kind === "image") return { type: "image", image: data, ...(tokens ? { tokens } : {}) };
    return kind === "audio" ? { type: "audio", audio: data } : { type: "video", video: data };
  });
  return text === "" ? parts : [...parts, { type: "text", text }];
}

/** A blob of a `data:` address; pages may play blobs, not such addresses. */
export function toBlob(data: string): Blob {
  const [head = "", body = ""] = data.split(",", 2);
  const bytes = Uint8Array.from(atob(body), (character) => character.charCodeAt(0));
  return new Blob([bytes], { type: /^data:([^;,]*)/u.exec(head)?.[1] ?? "" });
}
