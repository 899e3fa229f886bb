// Conversions of what pages pass, as Web IDL defines them: each throws a TypeError before anything happens.

import { type RawSampling, limited, numberOf, rawSampling } from "./raw-sampling.js";
import type {
  LanguageModelExpected,
  LanguageModelMessageContent,
  LanguageModelTool,
  MessageRole,
  MessageType,
  SamplingMode,
} from "./types.js";

const TYPES: readonly MessageType[] = ["text", "image", "audio", "tool-call", "tool-response"];
const ROLES: readonly MessageRole[] = ["system", "user", "assistant"];
const MODES: readonly SamplingMode[] = [
  "most-predictable",
  "predictable",
  "slightly-predictable",
  "balanced",
  "slightly-creative",
  "creative",
  "most-creative",
];

export interface ConvertedMessage {
  role: MessageRole;
  content: LanguageModelMessageContent[];
  prefix: boolean;
}

export interface CoreOptions {
  /** Null where numbers were given in its place. */
  samplingMode: SamplingMode | null;
  expectedInputs: LanguageModelExpected[];
  expectedOutputs: LanguageModelExpected[];
  tools: LanguageModelTool[];
  /** Numbers in place of the mode. */
  raw?: RawSampling;
}

/** A dictionary: `undefined` and `null` are empty ones. */
export function dictionary(value: unknown, what: string): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" && typeof value !== "function") throw new TypeError(`${what} is not an object`);
  return value as Record<string, unknown>;
}

/** A string; symbols, unlike with `String`, are a TypeError. */
export const text = (value: unknown): string => `${value as string}`;

function isList(value: unknown): value is Iterable<unknown> {
  return (
    typeof value === "object" && value !== null && typeof (value as Iterable<unknown>)[Symbol.iterator] === "function"
  );
}

export function list(value: unknown, what: string): unknown[] {
  if (!isList(value)) throw new TypeError(`${what} is not a sequence`);
  return [...value];
}

export function required(from: Record<string, unknown>, name: string, what: string): unknown {
  const value = from[name];
  if (value === undefined) throw new TypeError(`${what} has no ${name}`);
  return value;
}

function oneOf<T extends string>(value: unknown, known: readonly T[], what: string): T {
  const word = text(value);
  if (!known.includes(word as T)) throw new TypeError(`'${word}' is not a valid ${what}`);
  return word as T;
}

export function signalOf(from: Record<string, unknown>): AbortSignal | undefined {
  const { signal } = from;
  if (signal === undefined) return undefined;
  if (!(signal instanceof AbortSignal)) throw new TypeError("signal is not an AbortSignal");
  return signal;
}

/** A prompt: a list of messages, or anything else as the text of one. */
export function promptOf(value: unknown): ConvertedMessage[] {
  if (!isList(value)) return [{ role: "user", content: [{ type: "text", value: text(value) }], prefix: false }];
  const messages = list(value, "the prompt").map(messageOf);
  return messages.length > 0 ? messages : [{ role: "user", content: [{ type: "text", value: "" }], prefix: false }];
}

export function messageOf(value: unknown): ConvertedMessage {
  const from = dictionary(value, "a message");
  const content = contentOf(required(from, "content", "a message"));
  const { prefix } = from;
  return { role: oneOf(required(from, "role", "a message"), ROLES, "role"), content, prefix: Boolean(prefix ?? false) };
}

function contentOf(value: unknown): LanguageModelMessageContent[] {
  if (!isList(value)) return [{ type: "text", value: text(value) }];
  const parts = list(value, "content").map((part) => {
    const from = dictionary(part, "a part of a message");
    const type = oneOf(required(from, "type", "a part of a message"), TYPES, "type of a part");
    const given = required(from, "value", "a part of a message");
    return { type, value: type === "text" && !isPlatformObject(given) ? text(given) : given };
  });
  return parts.length > 0 ? parts : [{ type: "text", value: "" }];
}

/** Objects of the browser keep their identity where Web IDL makes strings of all others. */
export function isPlatformObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const tag = Object.prototype.toString.call(value);
  return (
    tag !== "[object Object]" &&
    tag !== "[object Array]" &&
    typeof (value as { toJSON?: unknown }).toJSON !== "function"
  );
}

function expectedOf(value: unknown, what: string): LanguageModelExpected[] {
  if (value === undefined) return [];
  return list(value, what).map((one) => {
    const from = dictionary(one, `a member of ${what}`);
    const languages = from["languages"] === undefined ? undefined : list(from["languages"], "languages").map(text);
    const type = oneOf(required(from, "type", `a member of ${what}`), TYPES, "type");
    return { type, ...(languages ? { languages } : {}) };
  });
}

