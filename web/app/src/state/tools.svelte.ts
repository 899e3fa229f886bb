// Tools that run: which are offered to the model, who may use them, what runs now. Each call is shown, asks for consent the first time,
// has a time limit and can be stopped. Nothing that a model writes is fetched: requests go to servers that the user added, alone.

import type { GenerateOptions, Tool, ToolCall } from "rullama";
import type { Turn } from "../lib/conversation.js";
import type { AppTool } from "../tools/builtin.js";
import { limited } from "../tools/limited.js";
import type { McpTool } from "../tools/mcp.js";
import { t } from "../text/index.svelte.js";
import { chats } from "./chats.svelte.js";
import { model } from "./model.svelte.js";
import { change, settings, type Server } from "./settings.svelte.js";

/** A call that asks for consent or runs. */
export interface Active {
  id: number;
  conversation: string;
  turn: string;
  call: ToolCall;
  phase: "asking" | "running";
}

/** What is known of an MCP server: its tools, or why it has none. */
export type ServerState =
  { phase: "connecting" } | { phase: "ready"; tools: string[] } | { phase: "failed"; problem: string };

export type Consent = "once" | "chat" | "always" | "no";

/** Rounds of calls, at most: then the answer ends. */
export const MOST_ROUNDS = 8;
const MCP_LIMIT = 60_000;
/** Characters of a result, per token of context, and at least and most. */
const RESULT = { perToken: 1, least: 2000, most: 20_000 };

const mcp = () => import("../tools/mcp.js");

/** The app's own tools of these keys, fetched with the first that is used. */
async function ownTools(keys: readonly string[], turn: Turn, path: readonly Turn[]): Promise<AppTool[]> {
  const { plainTools } = await import("../tools/builtin.js");
  if (!keys.includes("documents")) return plainTools(keys);
  const { searchTool } = await import("./document-tool.js");
  return [...plainTools(keys), searchTool(turn, path)];
}

class Tools {
  active = $state<Active[]>([]);
  /** By the ids of servers that have been asked since the page was opened. */
  servers = $state<Record<string, ServerState>>({});
  #next = 1;
  #asked = new Map<number, (consent: Consent) => void>();
  #stops = new Map<number, AbortController>();

  /** Whether the model that is loaded can call tools. */
  get possible(): boolean {
    return model.info?.capabilities?.includes("tools") ?? false;
  }

  /** The tools that a conversation offers. */
  enabled(conversation?: string): string[] {
    return chats().offered(conversation).tools ?? settings.tools;
  }

  async setEnabled(keys: string[]): Promise<void> {
    await chats().offer({ tools: keys });
  }

  of(turn: string): Active[] {
    return this.active.filter((one) => one.turn === turn);
  }

  /** Answers a request for consent. */
  decide(id: number, consent: Consent): void {
    this.#asked.get(id)?.(consent);
  }

  /** Stops a call that runs; the model is told, and goes on. */
  stop(id: number): void {
    this.#stops.get(id)?.abort(new Error("the user stopped this call"));
  }

  /** What an answer is generated with, where its conversation offers tools. */
  async options(
    turn: Turn,
    path: readonly Turn[],
    signal: AbortSignal,
  ): Promise<Pick<GenerateOptions, "tools" | "confirmToolCall" | "maxToolRounds">> {
    const at = { conversation: turn.conversation, turn: turn.id };
    const keys = this.enabled(at.conversation);
    if (!this.possible || keys.length === 0) return {};
    const all = [...(await ownTools(keys, turn, path)), ...(await this.#served(at.conversation, signal))];
    if (all.length === 0) return {};
    const named = unique(all);
    const find = ({ name }: ToolCall) => named.find((one) => one.name === name);
    return {
      tools: named.map((tool) => this.#offered(tool, at)),
      maxToolRounds: MOST_ROUNDS,
      confirmToolCall: (call) => this.#mayRun(call, find(call), at, signal),
    };
  }

  async #mayRun(
    call: ToolCall,
    tool: AppTool | undefined,
    { conversation, turn }: { conversation: string; turn: string },
    signal: AbortSignal,
  ): Promise<boolean> {
    if (!tool || signal.aborted) return false;
    const here = chats().offered(conversation).allowedTools ?? [];
    if (settings.allowedTools.includes(tool.consent) || here.includes(tool.consent)) return true;
    const consent = await this.#ask({ conversation, turn, call: $state.snapshot(call) as ToolCall }, signal);
    if (consent === "always") change({ allowedTools: [...settings.allowedTools, tool.consent] });
    if (consent === "chat") await chats().offer({ allowedTools: [...here, tool.consent] }, conversation);
    return consent !== "no";
  }

  async #ask(about: Omit<Active, "id" | "phase">, signal: AbortSignal): Promise<Consent> {
    const id = this.#next++;
    this.active.push({ id, phase: "asking", ...about });
    try {
      return await new Promise<Consent>((resolve) => {
        this.#asked.set(id, resolve);
        signal.addEventListener("abort", () => resolve("no"), { once: true });
      });
    } finally {
      this.#asked.delete(id);
      this.active = this.active.filter((one) => one.id !== id);
    }
  }

  /** A tool as the engine takes it. */
  #offered(tool: AppTool, at: { conversation: string; turn: string }): Tool {
    const { name, description, parameters } = tool;
    return {
      type: "function",
      function: { name, description, parameters },
      execute: (input, { signal }) => this.#run(tool, input, at, signal),
    };
  }

