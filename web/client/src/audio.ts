// Decodes audio into samples with the browser's decoders; the engine mixes channels and resamples.

import { RullamaError } from "./errors.js";
import { blobOf } from "./media-bytes.js";
import type { PlainMedium } from "./protocol.js";
import type { AudioSource } from "./types.js";

/** Where a file does not say its rate in a place that is easily found: what most are made with. */
const COMMON_RATE = 48_000;

/** An audio clip's samples, channels one beside the other. */
export async function decodeAudio(source: AudioSource): Promise<PlainMedium> {
  if (typeof source === "object" && "sampleRate" in source) {
    if ("samples" in source) {
      return {
        kind: "audio",
        samples: source.samples.slice(),
        channels: source.channels ?? 1,
        rate: source.sampleRate,
      };
    }
    return ofBuffer(source);
  }
  const bytes = await (await blobOf(source)).arrayBuffer();
  if (typeof OfflineAudioContext === "undefined") {
    throw new RullamaError("bad_media", "audio files are decoded in pages, not in workers: pass samples here");
  }
  // Decoding changes the rate to the context's, so the file's own is best.
  const context = new OfflineAudioContext(1, 1, wavRate(bytes) ?? COMMON_RATE);
  const buffer = await context.decodeAudioData(bytes).catch((error: unknown) => {
    const hint =
      "WAV, MP3, FLAC, OGG and what else this browser plays can be read; this one is damaged or of another kind";
    throw new RullamaError("bad_media", `the audio cannot be decoded: ${hint}`, { cause: error });
  });
  return ofBuffer(buffer);
}

function ofBuffer(buffer: AudioBuffer): PlainMedium {
  const { numberOfChannels: channels, length, sampleRate: rate } = buffer;
  const samples = new Float32Array(length * channels);
  for (let channel = 0; channel < channels; channel++) {
    const one = buffer.getChannelData(channel);
    for (let i = 0; i < length; i++) samples[i * channels + channel] = one[i]!;
  }
  return { kind: "audio", samples, channels, rate };
}

/** The rate in a WAV file's header, where a context can have it. */
export function wavRate(bytes: ArrayBuffer): number | undefined {
  const view = new DataView(bytes);
  const is = (at: number, word: string) =>
    at + 4 <= view.byteLength && [...word].every((letter, i) => view.getUint8(at + i) === letter.charCodeAt(0));
  if (!is(0, "RIFF") || !is(8, "WAVE")) return undefined;
  for (let at = 12; at + 16 <= view.byteLength; at += 8 + 2 * Math.ceil(view.getUint32(at + 4, true) / 2)) {
    if (!is(at, "fmt ")) continue;
    const rate = view.getUint32(at + 12, true);
    return rate >= 3_000 && rate <= 768_000 ? rate : undefined;
  }
  return undefined;
}
