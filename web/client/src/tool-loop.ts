// The tool loop: calls of tools that have an `execute` are run, and their results shown to the model, until it replies without a call.

import { RullamaError } from "./errors.js";
import { withReply } from "./prefix.js";
import type { GenerateEvent, GenerateOptions, Message, Tool, ToolCall, Usage } from "./types.js";

/** Rounds of calls before the loop gives up. */
const MOST_ROUNDS = 8;

type Chat = (messages: Message[], options: GenerateOptions) => AsyncIterable<GenerateEvent>;

export const hasExecutables = ({ tools }: GenerateOptions): boolean =>
  tools?.some(({ execute }) => execute !== undefined) ?? false;

/** Tools as the engine is told of them: functions cannot be posted to a worker. */
export function plainTools(tools: Tool[]): Tool[] {
  return tools.map(({ type, function: declared }) => ({ type, function: declared }));
}

/** Replies with as many rounds as tools are called; one `done` at the end, with the tokens of all rounds. */
export async function* withTools(
  chat: Chat,
  messages: Message[],
  options: GenerateOptions,
): AsyncGenerator<GenerateEvent, void, void> {
  const { tools = [], maxToolRounds = MOST_ROUNDS, confirmToolCall, signal } = options;
  if (!Number.isInteger(maxToolRounds) || maxToolRounds < 1) {
    throw new RullamaError("bad_options", `maxToolRounds must be a whole number from 1, not ${maxToolRounds}`);
  }
  let history = [...messages];
  let before: Usage | undefined;
  for (let round = 1; ; round++) {
    const reply = { text: "", thinking: "" };
    const calls: ToolCall[] = [];
    let end: Extract<GenerateEvent, { type: "done" }> | undefined;
    // The call that must be made is the first one: the model may then go on as it likes.
    const choice = round > 1 && options.toolChoice !== undefined ? { toolChoice: "auto" as const } : {};
    for await (const event of chat(history, { ...options, ...choice, tools: plainTools(tools) })) {
      if (event.type === "done") end = event;
      else yield event;
      if (event.type === "text") reply.text += event.text;
      else if (event.type === "thinking") reply.thinking += event.text;
      else if (event.type === "tool_call") calls.push(event.call);
    }
    if (!end) throw new RullamaError("internal", "a reply ended without an end");
    before = before ? sum(before, end.usage) : end.usage;
    const runs = calls.map(({ name }) => tools.find((tool) => tool.function.name === name));
    // A tool without `execute` is the caller's to run, and so is what goes beyond the limit.
    const isOurs = calls.length > 0 && runs.every((tool) => tool === undefined || tool.execute !== undefined);
    if (!isOurs || end.finish !== "stop" || round > maxToolRounds || signal?.aborted) {
      yield { ...end, usage: before };
      return;
    }
    history = withReply(history, {
      role: "assistant",
      content: reply.text,
      toolCalls: calls,
      ...(reply.thinking === "" ? {} : { thinking: reply.thinking }),
    });
    for (const [index, call] of calls.entries()) {
      const { content, isError } = await run(call, runs[index], confirmToolCall, signal);
      history.push({ role: "tool", toolName: call.name, content });
      yield { type: "tool_result", call, content, isError };
    }
  }
}

/** What a tool says; failures and refusals are told to the model, which may try something else. */
async function run(
  call: ToolCall,
  tool: Tool | undefined,
  confirm: GenerateOptions["confirmToolCall"],
  signal: AbortSignal | undefined,
): Promise<{ content: string; isError: boolean }> {
  const failed = (error: string) => ({ content: JSON.stringify({ error }), isError: true });
  if (!tool?.execute) return failed(`there is no tool called ${call.name}`);
  try {
    if (confirm && !(await confirm(call))) return failed("the user did not allow this call");
    const result = await tool.execute(call.arguments, signal ? { signal } : {});
    return { content: typeof result === "string" ? result : (JSON.stringify(result) ?? "null"), isError: false };
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
}

function sum(a: Usage, b: Usage): Usage {
  return {
    ...b,
    promptTokens: a.promptTokens + b.promptTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    answerTokens: a.answerTokens + b.answerTokens,
    timeToFirstToken: a.timeToFirstToken,
  };
}
