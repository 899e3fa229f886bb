// The dictionaries of the Prompt API.

export type Availability = "unavailable" | "downloadable" | "downloading" | "available";
export type MessageRole = "system" | "user" | "assistant";
export type MessageType = "text" | "image" | "audio" | "tool-call" | "tool-response";
export type SamplingMode =
  | "most-predictable"
  | "predictable"
  | "slightly-predictable"
  | "balanced"
  | "slightly-creative"
  | "creative"
  | "most-creative";

export interface LanguageModelExpected {
  type: MessageType;
  languages?: string[];
}

export interface LanguageModelTool {
  name: string;
  description: string;
  inputSchema: object;
  /** Called with the arguments; without it, `prompt()` resolves to a list with the calls, and the page answers them. */
  execute?: (input: object) => Promise<string> | string;
}

export interface LanguageModelMessageContent {
  type: MessageType;
  value: unknown;
}

export interface LanguageModelMessage {
  role: MessageRole;
  content: string | LanguageModelMessageContent[];
  prefix?: boolean;
}

export type LanguageModelPrompt = string | LanguageModelMessage[];

export interface LanguageModelCreateCoreOptions {
  samplingMode?: SamplingMode;
  expectedInputs?: LanguageModelExpected[];
  expectedOutputs?: LanguageModelExpected[];
  tools?: LanguageModelTool[];
  /** Used in extensions; ignored on pages, as in Chrome. */
  topK?: number;
  temperature?: number;
}

/** Tells of the download while a session is created. */
export interface CreateMonitor extends EventTarget {
  ondownloadprogress: ((event: ProgressEvent) => unknown) | null;
}

export interface LanguageModelCreateOptions extends LanguageModelCreateCoreOptions {
  signal?: AbortSignal;
  monitor?: (monitor: CreateMonitor) => void;
  initialPrompts?: LanguageModelMessage[];
}

export interface LanguageModelPromptOptions {
  responseConstraint?: object;
  omitResponseConstraintInput?: boolean;
  signal?: AbortSignal;
}

/** A call that the page answers; the objects are a `LanguageModelToolCall`. */
export interface ToolCallValue {
  readonly callId: string;
  /** What Chrome calls `callId`. */
  readonly callID: string;
  readonly name: string;
  readonly arguments: object | null;
}

/** A part of a reply. */
export type PromptPart = { type: "text"; value: string } | { type: "tool-call"; value: ToolCallValue };

/** What `prompt()` resolves to: a list of parts in sessions that expect outputs of type `tool-call` and do not run all tools themselves. */
export type PromptResult = string | PromptPart[];
