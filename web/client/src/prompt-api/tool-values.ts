// Results of tools that the page itself called, as it hands them to the session.

import { domError } from "./errors.js";
import { dictionary, required } from "./idl.js";

interface ResultPart {
  type: string;
  value: unknown;
}

/** The members of a dictionary, all of which are required. */
function members<K extends string>(init: unknown, names: readonly K[]): Record<K, unknown> {
  const from = dictionary(init, "the argument");
  return Object.fromEntries(names.map((name) => [name, required(from, name, "the argument")])) as Record<K, unknown>;
}

/** A tool's result: for `{ type: "tool-response", value }`. */
export class LanguageModelToolSuccess {
  readonly callID: string;
  readonly name: string;
  readonly result: ResultPart[];

  constructor(init: { callID: string; name: string; result: ResultPart[] }) {
    const { callID, name, result } = members(init, ["callID", "name", "result"]);
    if (!Array.isArray(result)) throw new TypeError("result is not a list");
    this.callID = String(callID);
    this.name = String(name);
    this.result = result as ResultPart[];
  }
}

/** A tool's failure: for `{ type: "tool-response", value }`. */
export class LanguageModelToolError {
  readonly callID: string;
  readonly name: string;
  readonly errorMessage: string;

  constructor(init: { callID: string; name: string; errorMessage: string }) {
    const { callID, name, errorMessage } = members(init, ["callID", "errorMessage", "name"]);
    this.callID = String(callID);
    this.name = String(name);
    this.errorMessage = String(errorMessage);
  }
}

/** A result as the model reads it. */
export interface ToolResponse {
  name: string;
  text: string;
}

export function toolResponseOf(value: unknown): ToolResponse {
  const { name, result, errorMessage } = (value ?? {}) as Record<string, unknown>;
  if (typeof name !== "string") throw new TypeError("the value of a tool response has no name");
  if (typeof errorMessage === "string") return { name, text: JSON.stringify({ error: errorMessage }) };
  if (!Array.isArray(result)) throw new TypeError("the value of a tool response has neither result nor errorMessage");
  return { name, text: (result as ResultPart[]).map(resultText).join("\n") };
}

function resultText({ type, value }: ResultPart): string {
  if (type !== "text") throw domError("NotSupportedError", `results of type ${type} cannot be shown to the model`);
  if (typeof value === "string") return value;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = undefined;
  }
  if (text === undefined) throw domError("DataError", "the result of a tool cannot be written as JSON");
  return text;
}
