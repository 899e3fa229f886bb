// Decodes images into RGBA pixels with the browser's decoders.

import { RullamaError } from "./errors.js";
import { blobOf } from "./media-bytes.js";
import type { PlainMedium } from "./protocol.js";
import type { ImageSource, ImageTokens } from "./types.js";

/** More pixels than any encoder reads; the wasm's memory has to hold them. */
const MOST_PIXELS = 1 << 24;
/** The pixels' own numbers: no colour profile of the screen, no multiplication by alpha, turned as the camera was. */
const AS_THEY_ARE = {
  colorSpaceConversion: "none",
  premultiplyAlpha: "none",
  imageOrientation: "from-image",
} satisfies ImageBitmapOptions;

/** An image's pixels: RGBA, alpha beside the colours. */
export async function decodeImage(source: ImageSource, tokens: ImageTokens): Promise<PlainMedium> {
  const given = typeof ImageBitmap !== "undefined" && source instanceof ImageBitmap ? source : undefined;
  const bitmap = given ?? (await decoded(source as Exclude<ImageSource, ImageBitmap>));
  try {
    const { width, height } = fitting(bitmap);
    const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    if (!context) throw new RullamaError("bad_media", "this browser gives no canvas to read images with");
    context.imageSmoothingQuality = "high";
    context.drawImage(bitmap, 0, 0, width, height);
    const { data } = context.getImageData(0, 0, width, height);
    return { kind: "image", width, height, tokens, pixels: new Uint8Array(data.buffer) };
  } finally {
    if (!given) bitmap.close();
  }
}

async function decoded(source: Exclude<ImageSource, ImageBitmap>): Promise<ImageBitmap> {
  if (typeof ImageData !== "undefined" && source instanceof ImageData) return createImageBitmap(source, AS_THEY_ARE);
  const blob = await blobOf(source as Exclude<typeof source, ImageData>);
  return createImageBitmap(blob, AS_THEY_ARE).catch((error: unknown) => {
    const hint = "PNG, JPEG, WebP and GIF files can be read; this one is damaged or of another kind";
    throw new RullamaError("bad_media", `the image cannot be decoded: ${hint}`, { cause: error });
  });
}

/** The size to read it at: its own, unless it is enormous. */
function fitting({ width, height }: { width: number; height: number }): { width: number; height: number } {
  if (width * height <= MOST_PIXELS) return { width, height };
  const scale = Math.sqrt(MOST_PIXELS / (width * height));
  return { width: Math.max(1, Math.floor(width * scale)), height: Math.max(1, Math.floor(height * scale)) };
}
