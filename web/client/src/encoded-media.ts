// Images, audio and video of messages: fetched and decoded in the page, encoded by the model once.

import { CancelledError, RullamaError, rullamaError } from "./errors.js";
import { fromBase64 } from "./media-bytes.js";
import { decodeImage } from "./image.js";
import type { AnswerRequest, CallOptions, PlainMedium, Transport } from "./protocol.js";
import { decodeAudio } from "./audio.js";
import type { AudioSource, ContentPart, ImageSource, MediaEvent, Message, ImageTokens, VideoSource } from "./types.js";
import { framesOf } from "./video.js";

/** An image, an audio clip or a video that a request needs. */
export type Medium = Still | { kind: "video"; source: VideoSource };
type Still = { kind: "image"; source: ImageSource; tokens: ImageTokens } | { kind: "audio"; source: AudioSource };

const DETAIL: Record<string, ImageTokens> = { low: 70, auto: 280, high: 1120 };
/** What is remembered of conversations besides the one that is answered; an image takes a megabyte or two. */
const REMEMBERED = 32;

/** The media of messages, in order. */
export function mediaOf(messages: Message[]): Medium[] {
  return messages.flatMap(({ content }) => (typeof content === "string" ? [] : content.flatMap(mediumOf)));
}

function mediumOf(part: ContentPart): Medium[] {
  switch (part.type) {
    case "text":
      return [];
    case "image":
      return [{ kind: "image", source: part.image, tokens: part.tokens ?? 280 }];
    case "image_url": {
      const given = typeof part.image_url === "string" ? { url: part.image_url } : part.image_url;
      const { url, detail = "auto" } = given ?? {};
      if (typeof url !== "string") throw incomplete("image_url", "url");
      return [{ kind: "image", source: url, tokens: DETAIL[detail] ?? 280 }];
    }
    case "audio":
      return [{ kind: "audio", source: part.audio }];
    case "video":
      return [{ kind: "video", source: part.video }];
    case "input_audio":
      if (typeof part.input_audio?.data !== "string") throw incomplete("input_audio", "data");
      return [{ kind: "audio", source: fromBase64(part.input_audio.data) }];
    default:
      throw new RullamaError("bad_options", `parts of type ${(part as { type: string }).type} are not known`);
  }
}

function incomplete(type: string, field: string): RullamaError {
  return new RullamaError("bad_options", `a part of type ${type} has no ${field}`);
}

type Told = (phase: MediaEvent["phase"]) => void;

interface Known {
  number: Promise<number>;
  tokens: number;
}

/** What a model encoded so far, by the object (or address) it came as. */
export class EncodedMedia {
  private readonly known = new Map<unknown, Known>();

  constructor(
    private readonly transport: Transport,
    private readonly model: number,
  ) {}

  /** The request with the numbers of its media. */
  async fill(
    request: AnswerRequest,
    media: Medium[],
    signal?: AbortSignal,
    onEvent: (event: MediaEvent) => void = () => {},
  ): Promise<AnswerRequest> {
    if (media.length === 0) return request;
    const numbers: number[] = [];
    // One after the other: each may need much memory.
    for (const [index, medium] of media.entries()) {
      const told = (phase: MediaEvent["phase"]) =>
        onEvent({ type: "media", kind: medium.kind, phase, index, total: media.length });
      numbers.push(await this.numberOf(medium, told, signal));
    }
    this.trim(new Set(media.map(({ source }) => source)));
    return { ...request, media: numbers };
  }

  private numberOf(medium: Medium, told: Told, signal?: AbortSignal): Promise<number> {
    const { source } = medium;
    const tokens = medium.kind === "image" ? medium.tokens : 0;
    const before = this.known.get(source);
    this.known.delete(source);
    if (before?.tokens === tokens) {
      this.known.set(source, before);
      return before.number.catch((error: unknown) => {
        // Another request was encoding it, and was cancelled.
        if (!(error instanceof CancelledError) || signal?.aborted) throw error;
        return this.numberOf(medium, told, signal);
      });
    }
    const number = this.encode(medium, told, signal ? { signal } : {});
    const entry = { number, tokens };
    this.known.set(source, entry);
    // What failed is tried anew the next time.
    number.catch(() => this.known.get(source) === entry && this.known.delete(source));
    return number;
  }

  private async encode(medium: Medium, told: Told, options: CallOptions<"encode">): Promise<number> {
    told("decode");
    if (medium.kind === "video") return this.encodeVideo(medium.source, told, options);
    const plain = await decode(medium);
    told("encode");
    return this.transport.call("encode", { model: this.model, medium: plain }, options);
  }

  private async encodeVideo(source: VideoSource, told: Told, options: CallOptions<"encode">): Promise<number> {
    const { model } = this;
    const [images, seconds]: [number[], number[]] = [[], []];
    for await (const frame of framesOf(source)) {
      told("encode");
      images.push(await this.transport.call("encode", { model, medium: frame.image }, options));
      seconds.push(frame.seconds);
    }
    return this.transport.call("encodeVideo", { model, images, seconds });
  }

  private trim(inUse: Set<unknown>): void {
    for (const [source, { number }] of this.known) {
      if (this.known.size <= REMEMBERED) return;
      if (inUse.has(source)) continue;
      this.known.delete(source);
      void number.then((old) => this.transport.call("forget", { model: this.model, medium: old })).catch(() => {});
    }
  }
}

async function decode(medium: Still): Promise<PlainMedium> {
  try {
    if (medium.kind === "image") return await decodeImage(medium.source, medium.tokens);
    return await decodeAudio(medium.source);
  } catch (error) {
    throw rullamaError(error);
  }
}