/** With canonical language tags, each once; malformed ones are a RangeError. */
function canonical(expected: LanguageModelExpected[]): LanguageModelExpected[] {
  return expected.map(({ type, languages }) => {
    if (languages === undefined) return { type };
    return { type, languages: [...new Set(languages.flatMap((tag) => Intl.getCanonicalLocales(tag)))] };
  });
}

/**
 * Converts the options that `create` and `availability` have in common, member by member in the order of Web IDL. What is well formed and
 * wrong is found by `checkedOptions`, after all other members were converted.
 */
export function coreOptions(from: Record<string, unknown>, hasRaw = false): CoreOptions {
  const expectedInputs = expectedOf(from["expectedInputs"], "expectedInputs");
  const expectedOutputs = expectedOf(from["expectedOutputs"], "expectedOutputs");
  const { samplingMode } = from;
  const mode = samplingMode === undefined ? undefined : oneOf(samplingMode, MODES, "samplingMode");
  const temperature = hasRaw ? numberOf(from["temperature"], "temperature") : undefined;
  const tools = toolsOf(from["tools"]);
  const topK = hasRaw ? numberOf(from["topK"], "topK") : undefined;
  const raw = rawSampling(topK, temperature);
  if (raw && mode !== undefined) throw new TypeError("samplingMode excludes topK and temperature");
  return {
    samplingMode: mode ?? (raw ? null : "balanced"),
    expectedInputs,
    expectedOutputs,
    tools,
    ...(raw ? { raw } : {}),
  };
}

/** Options that were converted, with canonical language tags; raw sampling parameters within their limits. */
export function checkedOptions(options: CoreOptions): CoreOptions {
  const { tools, raw } = options;
  const isTold = options.expectedOutputs.some(({ type }) => type === "tool-call");
  if (tools.length > 0 && !isTold) throw new TypeError("tools need { type: 'tool-call' } in expectedOutputs");
  if (new Set(tools.map(({ name }) => name)).size < tools.length) throw new TypeError("two tools have the same name");
  return {
    ...options,
    expectedInputs: canonical(options.expectedInputs),
    expectedOutputs: canonical(options.expectedOutputs),
    ...(raw ? { raw: limited(raw) } : {}),
  };
}

function toolsOf(value: unknown): LanguageModelTool[] {
  if (value === undefined) return [];
  return list(value, "tools").map(toolOf);
}

function toolOf(value: unknown): LanguageModelTool {
  const from = dictionary(value, "a tool");
  const description = text(required(from, "description", "a tool"));
  const { execute } = from;
  if (execute !== undefined && typeof execute !== "function") throw new TypeError("execute of a tool is no function");
  const schema = required(from, "inputSchema", "a tool");
  const name = text(required(from, "name", "a tool"));
  if (name === "" || description === "") throw new TypeError("a tool needs a name and a description");
  const run = execute as LanguageModelTool["execute"];
  return { name, description, inputSchema: schemaOf(schema, name), ...(run ? { execute: run } : {}) };
}

/**
 * A copy of a tool's schema; what getters and `toJSON` throw goes to the page. The members that every schema of a tool may have are read
 * from the object itself, whether they would be written or not, and from the copy, which the model is shown.
 */
function schemaOf(value: unknown, tool: string): object {
  if (typeof value !== "object" || value === null) throw new TypeError(`inputSchema of ${tool} is not an object`);
  checkSchema(value, tool);
  // Undefined where `toJSON` returns nothing.
  const json = JSON.stringify(value) as string | undefined;
  const schema = json === undefined ? undefined : (JSON.parse(json) as unknown);
  if (!isDictionary(schema)) throw new TypeError(`inputSchema of ${tool} cannot be written as a JSON object`);
  checkSchema(schema, tool);
  return schema;
}

function checkSchema(schema: object, tool: string): void {
  const { type, properties, required: names } = schema as Record<string, unknown>;
  if (type !== "object") throw new TypeError(`inputSchema of ${tool} must have the type object`);
  if (properties !== undefined && !isDictionary(properties)) {
    throw new TypeError(`properties of ${tool} are not an object`);
  }
  if (names !== undefined && !Array.isArray(names)) throw new TypeError(`required of ${tool} is not a list`);
}

const isDictionary = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a language has a name: tags that are well formed and mean nothing are not supported. */
function isLanguage(tag: string): boolean {
  try {
    const { language } = new Intl.Locale(tag);
    return new Intl.DisplayNames("en", { type: "language" }).of(language) !== language;
  } catch {
    return false;
  }
}

/** Whether what a page expects can be had at all. */
export function isSupported({
  expectedInputs,
  expectedOutputs,
}: Pick<CoreOptions, "expectedInputs" | "expectedOutputs">) {
  const languages = [...expectedInputs, ...expectedOutputs].flatMap((one) => one.languages ?? []);
  const outputs = expectedOutputs.every(({ type }) => type === "text" || type === "tool-call");
  return outputs && languages.every(isLanguage);
}
