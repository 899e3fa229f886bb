// Constraints on a reply: a format, or a tool that must be called. Every interface of this package passes them through here.

import { RullamaError } from "./errors.js";
import type { AnswerRequest } from "./protocol.js";
import { plainTools } from "./tool-loop.js";
import type { Tool } from "./types.js";

/** A grammar that the reply matches as a whole: a regular expression of JavaScript, or llguidance's Lark notation. */
export interface GrammarFormat {
  type: "grammar";
  syntax: "regex" | "lark";
  definition: string;
  /** Flags of a regular expression. */
  flags?: string;
}

/** What a reply must look like: any JSON object, JSON of a schema, text that a regular expression matches as a whole, or a grammar. */
export type ResponseFormat = "json" | Record<string, unknown> | RegExp | GrammarFormat;

/** Whether tools may, must not or must be called, or which one must. */
export type ToolChoice = "auto" | "none" | "required" | { name: string };

/** The options of a request that constrain its reply. */
export interface ConstraintOptions {
  format?: ResponseFormat;
  toolChoice?: ToolChoice;
  tools?: Tool[];
}

/** The constraint of a request, as plain data. */
export interface PlainConstraint {
  format?: "json" | Record<string, unknown> | GrammarFormat;
  /** A call that must be made: of any tool, or of one. */
  toolChoice?: "required" | { name: string };
}

const refused = (message: string) => new RullamaError("bad_options", message);

/** The constraint of a request, in the engine's words. What cannot be enforced is refused: ignoring it would give another reply. */
export function constraintOf(options: ConstraintOptions): Pick<AnswerRequest, "constraint"> {
  const { tools = [], toolChoice = "auto" } = options;
  const format = options.format === null ? undefined : options.format;
  const constraint: PlainConstraint = {
    ...(format === undefined ? {} : { format: plainFormat(format) }),
    ...(toolChoice === "auto" || toolChoice === "none" ? {} : { toolChoice: forced(toolChoice, tools) }),
  };
  return Object.keys(constraint).length === 0 ? {} : { constraint };
}

/** The constraint of text that is continued: there are no tools to call. */
export function textConstraintOf(
  options: ConstraintOptions,
  constrain: typeof constraintOf = constraintOf,
): Pick<AnswerRequest, "constraint"> {
  const { tools = [], toolChoice = "auto" } = options;
  const isForced = toolChoice !== "auto" && toolChoice !== "none";
  if (isForced || (tools.length > 0 && toolChoice !== "none")) throw refused("tools are called in chats: use `chat`");
  return constrain(options);
}

function plainFormat(format: ResponseFormat): NonNullable<PlainConstraint["format"]> {
  if (format === "json") return format;
  if (format instanceof RegExp) {
    return { type: "grammar", syntax: "regex", definition: format.source, flags: format.flags };
  }
  if (typeof format !== "object" || Array.isArray(format)) {
    throw refused("format must be json, a JSON schema, a regular expression or a grammar");
  }
  if (isGrammar(format)) return format;
  try {
    return JSON.parse(JSON.stringify(format)) as Record<string, unknown>;
  } catch (error) {
    throw new RullamaError("bad_options", "the schema in format cannot be written as JSON", { cause: error });
  }
}

/** Whether a format is a grammar; `grammar` is no type of JSON schemas. */
export function isGrammar(format: object): format is GrammarFormat {
  const { type, syntax, definition } = format as Partial<GrammarFormat>;
  if (type !== "grammar") return false;
  if ((syntax === "regex" || syntax === "lark") && typeof definition === "string") return true;
  throw refused("a grammar needs the syntax regex or lark and a definition");
}

function forced(choice: "required" | { name: string }, tools: Tool[]): "required" | { name: string } {
  const names = tools.map(({ function: { name } }) => name);
  if (choice === "required") {
    if (names.length === 0) throw refused("a call is required, but there are no tools");
    return choice;
  }
  if (typeof choice !== "object" || typeof choice?.name !== "string") {
    throw refused("toolChoice must be auto, none, required or the name of a tool");
  }
  if (!names.includes(choice.name)) throw refused(`there is no tool ${choice.name} that could be called`);
  return { name: choice.name };
}

/** The tools that a request shows the model. */
export function toolsOf({ tools, toolChoice }: ConstraintOptions): Tool[] | undefined {
  return toolChoice === "none" || tools === undefined ? undefined : plainTools(tools);
}

/** The constraint of a request to a server, which enforces it by itself. */
export function remoteConstraint({ format, toolChoice }: ConstraintOptions): Pick<AnswerRequest, "constraint"> {
  const isPattern = format instanceof RegExp || (typeof format === "object" && format !== null && isGrammar(format));
  if (isPattern) throw refused("servers take JSON schemas, not regular expressions and grammars");
  const constraint = {
    ...(format === undefined || format === null ? {} : { format }),
    ...(toolChoice === undefined ? {} : { toolChoice }),
  };
  return Object.keys(constraint).length === 0 ? {} : { constraint };
}
