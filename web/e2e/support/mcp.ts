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

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return parts.length > 0 ? JSON.parse(Buffer.concat(parts).toString()) : undefined;
}

/** Starts a server; with a token, it answers nobody else. `cors: false` leaves out what browsers ask for. */
export async function startMcp({
  token,
  cors = true,
}: { token?: string; cors?: boolean } = {}): Promise<McpTestServer> {
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
    const body = await bodyOf(request);
    let transport = sessions.get(String(request.headers["mcp-session-id"] ?? ""));
    if (!transport && isInitializeRequest(body)) {
      const made = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => void sessions.set(id, made),
      });
      await withTools().connect(made as Parameters<McpServer["connect"]>[0]);
      transport = made;
    }
    if (!transport) return void response.writeHead(404).end();
    await transport.handleRequest(request, response, body);
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
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
