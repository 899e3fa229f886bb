// Images, audio and video.

/** An image: a file, its bytes, its address (`data:` and `blob:` too), or pixels. */
export type ImageSource = Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | URL | string | ImageBitmap | ImageData;

/** An audio clip: a file, its bytes, its address, what Web Audio decoded, or samples (channels one beside the other). */
export type AudioSource =
  | Blob
  | ArrayBuffer
  | Uint8Array<ArrayBuffer>
  | URL
  | string
  | AudioBuffer
  | { samples: Float32Array<ArrayBuffer>; sampleRate: number; channels?: number };

/** A video: a file, its bytes or its address. Its frames are encoded, its audio track is not. */
export type VideoSource = Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | URL | string;

/** Most soft tokens of an image: more show finer detail. */
export type ImageTokens = 70 | 140 | 280 | 560 | 1120;

/** A piece of a message. The last two are OpenAI's. What was encoded is remembered for the same object or address. */
export type ContentPart =
  | { type: "text"; text: string }
  | { type: "image"; image: ImageSource; tokens?: ImageTokens }
  | { type: "audio"; audio: AudioSource }
  | { type: "video"; video: VideoSource }
  | { type: "image_url"; image_url: string | { url: string; detail?: "low" | "high" | "auto" } }
  | { type: "input_audio"; input_audio: { data: string; format?: string } };

/** Before the prompt: an attachment of the messages is decoded, or its soft tokens are computed. */
export interface MediaEvent {
  type: "media";
  kind: "image" | "audio" | "video";
  phase: "decode" | "encode";
  /** Which one, of so many. */
  index: number;
  total: number;
}
