// Times the vision and audio encoders: from decoded pixels and samples to soft tokens.

import type { PlainMedium, EncoderBenchRequest } from "./protocol.js";
import type { ImageTokens, EncoderBench, EncoderTimes } from "./types.js";

/** Pixels of a soft token's side. */
const CELL = 48;
/** Soft tokens beside and above each other that fill a budget, so that nothing is resized. */
const CELLS: Record<ImageTokens, [number, number]> = {
  70: [10, 7],
  140: [14, 10],
  280: [20, 14],
  560: [28, 20],
  1120: [40, 28],
};
const RATE = 16_000;
/** A device that idled is slow at first: it is kept busy for so long before anything counts, as the program does natively. */
const WARM_UP = 300;

/** A model with encoders. */
interface MediaEncoder {
  encode(medium: PlainMedium, signal?: AbortSignal): Promise<number>;
  softTokens(medium: number): number;
  forget(medium: number): void;
}

export async function benchEncoders(
  model: MediaEncoder,
  request: EncoderBenchRequest,
  signal?: AbortSignal,
): Promise<EncoderBench> {
  const timed = (medium: PlainMedium) => times(model, medium, request.repeat, signal);
  const { imageTokens, seconds } = request;
  return {
    ...(imageTokens ? { image: await timed(testImage(imageTokens)) } : {}),
    ...(seconds ? { audio: { ...(await timed(testAudio(seconds))), seconds } } : {}),
  };
}

async function times(
  model: MediaEncoder,
  medium: PlainMedium,
  repeat: number,
  signal?: AbortSignal,
): Promise<EncoderTimes> {
  let softTokens = 0;
  const once = async () => {
    const start = performance.now();
    const number = await model.encode(medium, signal);
    const taken = performance.now() - start;
    softTokens = model.softTokens(number);
    model.forget(number);
    return taken;
  };
  const cold = await once();
  for (const start = performance.now(); performance.now() - start < WARM_UP;) await once();
  const milliseconds: number[] = [];
  for (let run = 0; run < repeat; run++) milliseconds.push(await once());
  return { softTokens, cold, milliseconds };
}

/** Stripes and slopes. */
function testImage(tokens: ImageTokens): PlainMedium {
  const [width, height] = CELLS[tokens].map((cells) => cells * CELL) as [number, number];
  const pixels = new Uint8Array(width * height * 4);
  for (let i = 0; i < width * height; i++) pixels.set([i, i / width, i / 7, 255], 4 * i);
  return { kind: "image", width, height, pixels, tokens };
}

/** Something between a whistle and noise. */
function testAudio(seconds: number): PlainMedium {
  const samples = Float32Array.from({ length: seconds * RATE }, (_, i) => ((i * i) % 7919) / 7919 - 0.5);
  return { kind: "audio", samples, channels: 1, rate: RATE };
}
