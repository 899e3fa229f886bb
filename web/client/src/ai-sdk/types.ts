// The AI SDK's provider specification, version 3, as far as it is used here. Structural: no dependency is needed.

export interface ApiFile {
  type: "file";
  data: Uint8Array | string | URL;
  mediaType: string;
}

export interface ApiToolCall {
  type: "tool-call";
  toolCallId: string;
  toolName: string;
  input: unknown;
}

export type ApiToolOutput =
  | { type: "text" | "error-text"; value: string }
  | { type: "json" | "error-json"; value: unknown }
  | { type: "execution-denied"; reason?: string }
  | { type: "content"; value: ({ type: "text"; text: string } | { type: string })[] };

export interface ApiToolResult {
  type: "tool-result";
  toolCallId: string;
  toolName: string;
  output: ApiToolOutput;
}

export type ApiMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: ({ type: "text"; text: string } | ApiFile)[] }
  | {
      role: "assistant";
      content: ({ type: "text" | "reasoning"; text: string } | ApiFile | ApiToolCall | ApiToolResult)[];
    }
  | { role: "tool"; content: (ApiToolResult | { type: string })[] };

export interface ApiTool {
  type: string;
  name: string;
  description?: string;
  inputSchema?: Record<string, unknown>;
}

export interface CallOptions {
  prompt: ApiMessage[];
  maxOutputTokens?: number;
  temperature?: number;
  topP?: number;
  topK?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  stopSequences?: string[];
  seed?: number;
  responseFormat?: { type: "text" } | { type: "json"; schema?: Record<string, unknown> };
  tools?: ApiTool[];
  toolChoice?: { type: "auto" | "none" | "required" } | { type: "tool"; toolName: string };
  abortSignal?: AbortSignal;
  providerOptions?: Record<string, Record<string, unknown>>;
}

export type Warning = { type: "unsupported"; feature: string; details?: string } | { type: "other"; message: string };

export interface ApiFinish {
  unified: "stop" | "length" | "tool-calls" | "error" | "other";
  raw: string;
}

export interface ApiUsage {
  inputTokens: { total: number; noCache: number; cacheRead: number; cacheWrite: undefined };
  outputTokens: { total: number; text: undefined; reasoning: undefined };
}

export type StreamPart =
  | { type: "stream-start"; warnings: Warning[] }
  | { type: "response-metadata"; id: string; timestamp: Date; modelId: string }
  | { type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end" | "tool-input-end"; id: string }
  | { type: "text-delta" | "reasoning-delta" | "tool-input-delta"; id: string; delta: string }
  | { type: "tool-input-start"; id: string; toolName: string }
  | { type: "tool-call"; toolCallId: string; toolName: string; input: string }
  | { type: "finish"; usage: ApiUsage; finishReason: ApiFinish }
  | { type: "error"; error: unknown };

export type Content =
  | { type: "text" | "reasoning"; text: string }
  | { type: "tool-call"; toolCallId: string; toolName: string; input: string };
