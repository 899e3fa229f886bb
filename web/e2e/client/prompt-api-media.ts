// Images and audio in prompts, from every source that pages have. Runs in the page.
import { type Facts, rejects, same } from "./prompt-api-check.ts";

const asked = (type: "image" | "audio" | "text", value: unknown) => [
  {
    role: "user" as const,
    content: [
      { type: "text" as const, value: "see" },
      { type, value },
    ],
  },
];
const IMAGES = { expectedInputs: [{ type: "image" as const }] };
const AUDIO = { expectedInputs: [{ type: "audio" as const }] };
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="32" height="16"><rect width="9" height="9"/></svg>`;

function canvas(): HTMLCanvasElement {
  const made = document.createElement("canvas");
  [made.width, made.height] = [32, 16];
  made.getContext("2d")!.fillRect(0, 0, 9, 9);
  return made;
}

const blobOf = (from: HTMLCanvasElement) => new Promise<Blob>((resolve) => from.toBlob((blob) => resolve(blob!)));

/** A second of silence at 16 kHz, as a WAV file. */
function wav(): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(44 + 32_000));
  const text = (at: number, value: string) => [...value].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + 32_000, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, 16_000, true);
  view.setUint32(28, 32_000, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, 32_000, true);
  return view.buffer;
}

async function imageSources(): Promise<Record<string, unknown>> {
  const blob = await blobOf(canvas());
  const bytes = await blob.arrayBuffer();
  const padded = new Uint8Array(256 + bytes.byteLength);
  padded.set(new Uint8Array(bytes), 256);
  const offscreen = new OffscreenCanvas(32, 16);
  offscreen.getContext("2d")!.fillRect(0, 0, 9, 9);
  // Its file arrives after the prompt begins.
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  const drawing = new Image();
  drawing.src = `data:image/svg+xml,${encodeURIComponent(SVG)}`;
  const svg = document.body.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  const inSvg = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "image"));
  const shown = new Promise((resolve) => inSvg.addEventListener("load", resolve));
  inSvg.setAttribute("href", URL.createObjectURL(blob));
  await shown;
  const video = document.createElement("video");
  video.muted = true;
  video.srcObject = canvas().captureStream(20);
  await video.play();
  return {
    Blob: blob,
    ImageBitmap: await createImageBitmap(blob),
    VideoFrame: new VideoFrame(canvas(), { timestamp: 1 }),
    OffscreenCanvas: offscreen,
    ImageData: new ImageData(32, 16),
    HTMLImageElement: image,
    "HTMLImageElement with SVG": drawing,
    HTMLCanvasElement: canvas(),
    SVGImageElement: inSvg,
    HTMLVideoElement: video,
    ArrayBuffer: bytes,
    DataView: new DataView(bytes),
    "Uint8Array with an offset": padded.subarray(256),
  };
}

export const mediaFacts: Facts = {
  "images come from every source": async () => {
    for (const [name, value] of Object.entries(await imageSources())) {
      const session = await LanguageModel.create(IMAGES);
      const reply = session.prompt(asked("image", value));
      // Pages close frames as soon as they have passed them.
      if (value instanceof VideoFrame) value.close();
      same([name, await reply.catch(String)], [name, "see image 32."]);
    }
  },
  "images in initial prompts count": async () => {
    const initialPrompts = asked("image", await blobOf(canvas()));
    const session = await LanguageModel.create({ ...IMAGES, initialPrompts });
    same(session.contextUsage, await session.measureContextUsage(initialPrompts));
    await rejects(LanguageModel.create({ ...AUDIO, initialPrompts }), "NotSupportedError");
  },
  "images are refused where they are not expected, cannot be decoded, or are said by the model": async () => {
    const image = new Image();
    image.src = URL.createObjectURL(await blobOf(canvas()));
    const plain = await LanguageModel.create();
    for (const value of [image, new VideoFrame(canvas(), { timestamp: 1 })]) {
      await rejects(plain.prompt(asked("image", value)), "NotSupportedError");
      if (value instanceof VideoFrame) value.close();
    }
    const session = await LanguageModel.create(IMAGES);
    await rejects(session.prompt(asked("text", image)), "SyntaxError");
    await rejects(session.prompt(asked("image", new Uint8Array(300))), "InvalidStateError");
    await rejects(session.prompt(asked("image", "x.png")), "TypeError");
    const broken = new Image();
    broken.src = "data:image/png;base64,AAAA";
    await rejects(session.prompt(asked("image", broken)), "InvalidStateError");
    await rejects(
      session.prompt([{ role: "assistant", content: [{ type: "image", value: image }] }]),
      "NotSupportedError",
    );
    same(await session.prompt(asked("image", image)), "see image 32.");
  },
  "audio comes from every source": async () => {
    const decoded = await new OfflineAudioContext(1, 16_000, 16_000).decodeAudioData(wav());
    const sources = {
      Blob: new Blob([wav()]),
      AudioBuffer: decoded,
      ArrayBuffer: wav(),
      Uint8Array: new Uint8Array(wav()),
    };
    for (const [name, value] of Object.entries(sources)) {
      const session = await LanguageModel.create(AUDIO);
      same([name, await session.prompt(asked("audio", value)).catch(String)], [name, "see audio 16000."]);
      await rejects(session.prompt(asked("audio", await blobOf(canvas()))), "DataError");
    }
    const plain = await LanguageModel.create();
    await rejects(plain.prompt(asked("audio", new Blob([wav()]))), "NotSupportedError");
    const initialPrompts = asked("audio", new Blob([wav()]));
    const session = await LanguageModel.create({ ...AUDIO, initialPrompts });
    same(session.contextUsage, await session.measureContextUsage(initialPrompts));
  },
  "a session is usable after a prompt with images and audio was aborted": async () => {
    const both = { expectedInputs: [...IMAGES.expectedInputs, ...AUDIO.expectedInputs] };
    const session = await LanguageModel.create(both);
    const controller = new AbortController();
    const content = [...asked("image", await blobOf(canvas())), ...asked("audio", wav())];
    const reply = session.prompt(content, { signal: controller.signal });
    reply.catch(() => {});
    controller.abort();
    await rejects(reply, "AbortError");
    same([session.contextUsage, await session.prompt(content)], [0, "see audio 16000."]);
  },
};
