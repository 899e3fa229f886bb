// Prompts of the Prompt API as messages of this package: validated, with images and audio captured before the page can change them.

import { decodeAudio } from "../audio.js";
import type { ContentPart, Message, ToolCall } from "../types.js";
import { domError } from "./errors.js";
import type { ConvertedMessage } from "./idl.js";
import { type ToolResponse, toolCallOf, toolResponseOf } from "./tool-values.js";
import type { LanguageModelMessageContent, MessageRole, MessageType } from "./types.js";

/** What a message may hold, and where it comes in a session. */
export interface PromptRules {
  /** Types of input besides text that the session expects. */
  inputs: ReadonlySet<MessageType>;
  /** Whether a system message may be the first one. */
  mayStart: boolean;
}

/** Refuses what the specification does not allow. */
export function validate(messages: readonly ConvertedMessage[], { inputs, mayStart }: PromptRules): void {
  for (const [index, { role, content, prefix }] of messages.entries()) {
    if (role === "system" && (index > 0 || !mayStart)) {
      throw new TypeError("a system message must be the first one of the session");
    }
    if (prefix && (role !== "assistant" || index < messages.length - 1)) {
      throw domError("SyntaxError", "prefix is for the last message, of role assistant");
    }
    for (const part of content) validatePart(part, role, inputs);
  }
}

function validatePart(
  { type, value }: LanguageModelMessageContent,
  role: MessageRole,
  inputs: PromptRules["inputs"],
): void {
  const mustBeExpected = () => {
    if (!inputs.has(type)) throw domError("NotSupportedError", `${type} is not among the session's expectedInputs`);
  };
  switch (type) {
    case "text":
      if (typeof value !== "string") throw domError("SyntaxError", "the value of a text is not a string");
      return;
    case "image":
    case "audio":
      if (role === "assistant") {
        throw domError("NotSupportedError", `a message of role assistant cannot hold a part of type ${type}`);
      }
      mustBeExpected();
      if (type === "image" ? !isImage(value) : !isAudio(value)) throw new TypeError(`the value is no ${type}`);
      return;
    case "tool-call":
      if (role !== "assistant") throw new TypeError("only messages of role assistant hold tool calls");
      mustBeExpected();
      toolCallOf(value);
      return;
    // Chrome's earlier versions took results of tools that were not expected.
    case "tool-response":
      if (role !== "user") throw new TypeError("only messages of role user hold results of tools");
      toolResponseOf(value);
  }
}

const isBytes = (value: unknown): value is BufferSource => value instanceof ArrayBuffer || ArrayBuffer.isView(value);

function isOneOf(value: unknown, names: readonly string[]): boolean {
  return names.some((name) => {
    const Class = (globalThis as Record<string, unknown>)[name];
    return typeof Class === "function" && value instanceof (Class as new () => unknown);
  });
}

const IMAGES = [
  "Blob",
  "ImageData",
  "ImageBitmap",
  "VideoFrame",
  "OffscreenCanvas",
  "HTMLCanvasElement",
  "HTMLImageElement",
  "SVGImageElement",
  "HTMLVideoElement",
] as const;

const isImage = (value: unknown) => isBytes(value) || isOneOf(value, IMAGES);
const isAudio = (value: unknown) => isBytes(value) || isOneOf(value, ["AudioBuffer", "Blob"]);

/** Messages of this package. What a page may close or change is read before the first pause. */
export function capture(messages: readonly ConvertedMessage[]): Promise<Message[]> {
  const captured = messages.map(({ role, content, prefix }) => ({ role, prefix, parts: content.map(capturePart) }));
  return (async () => {
    const turns: Message[] = [];
    for (const { role, prefix, parts } of captured) {
      const made = messagesOf(role, await Promise.all(parts));
      if (prefix) made.at(-1)!.prefix = true;
      turns.push(...made);
    }
    return turns;
  })();
}

type Captured = ContentPart | { type: "tool-call"; call: ToolCall } | { type: "tool-response"; response: ToolResponse };

function capturePart({ type, value }: LanguageModelMessageContent): Captured | Promise<Captured> {
  switch (type) {
    case "text":
      return { type: "text", text: String(value) };
    case "image":
      return captureImage(value);
    case "audio":
      return captureAudio(value);
    case "tool-call":
      return { type, call: toolCallOf(value) };
    case "tool-response":
      return { type, response: toolResponseOf(value) };
  }
}

async function captureImage(value: unknown): Promise<ContentPart> {
  const source = isBytes(value) ? new Blob([copyOf(value)]) : (value as ImageBitmapSource);
  try {
    const loading = loaded(value);
    if (loading) await loading;
    const image = await createImageBitmap(source);
    checkReadable(image);
    return { type: "image", image };
  } catch (error) {
    if (error instanceof DOMException && error.name === "SecurityError") throw error;
    throw domError("InvalidStateError", "the image cannot be decoded");
  }
}

/** Waits for an image element whose file has not arrived yet; everything else is read at once. */
function loaded(value: unknown): Promise<void> | undefined {
  const { complete, decode } = value as Partial<HTMLImageElement>;
  return complete === false && typeof decode === "function" ? decode.call(value as HTMLImageElement) : undefined;
}

/** Pixels of another origin cannot be read. */
function checkReadable(image: ImageBitmap): void {
  const context = typeof OffscreenCanvas === "undefined" ? null : new OffscreenCanvas(1, 1).getContext("2d");
  context?.drawImage(image, 0, 0, 1, 1);
  context?.getImageData(0, 0, 1, 1);
}

async function captureAudio(value: unknown): Promise<ContentPart> {
  const source = isBytes(value) ? new Blob([copyOf(value)]) : (value as AudioBuffer | Blob);
  try {
    const audio = await decodeAudio(source);
    if (audio.kind !== "audio") throw new TypeError("not audio");
    return { type: "audio", audio: { samples: audio.samples, channels: audio.channels, sampleRate: audio.rate } };
  } catch {
    throw domError("DataError", "the audio cannot be decoded");
  }
}

function copyOf(bytes: BufferSource): ArrayBuffer {
  const view = ArrayBuffer.isView(bytes) ? bytes : new Uint8Array(bytes);
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice().buffer;
}

/** One message of a page may hold several results of tools, which are messages of their own here. */
function messagesOf(role: Message["role"], parts: Captured[]): Message[] {
  const results = parts.flatMap((part) => (part.type === "tool-response" ? [part.response] : []));
  const calls = parts.flatMap((part) => (part.type === "tool-call" ? [part.call] : []));
  const rest = parts.filter((part): part is ContentPart => part.type !== "tool-response" && part.type !== "tool-call");
  const answers = results.map(({ name, text }): Message => ({ role: "tool", toolName: name, content: text }));
  if (rest.length === 0 && answers.length > 0) return answers;
  return [...answers, { role, content: joined(rest), ...(calls.length > 0 ? { toolCalls: calls } : {}) }];
}

/** Neighbouring texts are one text. */
function joined(parts: ContentPart[]): string | ContentPart[] {
  const all: ContentPart[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if (part.type === "text" && last?.type === "text") last.text += part.text;
    else all.push(part.type === "text" ? { ...part } : part);
  }
  const [first] = all;
  if (first === undefined) return "";
  return all.length === 1 && first.type === "text" ? first.text : all;
}