  async #run(
    tool: AppTool,
    input: Record<string, unknown>,
    at: { conversation: string; turn: string },
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const id = this.#next++;
    const stop = new AbortController();
    this.#stops.set(id, stop);
    this.active.push({ id, ...at, call: { name: tool.name, arguments: input }, phase: "running" });
    try {
      const all = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
      const result = await limited((by) => tool.run(input, by), tool.limit, all);
      return shortened(typeof result === "string" ? result : (JSON.stringify(result) ?? "null"));
    } finally {
      this.#stops.delete(id);
      this.active = this.active.filter((one) => one.id !== id);
    }
  }

  /** The servers that a conversation offers. */
  served(conversation?: string): Server[] {
    const keys = this.enabled(conversation);
    return this.possible ? settings.servers.filter(({ id }) => keys.includes(`mcp:${id}`)) : [];
  }

  /** The tools of a conversation's servers; one that does not answer offers none, and the chat says why. */
  async #served(conversation: string, signal: AbortSignal): Promise<AppTool[]> {
    const wanted = $state.snapshot(this.served(conversation));
    if (wanted.length === 0) return [];
    const { callTool } = await mcp();
    const lists = await Promise.all(
      wanted.map(async (server) => {
        const found = await this.#list(server, signal);
        return found.map(({ name, description, parameters }): AppTool => {
          const run = (input: Record<string, unknown>, by: AbortSignal) =>
            callTool(server, name, input, { signal: by, timeout: MCP_LIMIT }).catch(async (error: unknown) => {
              throw new Error(await this.problem(error, server));
            });
          const [key, consent] = [`mcp:${server.id}`, `mcp:${server.id}/${name}`];
          return { key, consent, name, description, parameters, limit: MCP_LIMIT, run };
        });
      }),
    );
    return lists.flat();
  }

  /** Connects to a server and asks for its tools; `servers` says what came of it. */
  async look(server: Server): Promise<void> {
    await this.#list($state.snapshot(server));
  }

  async #list(server: Server, signal?: AbortSignal): Promise<McpTool[]> {
    const before = this.servers[server.id];
    this.servers[server.id] = { phase: "connecting" };
    try {
      const { LIST_LIMIT, listTools } = await mcp();
      // Connecting has a limit, but no signal.
      const found = await limited(
        (by) => listTools(server, { signal: by }),
        3 * LIST_LIMIT,
        signal ?? new AbortController().signal,
      );
      this.servers[server.id] = { phase: "ready", tools: found.map(({ name }) => name) };
      return found;
    } catch (error) {
      // Somebody stopped the answer: that says nothing about the server.
      if (signal?.aborted && before) this.servers[server.id] = before;
      else if (signal?.aborted) delete this.servers[server.id];
      else this.servers[server.id] = { phase: "failed", problem: await this.problem(error, server) };
      return [];
    }
  }

  /** What is wrong with a server, for a person. */
  async problem(error: unknown, { url }: Pick<Server, "url">): Promise<string> {
    const { LIST_LIMIT, McpError } = await mcp();
    const origin = new URL(url).origin;
    if (!(error instanceof McpError)) {
      const reason = error instanceof Error ? error.message : String(error);
      return t("mcp.refused", { origin, reason });
    }
    if (error.reason === "unreachable") return t("mcp.unreachable", { origin, page: location.origin });
    if (error.reason === "timeout") return t("mcp.timeout", { origin, seconds: LIST_LIMIT / 1000 });
    return error.reason === "unauthorized"
      ? t("mcp.unauthorized", { origin })
      : t("mcp.refused", { origin, reason: error.detail });
  }
}

/** Names that models can write and that are unique; servers choose theirs freely. */
export function unique(all: readonly AppTool[]): AppTool[] {
  const taken = new Set<string>();
  return all.map((tool) => {
    const clean = tool.name.replace(/[^\w-]+/gu, "_").slice(0, 60) || "tool";
    let name = clean;
    for (let number = 2; taken.has(name); number++) name = `${clean}_${number}`;
    taken.add(name);
    return { ...tool, name };
  });
}

/** A result that leaves room for the answer. */
function shortened(text: string): string {
  const most = Math.min(RESULT.most, Math.max(RESULT.least, (model.info?.context ?? 0) * RESULT.perToken));
  return text.length <= most ? text : `${text.slice(0, most)}\n[${text.length - most} more characters were left out]`;
}

export const tools = new Tools();
