// One file of the test server: byte ranges, ETag, HEAD; and all the ways in which servers and networks go wrong.
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Body } from "./body.ts";

const PIECE = 1 << 20;

/** One request as it was answered: bytes from `start` to before `end` were asked for, `sent` of them left. */
export interface FileRequest {
  method: string;
  range?: string;
  start: number;
  end: number;
  sent: number;
}

export class ServedFile {
  readonly requests: FileRequest[] = [];
  etag: string | null = '"one"';
  lastModified: string | null = null;
  /** Answer ranges; otherwise the whole file is sent with status 200. */
  ranges = true;
  /** An HTML page instead of the file, with status 200. */
  html = false;
  /** Fail the next requests with these statuses. */
  failures: number[] = [];
  /** Break the connection of the next answers after so many bytes each. */
  cuts: number[] = [];
  /** Flip a bit of the byte at this offset. */
  corruptAt: number | null = null;
  /** Say `Content-Range` (which other origins only see where it is exposed). */
  sayRange = true;
  private readonly open = new Set<ServerResponse>();
  private held = Infinity;
  private freed: () => void = () => {};
  private free: Promise<void> = Promise.resolve();

  constructor(
    readonly url: string,
    public body: Body,
  ) {}

  /** All bytes that left so far. */
  get sent(): number {
    return this.requests.reduce((sum, request) => sum + request.sent, 0);
  }

  /** No byte at or after `offset` leaves until `release`. */
  hold(offset: number): void {
    this.held = offset;
    this.free = new Promise((resolve) => (this.freed = resolve));
  }

  /** Lets everything pass, or everything before another `offset`. */
  release(offset = Infinity): void {
    const resume = this.freed;
    if (offset === Infinity) this.held = Infinity;
    else this.hold(offset);
    resume();
  }

  /** Breaks all connections on which it is being sent. */
  breakConnections(): void {
    for (const response of this.open) response.destroy();
  }

  /** Another file in its place, with another ETag. */
  replace(body: Body, etag: string): void {
    this.body = body;
    this.etag = etag;
  }

  /** SHA-256 of the file as it should be. */
  async sha256(): Promise<string> {
    const hash = createHash("sha256");
    for (let at = 0; at < this.body.size; at += PIECE) {
      hash.update(await this.body.read(at, Math.min(at + PIECE, this.body.size)));
    }
    return hash.digest("hex");
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const failure = this.failures.shift();
    if (failure !== undefined) {
      response.writeHead(failure, { "content-type": "text/plain" }).end("told to fail");
      return;
    }
    if (this.html) {
      response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>Sign in</title>");
      return;
    }
    const { size } = this.body;
    const range = this.ranges ? parseRange(request.headers.range, size) : "whole";
    if (range === "unsatisfiable") {
      response.writeHead(416, { "content-range": `bytes */${size}` }).end();
      return;
    }
    const [start, end] = range === "whole" ? [0, size] : range;
    const headers: Record<string, string> = {
      "content-type": "application/octet-stream",
      "content-length": `${end - start}`,
    };
    if (this.etag !== null) headers["etag"] = this.etag;
    if (this.lastModified !== null) headers["last-modified"] = this.lastModified;
    if (this.ranges) headers["accept-ranges"] = "bytes";
    if (range !== "whole" && this.sayRange) headers["content-range"] = `bytes ${start}-${end - 1}/${size}`;
    const entry = { method: request.method ?? "GET", range: request.headers.range, start, end, sent: 0 };
    this.requests.push(entry);
    response.writeHead(range === "whole" ? 200 : 206, headers);
    if (request.method === "HEAD") {
      response.end();
      return;
    }
    this.open.add(response);
    response.once("close", () => this.open.delete(response));
    await this.send(entry, response);
  }

  private corrupt(bytes: Uint8Array, at: number): Uint8Array {
    const inside = (this.corruptAt ?? -1) - at;
    if (inside < 0 || inside >= bytes.length) return bytes;
    const changed = bytes.slice();
    changed[inside]! ^= 1;
    return changed;
  }

  private async send(entry: FileRequest, response: ServerResponse): Promise<void> {
    const { body } = this;
    const cut = entry.start + (this.cuts.shift() ?? Infinity);
    const end = Math.min(entry.end, cut);
    response.flushHeaders();
    for (let at = entry.start; at < end && !response.destroyed;) {
      if (at >= this.held) {
        await Promise.race([this.free, either(response, "close")]);
        continue;
      }
      const stop = Math.min(at + PIECE, end, this.held);
      const bytes = this.corrupt(await body.read(at, stop), at);
      entry.sent += bytes.length;
      at = stop;
      if (!response.write(bytes)) await either(response, "drain", "close");
    }
    if (end < entry.end) response.destroy();
    else response.end();
  }
}

/** Waits for the first of some events and listens no longer then. */
async function either(response: ServerResponse, ...events: string[]): Promise<void> {
  const heard = new AbortController();
  await Promise.race(events.map((event) => once(response, event, { signal: heard.signal }).catch(() => {})));
  heard.abort();
}

function parseRange(header: string | undefined, size: number): "whole" | "unsatisfiable" | [number, number] {
  const match = /^bytes=(\d+)-(\d*)$/.exec(header ?? "");
  if (!match) return "whole";
  const start = Number(match[1]);
  const end = match[2] === "" ? size : Math.min(Number(match[2]) + 1, size);
  return start < end ? [start, end] : "unsatisfiable";
}
