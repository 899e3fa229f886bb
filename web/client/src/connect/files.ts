// Decoded images and audio as files again, for servers.

import type { PlainMedium } from "../protocol.js";
import type { EncodedFile } from "./dialect.js";

export async function encodedFile(medium: PlainMedium): Promise<EncodedFile> {
  const bytes = medium.kind === "image" ? await png(medium) : wav(medium);
  return { kind: medium.kind, data: base64(bytes) };
}

async function png({ width, height, pixels }: Extract<PlainMedium, { kind: "image" }>): Promise<Uint8Array> {
  const canvas = new OffscreenCanvas(width, height);
  const data = new ImageData(new Uint8ClampedArray(pixels.buffer, pixels.byteOffset, pixels.byteLength), width, height);
  canvas.getContext("2d")?.putImageData(data, 0, 0);
  return new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
}

/** 16-bit PCM with the samples' own rate and channels. */
export function wav({ samples, channels, rate }: Extract<PlainMedium, { kind: "audio" }>): Uint8Array {
  const HEADER = 44;
  const view = new DataView(new ArrayBuffer(HEADER + 2 * samples.length));
  const word = (at: number, letters: string) =>
    [...letters].forEach((one, i) => view.setUint8(at + i, one.charCodeAt(0)));
  word(0, "RIFF");
  view.setUint32(4, view.byteLength - 8, true);
  word(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * channels * 2, true);
  view.setUint16(32, channels * 2, true);
  view.setUint16(34, 16, true);
  word(36, "data");
  view.setUint32(40, 2 * samples.length, true);
  for (const [index, sample] of samples.entries()) {
    view.setInt16(HEADER + 2 * index, Math.round(Math.min(1, Math.max(-1, sample)) * 32_767), true);
  }
  return new Uint8Array(view.buffer);
}

function base64(bytes: Uint8Array): string {
  const STEP = 0x8000;
  let text = "";
  for (let at = 0; at < bytes.length; at += STEP) text += String.fromCharCode(...bytes.subarray(at, at + STEP));
  return btoa(text);
}
