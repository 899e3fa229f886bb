// Fields of OpenAI's, Ollama's and Anthropic's interfaces that would change a reply and are not served here: ignoring them would give another
// reply than was asked for.

import { RullamaError } from "./errors.js";

const FORMAT = "use response_format";

/** Of chat completions, with the formats of llama-server and vLLM. */
export const OPENAI_REFUSED = {
  functions: "use tools",
  function_call: "use tool_choice",
  audio: "only text is generated",
  web_search_options: "declare a tool that searches",
  chat_template: "the model's own template is used",
  json_schema: FORMAT,
  grammar: FORMAT,
  guided_json: FORMAT,
  guided_regex: FORMAT,
  guided_choice: FORMAT,
  guided_grammar: FORMAT,
  structured_outputs: FORMAT,
} as const;

/** Of the older completions. */
export const COMPLETIONS_REFUSED = {
  echo: "put the prompt before the text yourself",
  suffix: "these models do not fill gaps in text",
  logprobs: "use chat completions",
} as const;

const NOT_STORED = "pass the whole conversation as input";

export const RESPONSES_REFUSED = {
  previous_response_id: NOT_STORED,
  conversation: NOT_STORED,
  prompt: "prompts are not stored; pass input",
  background: "leave it out, and wait for the response",
  top_logprobs: "use chat completions",
} as const;

export const ANTHROPIC_REFUSED = { mcp_servers: "declare the servers' tools in tools" } as const;

export const OLLAMA_REFUSED = {
  template: "the model's own template is used; continue text of your own with raw: true",
  suffix: "these models do not fill gaps in text",
  context: "pass the conversation as messages",
} as const;

/** With `raw`: there is no template that would place them. */
export const RAW_REFUSED = { images: "raw prompts are text", system: "raw prompts are text" } as const;

/** Refuses those of the fields that have a value. */
export function refuse(request: object, refused: Record<string, string>): void {
  for (const [name, advice] of Object.entries(refused)) {
    const value = (request as Record<string, unknown>)[name];
    if (value === undefined || value === null || value === false || value === "" || value === 0) continue;
    if (Array.isArray(value) && value.length === 0) continue;
    throw new RullamaError("bad_options", `${name} is not supported: ${advice}`);
  }
}
