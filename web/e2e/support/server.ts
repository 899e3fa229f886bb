// A web server for tests on this machine alone: folders as they are (TypeScript compiled on the way), and files with byte ranges
// that can be told to misbehave and that count what was asked of them.
import { readFile } from "node:fs/promises";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize, sep } from "node:path";
import ts from "typescript";
import type { Body } from "./body.ts";
import { ServedFile } from "./served-file.ts";

const TYPES: Record<string, string> = {
  ".css": "text/css",
  ".gguf": "application/octet-stream",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript",
  ".json": "application/json",
  ".mjs": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
};

/** What was compiled, for all servers: tests start one each. */
const COMPILED = new Map<string, string>();

export interface ServerOptions {
  /** URL prefix (`/`, `/client/`) → folder. The longest prefix wins. */
  folders?: Record<string, string>;
  /** More headers for every answer, e.g. a content security policy. */
  headers?: Record<string, string>;
  /** Send what makes pages cross-origin isolated (default). */
  isolated?: boolean;
  /** Let other origins read, as a CDN does. */
  cors?: boolean;
}

export class TestServer {
  readonly origin: string;
  /** Paths asked for, in order. */
  readonly requests: string[] = [];
  private readonly files = new Map<string, ServedFile>();
  private readonly values = new Map<string, { status: number; type: string; text: string }>();

  private constructor(
    private readonly server: Server,
    private readonly options: ServerOptions,
  ) {
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(options: ServerOptions = {}): Promise<TestServer> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => server.on("error", reject).listen(0, "127.0.0.1", resolve));
    const started = new TestServer(server, options);
    server.on("request", (request, response) => void started.answer(request, response));
    return started;
  }

  /** Serves `body` at `path` with ranges; the result's fields make it misbehave and say what was asked. */
  file(path: string, body: Body): ServedFile {
    const file = new ServedFile(`${this.origin}${path}`, body);
    this.files.set(path, file);
    return file;
  }

  json(path: string, value: unknown, status = 200): void {
    this.values.set(path, { status, type: "application/json", text: JSON.stringify(value) });
  }

  html(path: string, text: string, status = 200): void {
    this.values.set(path, { status, type: "text/html; charset=utf-8", text });
  }

  script(path: string, text: string): void {
    this.values.set(path, { status: 200, type: "text/javascript", text });
  }

  /** Takes back what was set for a path. */
  forget(path: string): void {
    this.files.delete(path);
    this.values.delete(path);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(new URL(request.url ?? "/", this.origin).pathname);
    this.requests.push(path);
    this.setHeaders(response);
    try {
      const file = this.files.get(path);
      const value = this.values.get(path);
      if (request.method === "OPTIONS") response.writeHead(204).end();
      else if (file) await file.answer(request, response);
      else if (value) response.writeHead(value.status, { "content-type": value.type }).end(value.text);
      else await this.answerFolder(path, response);
    } catch {
      if (response.headersSent) response.destroy();
      else response.writeHead(404, { "content-type": "text/html" }).end("<!doctype html><title>Not found</title>");
    }
  }

  private setHeaders(response: ServerResponse): void {
    const { isolated = true, cors = false, headers = {} } = this.options;
    if (isolated) {
      response.setHeader("cross-origin-opener-policy", "same-origin");
      response.setHeader("cross-origin-embedder-policy", "require-corp");
    }
    response.setHeader("cross-origin-resource-policy", cors ? "cross-origin" : "same-origin");
    if (cors) {
      response.setHeader("access-control-allow-origin", "*");
      response.setHeader("access-control-allow-headers", "range");
    }
    response.setHeader("cache-control", "no-cache");
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  }

  private async answerFolder(path: string, response: ServerResponse): Promise<void> {
    const folders = Object.entries(this.options.folders ?? {}).sort(([a], [b]) => b.length - a.length);
    const found = folders.find(([prefix]) => path.startsWith(prefix));
    if (!found) throw new Error("no such folder");
    const [prefix, folder] = found;
    const inside = path.slice(prefix.length);
    const root = normalize(folder + sep);
    const name = normalize(join(root, inside === "" || inside.endsWith("/") ? `${inside}index.html` : inside));
    if (!name.startsWith(root)) throw new Error("outside the folder");
    const type = TYPES[extname(name)] ?? "application/octet-stream";
    const body = await readFile(name).catch((error: unknown) => {
      if (!name.endsWith(".js")) throw error;
      return this.compile(name.replace(/js$/, "ts"));
    });
    response.writeHead(200, { "content-type": type }).end(body);
  }

  /** A `.js` that is not there is made of the `.ts` beside it: browsers run our sources without a build. */
  private async compile(path: string): Promise<string> {
    const known = COMPILED.get(path);
    if (known !== undefined) return known;
    const text = await readFile(path, "utf8");
    const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true };
    const { outputText } = ts.transpileModule(text, { compilerOptions: options, fileName: path });
    COMPILED.set(path, outputText);
    return outputText;
  }
}
