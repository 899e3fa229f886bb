// Calls of the AI SDK in this package's words.

import { fromBase64 } from "../media-bytes.js";
import type { ContentPart, GenerateOptions, Message, Tool } from "../types.js";
import type { ApiFile, ApiMessage, ApiTool, ApiToolOutput, CallOptions, Warning } from "./types.js";

export interface Converted {
  messages: Message[];
  options: GenerateOptions;
  warnings: Warning[];
}

export function converted(call: CallOptions): Converted {
  const warnings: Warning[] = [];
  const messages = call.prompt.flatMap((message) => messageOf(message, warnings));
  const { responseFormat, toolChoice } = call;
  const all: { [K in keyof GenerateOptions]: GenerateOptions[K] | undefined } = {
    maxTokens: call.maxOutputTokens,
    temperature: call.temperature,
    topP: call.topP,
    topK: call.topK,
    presencePenalty: call.presencePenalty,
    frequencyPenalty: call.frequencyPenalty,
    stop: call.stopSequences,
    seed: call.seed,
    tools: call.tools?.flatMap((tool) => toolOf(tool, warnings)),
    toolChoice: toolChoice?.type === "tool" ? { name: toolChoice.toolName } : toolChoice?.type,
    format: responseFormat?.type === "json" ? (responseFormat.schema ?? "json") : undefined,
    ...(call.providerOptions?.["rullama"] as GenerateOptions | undefined),
    signal: call.abortSignal,
  };
  const options = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  return { messages, options, warnings };
}

function toolOf(tool: ApiTool, warnings: Warning[]): Tool[] {
  if (tool.type !== "function") {
    warnings.push({ type: "unsupported", feature: `tools of type ${tool.type}`, details: tool.name });
    return [];
  }
  const { name, description, inputSchema } = tool;
  const declared = {
    name,
    ...(description ? { description } : {}),
    ...(inputSchema ? { parameters: inputSchema } : {}),
  };
  return [{ type: "function", function: declared }];
}

function messageOf(message: ApiMessage, warnings: Warning[]): Message[] {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }];
    case "user": {
      const parts = message.content.flatMap((part) => (part.type === "text" ? [part] : fileOf(part, warnings)));
      const only = parts.every((part) => part.type === "text") ? parts.map((part) => part.text).join("") : parts;
      return [{ role: "user", content: only }];
    }
    case "assistant": {
      for (const { type } of message.content) {
        const isKnown = type === "text" || type === "reasoning" || type === "tool-call";
        if (!isKnown) warnings.push(leftOut(`parts of type ${type} in messages of the assistant`));
      }
      const said = (type: "text" | "reasoning") =>
        message.content.map((part) => (part.type === type ? (part as { text: string }).text : "")).join("");
      const toolCalls = message.content.flatMap((part) =>
        part.type === "tool-call"
          ? [{ name: part.toolName, arguments: (part.input ?? {}) as Record<string, unknown> }]
          : [],
      );
      const thinking = said("reasoning");
      return [
        {
          role: "assistant",
          content: said("text"),
          ...(thinking === "" ? {} : { thinking }),
          ...(toolCalls.length === 0 ? {} : { toolCalls }),
        },
      ];
    }
    case "tool":
      return message.content.flatMap((part) => {
        if ("toolName" in part) {
          return [{ role: "tool" as const, toolName: part.toolName, content: outputOf(part.output, warnings) }];
        }
        warnings.push(leftOut(`parts of type ${part.type} in messages of tools`));
        return [];
      });
  }
}

const leftOut = (feature: string): Warning => ({
  type: "unsupported",
  feature,
  details: "left out of the prompt",
});

/** A result as the model reads it. */
function outputOf(output: ApiToolOutput, warnings: Warning[]): string {
  switch (output.type) {
    case "text":
      return output.value;
    case "error-text":
      return JSON.stringify({ error: output.value });
    case "json":
      return JSON.stringify(output.value);
    case "error-json":
      return JSON.stringify({ error: output.value });
    case "execution-denied":
      return JSON.stringify({ error: output.reason ?? "the user did not allow this call" });
    case "content":
      return output.value
        .flatMap((part) => {
          if ("text" in part) return [part.text];
          warnings.push(leftOut(`parts of type ${part.type} in results of tools`));
          return [];
        })
        .join("\n");
  }
}

/** Version 4 of the specification tags the data of files; both are read. */
function fileOf({ data, mediaType }: ApiFile, warnings: Warning[]): ContentPart[] {
  const tagged = data as unknown as { type?: string; data?: Uint8Array | string; url?: URL; text?: string };
  const plain = tagged.type === "data" ? tagged.data! : tagged.type === "url" ? tagged.url! : data;
  const source = typeof plain === "string" && !/^(?:https?|blob|data):/iu.test(plain) ? fromBase64(plain) : plain;
  const medium = source as Uint8Array<ArrayBuffer> | URL | string;
  if (/^image\b/u.test(mediaType)) return [{ type: "image", image: medium }];
  if (/^audio\b/u.test(mediaType)) return [{ type: "audio", audio: medium }];
  if (/^video\b/u.test(mediaType)) return [{ type: "video", video: medium }];
  if (mediaType.startsWith("text/")) {
    const text = tagged.text ?? (source instanceof Uint8Array ? new TextDecoder().decode(source) : String(source));
    return [{ type: "text", text }];
  }
  warnings.push(leftOut(`files of type ${mediaType}`));
  return [];
}
