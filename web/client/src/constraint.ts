// Constraints on a reply: a format, or a tool that must be called. Every interface of this package passes them through here.

import { RullamaError } from "./errors.js";
import type { AnswerRequest } from "./protocol.js";
import { plainTools } from "./tool-loop.js";
import type { Tool } from "./types.js";

/** What a reply must look like: any JSON, JSON of a schema, or text that a regular expression matches. */
export type ResponseFormat = "json" | Record<string, unknown> | RegExp;

/** Whether tools may, must not or must be called, or which one must. */
export type ToolChoice = "auto" | "none" | "required" | { name: string };

/** The options of a request that constrain its reply. */
export interface ConstraintOptions {
  format?: ResponseFormat;
  toolChoice?: ToolChoice;
  tools?: Tool[];
}

/** The constraint of a request, in the engine's words. What cannot be enforced is refused: ignoring it would give another reply. */
export function constraintOf(options: ConstraintOptions): Pick<AnswerRequest, "constraint"> {
  const { format, toolChoice = "auto" } = options;
  if (format !== undefined) {
    const advice = "replies cannot be constrained in a browser yet; ask for it in the prompt and check what comes";
    throw new RullamaError("bad_options", `a reply of a given format is not supported: ${advice}`);
  }
  if (toolChoice !== "auto" && toolChoice !== "none") {
    const which = typeof toolChoice === "string" ? "of any tool" : `of ${toolChoice.name}`;
    throw new RullamaError("bad_options", `a forced call ${which} is not supported: toolChoice must be auto or none`);
  }
  return {};
}

/** The tools that a request shows the model. */
export function toolsOf({ tools, toolChoice }: ConstraintOptions): Tool[] | undefined {
  return toolChoice === "none" || tools === undefined ? undefined : plainTools(tools);
}

/** The constraint of a request to a server, which enforces it by itself. */
export function remoteConstraint({ format, toolChoice }: ConstraintOptions): Pick<AnswerRequest, "constraint"> {
  if (format instanceof RegExp)
    throw new RullamaError("bad_options", "servers take JSON schemas, not regular expressions");
  const constraint = {
    ...(format === undefined ? {} : { format }),
    ...(toolChoice === undefined ? {} : { toolChoice }),
  };
  return Object.keys(constraint).length === 0 ? {} : { constraint };
}
