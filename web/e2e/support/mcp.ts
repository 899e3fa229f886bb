// A real MCP server, made with the protocol's SDK: streamable HTTP with sessions, as pages of other origins reach it.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

export interface McpTestServer {
  url: string;
  /** Headers of each request. */
  readonly seen: IncomingMessage["headers"][];
  /** Forgets all sessions, as a restart does. */
  forget(): void;
  close(): Promise<void>;
}

function withTools(): McpServer {
  const server = new McpServer({ name: "test", version: "1" });
  const echo = { description: "Says it again", inputSchema: { text: z.string() }, outputSchema: { said: z.string() } };
  server.registerTool("echo", echo, ({ text }) => ({
    content: [{ type: "text", text: `echo: ${text}` }],
    structuredContent: { said: text },
  }));
  server.registerTool("fail", { description: "Fails" }, () => {
    throw new Error("it broke");
  });
  return server;
}

function withTool({ name, description, field, fieldDescription, result }: GivenTool): McpServer {
  const server = new McpServer({ name: "test", version: "1" });
  const inputSchema = { [field]: z.string().describe(fieldDescription) };
  server.registerTool(name, { description, inputSchema }, () => ({ content: [{ type: "text", text: result }] }));
  return server;
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return parts.length > 0 ? JSON.parse(Buffer.concat(parts).toString()) : undefined;
}

interface GivenTool {
  name: string;
  description: string;
  field: string;
  fieldDescription: string;
  result: string;
}

export interface McpTestOptions {
  /** It answers nobody else. */
  token?: string;
  /** Without it, what browsers ask for is left out. */
  cors?: boolean;
  port?: number;
  /** Takes requests and never answers. */
  silent?: boolean;
  /** The only tool, which takes a text and gives one. */
  tool?: GivenTool;
}

/** Starts a server. */
export async function startMcp({
  token,
  cors = true,
  port = 0,
  silent = false,
  tool,
}: McpTestOptions = {}): Promise<McpTestServer> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const seen: IncomingMessage["headers"][] = [];
  const http = createServer(async (request, response) => {
    seen.push(request.headers);
    if (cors) {
      response.setHeader("access-control-allow-origin", "*");
      response.setHeader("access-control-allow-headers", "*, authorization");
      response.setHeader("access-control-allow-methods", "GET, POST, DELETE");
      response.setHeader("access-control-expose-headers", "mcp-session-id");
      response.setHeader("cross-origin-resource-policy", "cross-origin");
    }
    if (request.method === "OPTIONS") return void response.writeHead(204).end();
    if (token && request.headers.authorization !== `Bearer ${token}`) return void response.writeHead(401).end();
    if (silent) return;
    const body = await bodyOf(request);
    let transport = sessions.get(String(request.headers["mcp-session-id"] ?? ""));
    if (!transport && isInitializeRequest(body)) {
      const made = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => void sessions.set(id, made),
      });
      await (tool ? withTool(tool) : withTools()).connect(made as Parameters<McpServer["connect"]>[0]);
      transport = made;
    }
    if (!transport) return void response.writeHead(404).end();
    await transport.handleRequest(request, response, body);
  });
  await new Promise<void>((resolve) => http.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    seen,
    forget: () => sessions.clear(),
    async close() {
      const closed = new Promise((resolve) => http.close(resolve));
      http.closeAllConnections();
      await closed;
    },
  };
}
