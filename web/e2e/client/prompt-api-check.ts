// What the facts about the Prompt API are checked with: a model that repeats its input, and comparisons. Runs in the page.
import type { ChatModel } from "../../client/src/chat-model.js";
import type * as Api from "../../client/src/prompt-api/index.js";
import type { ContentPart, GenerateEvent, Message } from "../../client/src/types.js";

declare global {
  var LanguageModel: Api.LanguageModelClass;
  var LanguageModelToolSuccess: typeof Api.LanguageModelToolSuccess;
  var LanguageModelToolError: typeof Api.LanguageModelToolError;
}

export type Facts = Record<string, () => Promise<void>>;

const partsOf = ({ content }: Message): ContentPart[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

/** Repeats what it was sent, names images by their size and audio by its length, and calls all tools where the text asks for it. */
export function echo(context = 1000): ChatModel {
  async function* chat(messages: Message[], options: { tools?: { function: { name: string } }[] } = {}) {
    const parts = partsOf(messages.at(-1)!).map((part): string => {
      if (part.type === "image") return `image ${(part.image as ImageBitmap).width}`;
      if (part.type === "audio") return `audio ${(part.audio as { samples: Float32Array }).samples.length}`;
      return part.type === "text" ? part.text : part.type;
    });
    const text = parts.join(" ");
    yield { type: "text", text: text.slice(0, 3) } as GenerateEvent;
    await new Promise((resolve) => setTimeout(resolve, 5));
    yield { type: "text", text: `${text.slice(3)}.` } as GenerateEvent;
    const tools = text.includes("call tools") ? (options.tools ?? []) : [];
    for (const { function: tool } of tools) {
      yield { type: "tool_call", index: 0, call: { name: tool.name, arguments: { of: tool.name } } } as GenerateEvent;
    }
    yield { type: "done", finish: "stop", usage: {} } as GenerateEvent;
  }
  const tokenize = async (text: string) => (text.match(/\S+/gu) ?? []).map((_, index) => index);
  return { info: { name: "echo", kind: "decoder", context }, chat, complete: chat, tokenize } as unknown as ChatModel;
}

export function same(found: unknown, wanted: unknown): void {
  const [left, right] = [found, wanted].map((one) => JSON.stringify(one));
  if (left !== right) throw new Error(`${left} instead of ${right}`);
}

export async function rejects(promise: Promise<unknown>, wanted: string): Promise<void> {
  const name = await promise.then(
    () => "nothing",
    (error: Error) => error.name,
  );
  same(name, wanted);
}

export async function rejectsWith(promise: Promise<unknown>, reason: unknown): Promise<void> {
  const found = await promise.then(
    () => "nothing",
    (error: unknown) => error,
  );
  if (found !== reason) throw new Error(`rejected with ${String(found)}`);
}

export const drained = async (stream: ReadableStream): Promise<unknown[]> => {
  const chunks: unknown[] = [];
  for await (const chunk of stream as unknown as AsyncIterable<unknown>) chunks.push(chunk);
  return chunks;
};
