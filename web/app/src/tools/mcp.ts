// Tools of MCP servers that the user added, over streamable HTTP. Fetched with the first server: the protocol's own SDK is large.

// First: schemas are made when the SDK is imported.
import "./jitless.js";
import { Client, type ClientOptions } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { ErrorCode, McpError as ProtocolError } from "@modelcontextprotocol/sdk/types.js";
import type { JsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/types.js";

/** A server, as the user added it. */
export interface McpServer {
  id: string;
  name: string;
  url: string;
  /** A bearer token, sent to this server alone. */
  token?: string;
}

/** A tool that a server offers. */
export interface McpTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

export type McpProblem = "unreachable" | "unauthorized" | "refused" | "timeout";

/** Why a server cannot be used. */
export class McpError extends Error {
  override name = "McpError";

  constructor(
    readonly reason: McpProblem,
    readonly detail: string,
  ) {
    super(detail);
  }
}

/** Servers and tools are not trusted: more than this is not read. */
/** How long connecting, and then each page of the list of tools, may take. */
export const LIST_LIMIT = 15_000;
const MOST_TOOLS = 64;
const MOST_PAGES = 10;
const MOST_DESCRIPTION = 2000;

const opened = new Map<string, Promise<Client>>();
const keyOf = ({ url, token }: McpServer) => JSON.stringify([url, token]);

function unchecked<T>(): JsonSchemaValidator<T> {
  return (input) => ({ valid: true, data: input as T, errorMessage: undefined });
}

async function connect({ url, token }: McpServer, timeout: number): Promise<Client> {
  // Results are shown to the model as text, so their schemas need not be checked.
  const jsonSchemaValidator: NonNullable<ClientOptions["jsonSchemaValidator"]> = { getValidator: unchecked };
  const client = new Client({ name: "rullama", version: "1" }, { jsonSchemaValidator });
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: {
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      ...(token ? { headers: { authorization: `Bearer ${token}` } } : {}),
    },
  });
  // Its type allows an undefined session where the interface does not.
  await client.connect(transport as Parameters<Client["connect"]>[0], { timeout });
  return client;
}

/** Runs something with a server's client; one whose session has ended is opened again, once. */
async function using<T>(
  server: McpServer,
  work: (client: Client) => Promise<T>,
  limit: number = LIST_LIMIT,
): Promise<T> {
  const key = keyOf(server);
  const known = opened.has(key);
  const connecting = opened.get(key) ?? connect(server, limit);
  opened.set(key, connecting);
  try {
    return await work(await connecting);
  } catch (error) {
    // What did not answer may have forgotten the session, too.
    const gone = error instanceof StreamableHTTPError || error instanceof TypeError || isTimeout(error);
    if (gone) {
      opened.delete(key);
      void connecting.then((client) => client.close()).catch(() => {});
    } else await connecting.catch(() => opened.delete(key));
    // Servers answer 404 to sessions that they have forgotten.
    if (known && error instanceof StreamableHTTPError && error.code === 404) return using(server, work, limit);
    throw problemOf(error);
  }
}

const isTimeout = (error: unknown) =>
  error instanceof ProtocolError && error.code === (ErrorCode.RequestTimeout as number);

function problemOf(error: unknown): unknown {
  const detail = error instanceof Error ? error.message : String(error);
  if (error instanceof UnauthorizedError) return new McpError("unauthorized", detail);
  if (error instanceof StreamableHTTPError) {
    return new McpError(error.code === 401 || error.code === 403 ? "unauthorized" : "refused", detail);
  }
  if (isTimeout(error)) return new McpError("timeout", detail);
  return error instanceof TypeError ? new McpError("unreachable", detail) : error;
}

/** The tools that a server offers. Connecting to it and each page of the list may take `limit` milliseconds. */
export function listTools(
  server: McpServer,
  { signal, limit = LIST_LIMIT }: { signal?: AbortSignal; limit?: number } = {},
): Promise<McpTool[]> {
  const options = { timeout: limit, ...(signal ? { signal } : {}) };
  const list = async (client: Client) => {
    const found: McpTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MOST_PAGES && found.length < MOST_TOOLS; page++) {
      const { tools, nextCursor } = await client.listTools(cursor ? { cursor } : {}, options);
      for (const { name, description = "", inputSchema } of tools) {
        found.push({ name, description: description.slice(0, MOST_DESCRIPTION), parameters: { ...inputSchema } });
      }
      if (!nextCursor) break;
      cursor = nextCursor;
    }
    return found.slice(0, MOST_TOOLS);
  };
  return using(server, list, limit);
}

/** Calls a tool; gives its text. Addresses, images and other things in a result are named, never fetched. */
export function callTool(
  server: McpServer,
  name: string,
  input: Record<string, unknown>,
  { signal, timeout }: { signal?: AbortSignal; timeout: number },
): Promise<string> {
  return using(server, async (client) => {
    const options = { timeout, ...(signal ? { signal } : {}) };
    const result = await client.callTool({ name, arguments: input }, undefined, options);
    const content = (Array.isArray(result.content) ? result.content : []) as { type: string; text?: unknown }[];
    const parts = content.map((one) => (typeof one.text === "string" ? one.text : `[${one.type}]`));
    const { structuredContent } = result;
    const text =
      parts.length > 0 || structuredContent === undefined ? parts.join("\n") : JSON.stringify(structuredContent);
    if (result.isError) throw new Error(text || "the tool failed");
    return text;
  });
}
