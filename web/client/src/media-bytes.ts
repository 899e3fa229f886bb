// The bytes of a medium, whatever it was given as.

import { NetworkError, RullamaError } from "./errors.js";

/** Larger files are taken for mistakes. */
const MOST_BYTES = 256 << 20;

/** A blob of what was given: itself, bytes, or what lies at an address (`data:` included). */
export async function blobOf(source: Blob | ArrayBuffer | ArrayBufferView | URL | string): Promise<Blob> {
  const blob = await asBlob(source);
  if (blob.size === 0) throw new RullamaError("bad_media", "the file is empty");
  if (blob.size > MOST_BYTES) {
    throw new RullamaError("bad_media", `the file has ${blob.size} bytes, more than the ${MOST_BYTES} that are taken`);
  }
  return blob;
}

async function asBlob(source: Blob | ArrayBuffer | ArrayBufferView | URL | string): Promise<Blob> {
  if (source instanceof Blob) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return new Blob([source as BlobPart]);
  const address = source instanceof URL ? source.href : source;
  if (address.startsWith("data:")) return ofData(address);
  const response = await fetch(address).catch((error: unknown) => {
    throw new NetworkError(`${address} could not be fetched`, undefined, { cause: error });
  });
  if (!response.ok) throw new NetworkError(`${address} answered with status ${response.status}`, response.status);
  return response.blob();
}

/** Not by `fetch`: a page's policy may forbid to connect to what it holds already. */
function ofData(address: string): Blob {
  const comma = address.indexOf(",");
  const [type = "", ...attributes] = address.slice("data:".length, comma).split(";");
  const body = address.slice(comma + 1);
  const bytes = attributes.at(-1)?.toLowerCase() === "base64" ? fromBase64(body) : decodeURIComponent(body);
  return new Blob([bytes], { type });
}

/** Base64 text as bytes, with or without a `data:` in front. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    const plain = atob(text.replace(/^data:[^,]*,/, "").trim());
    return Uint8Array.from(plain, (character) => character.charCodeAt(0));
  } catch (error) {
    throw new RullamaError("bad_media", "an image or audio clip is not valid base64", { cause: error });
  }
}
