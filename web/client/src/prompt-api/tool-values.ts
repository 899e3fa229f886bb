// Calls of tools that the page itself runs, and their results as it passes them to the session.

import type { ToolCall } from "../types.js";
import { domError } from "./errors.js";
import { dictionary, isPlatformObject, list, required, text } from "./idl.js";
import { asInterface } from "./interface.js";
import type { ToolCallValue } from "./types.js";

const RESULT_TYPES = ["text", "image", "audio", "object"] as const;

/** A part of a tool's result. */
export interface ToolResultContent {
  type: (typeof RESULT_TYPES)[number];
  value: unknown;
}

/** The specification says `callId`, Chrome says `callID`: one of them is required. */
type CallId = { callId: string; callID?: string } | { callId?: string; callID: string };

const WHAT = "the argument";

function callIdOf(from: Record<string, unknown>): string {
  const { callId, callID } = from;
  return text(callId === undefined && callID !== undefined ? callID : required(from, "callId", WHAT));
}

// The classes repeat each other's getters: attributes are own properties of each prototype, and no interface inherits from another.

/** A call of a tool: for `{ type: "tool-call", value }` in a message of role assistant. */
export class LanguageModelToolCall implements ToolCallValue {
  readonly #callId: string;
  readonly #name: string;
  readonly #arguments: object | null;

  constructor(init: CallId & { name: string; arguments?: object }) {
    const from = dictionary(init, WHAT);
    const { arguments: given } = from;
    if (given !== undefined && (typeof given !== "object" || given === null)) {
      throw new TypeError("arguments is not an object");
    }
    this.#arguments = given ?? null;
    this.#callId = callIdOf(from);
    this.#name = text(required(from, "name", WHAT));
  }

  get callId(): string {
    return this.#callId;
  }

  get callID(): string {
    return this.#callId;
  }

  get name(): string {
    return this.#name;
  }

  get arguments(): object | null {
    return this.#arguments;
  }
}

/** A tool's result: for `{ type: "tool-response", value }`. */
export class LanguageModelToolSuccess {
  readonly #callId: string;
  readonly #name: string;
  readonly #result: readonly ToolResultContent[];

  constructor(init: CallId & { name: string; result: ToolResultContent[] }) {
    const from = dictionary(init, WHAT);
    this.#callId = callIdOf(from);
    this.#name = text(required(from, "name", WHAT));
    this.#result = Object.freeze(list(required(from, "result", WHAT), "result").map(resultOf));
  }

  get callId(): string {
    return this.#callId;
  }

  get callID(): string {
    return this.#callId;
  }

  get name(): string {
    return this.#name;
  }

  get result(): readonly ToolResultContent[] {
    return this.#result;
  }
}

/** A tool's failure: for `{ type: "tool-response", value }`. */
export class LanguageModelToolError {
  readonly #callId: string;
  readonly #name: string;
  readonly #errorMessage: string;

  constructor(init: CallId & { name: string; errorMessage: string }) {
    const from = dictionary(init, WHAT);
    this.#callId = callIdOf(from);
    this.#errorMessage = text(required(from, "errorMessage", WHAT));
    this.#name = text(required(from, "name", WHAT));
  }

  get callId(): string {
    return this.#callId;
  }

  get callID(): string {
    return this.#callId;
  }

  get name(): string {
    return this.#name;
  }

  get errorMessage(): string {
    return this.#errorMessage;
  }
}

asInterface(LanguageModelToolCall, "LanguageModelToolCall", 1);
asInterface(LanguageModelToolSuccess, "LanguageModelToolSuccess", 1);
asInterface(LanguageModelToolError, "LanguageModelToolError", 1);

function resultOf(value: unknown): ToolResultContent {
  const from = dictionary(value, "a part of the result");
  const type = text(required(from, "type", "a part of the result")) as ToolResultContent["type"];
  if (!RESULT_TYPES.includes(type)) throw new TypeError(`'${type}' is not a valid type of a result`);
  return { type, value: required(from, "value", "a part of the result") };
}

/** The call in a message: an object of the class above, or a plain one with its members. Its arguments are copied. */
export function toolCallOf(value: unknown): ToolCall {
  const { name, arguments: given } = (value ?? {}) as Record<string, unknown>;
  if (typeof name !== "string") throw new TypeError("the value of a tool call has no name");
  const json = jsonOf(given ?? {});
  const copy = json === undefined ? undefined : (JSON.parse(json) as unknown);
  if (typeof copy !== "object" || copy === null || Array.isArray(copy)) {
    throw domError("DataError", "the arguments of a tool call cannot be written as a JSON object");
  }
  return { name, arguments: copy as Record<string, unknown> };
}

/** A result as the model reads it. */
export interface ToolResponse {
  name: string;
  text: string;
}

/** The result in a message: an object of the classes above, or a plain one with their members. */
export function toolResponseOf(value: unknown): ToolResponse {
  const { name, result, errorMessage } = (value ?? {}) as Record<string, unknown>;
  if (typeof name !== "string") throw new TypeError("the value of a tool response has no name");
  if (typeof errorMessage === "string") return { name, text: JSON.stringify({ error: errorMessage }) };
  if (!Array.isArray(result)) throw new TypeError("the value of a tool response has neither result nor errorMessage");
  return { name, text: (result as ToolResultContent[]).map(resultText).join("\n") };
}

function resultText({ type, value }: ToolResultContent): string {
  if (type !== "text" && type !== "object") {
    throw domError("NotSupportedError", `results of type ${type} cannot be shown to the model`);
  }
  if (typeof value === "string") return value;
  const json = jsonOf(value);
  if (json === undefined) throw domError("DataError", "the result of a tool cannot be written as JSON");
  return json;
}

/** A value as JSON; undefined where it has none. */
function jsonOf(value: unknown): string | undefined {
  try {
    // An image or another object of the browser would be written as an empty object.
    return isPlatformObject(value) ? undefined : JSON.stringify(value);
  } catch {
    return undefined;
  }
}
