// Video frames: a muted, invisible player seeks to evenly spaced times.

import { RullamaError } from "./errors.js";
import { blobOf } from "./media-bytes.js";
import { decodeImage } from "./image.js";
import type { PlainMedium } from "./protocol.js";
import type { VideoSource } from "./types.js";

/** As many as the command line takes of a folder: one a second, of longer videos an even choice. */
const MOST_FRAMES = 32;
const FRAME_TOKENS = 70;
/** A browser that has not come to a moment of a video by then will not. */
const PATIENCE_MS = 20_000;
/** Further than any video goes: files of recorders say how long they are only at their end. */
const BEYOND = 1e7;

export interface Frame {
  seconds: number;
  image: PlainMedium;
}

/** The frames of a video, oldest first. */
export async function* framesOf(source: VideoSource): AsyncGenerator<Frame> {
  if (typeof document === "undefined") {
    throw new RullamaError("bad_media", "videos are decoded in pages, not in workers: pass images here");
  }
  const address = URL.createObjectURL(await blobOf(source));
  const video = document.createElement("video");
  try {
    video.muted = true;
    const begun = reached(video, "loadeddata");
    video.src = address;
    await begun;
    for (const seconds of frameTimes(await lengthOf(video))) {
      await seek(video, seconds);
      const bitmap = await createImageBitmap(video);
      try {
        yield { seconds, image: await decodeImage(bitmap, FRAME_TOKENS) };
      } finally {
        bitmap.close();
      }
    }
  } finally {
    video.removeAttribute("src");
    video.load();
    URL.revokeObjectURL(address);
  }
}

/** When to look, in seconds from the start. */
export function frameTimes(length: number): number[] {
  const count = Math.min(MOST_FRAMES, Math.max(1, Math.ceil(length)));
  return Array.from({ length: count }, (_, i) => (i * length) / count);
}

async function lengthOf(video: HTMLVideoElement): Promise<number> {
  if (!Number.isFinite(video.duration)) await seek(video, BEYOND);
  return Number.isFinite(video.duration) ? video.duration : video.currentTime;
}

async function seek(video: HTMLVideoElement, seconds: number): Promise<void> {
  const arrived = reached(video, "seeked");
  video.currentTime = seconds;
  await arrived;
}

/** Settles when the player tells of an event. */
function reached(video: HTMLVideoElement, event: "loadeddata" | "seeked"): Promise<void> {
  return new Promise((resolve, reject) => {
    const hint = "MP4, WebM and what else this browser plays can be read; this one is damaged or of another kind";
    const fail = () => reject(new RullamaError("bad_media", `the video cannot be decoded: ${hint}`));
    const clock = setTimeout(fail, PATIENCE_MS);
    const listening = new AbortController();
    const settle = (then: () => void) => () => {
      clearTimeout(clock);
      listening.abort();
      then();
    };
    video.addEventListener(event, settle(resolve), listening);
    video.addEventListener("error", settle(fail), listening);
  });
}
