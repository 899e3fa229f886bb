// Requests to a server that runs models, with failures as this package's errors.

import { CancelledError, NetworkError, NotFoundError, RullamaError } from "../errors.js";

export interface ServerOptions {
  /** Sent as `Authorization: Bearer …`. */
  apiKey?: string;
  headers?: Record<string, string>;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
}

/** A server by its base address. */
export class Server {
  constructor(
    readonly url: string,
    private readonly options: ServerOptions,
  ) {}

  get(path: string, signal?: AbortSignal): Promise<unknown> {
    return this.json(path, { method: "GET" }, signal);
  }

  post(path: string, body: unknown, signal?: AbortSignal): Promise<unknown> {
    return this.json(path, this.posted(body), signal);
  }

  /** The lines of a streamed answer. */
  async *lines(path: string, body: unknown, signal?: AbortSignal): AsyncGenerator<string, void, void> {
    const response = await this.send(path, this.posted(body), signal);
    if (!response.body) throw new NetworkError(`${this.url}${path} answered without a body`, response.status);
    const reader = response.body
      .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
      .getReader();
    let rest = "";
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (rest + value).split(/\r?\n/u);
        rest = lines.pop() ?? "";
        yield* lines;
      }
      if (rest !== "") yield rest;
    } catch (error) {
      throw this.broken(path, error, signal);
    } finally {
      await reader.cancel().catch(() => {});
    }
  }

  private posted(body: unknown): RequestInit {
    return { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  }

  private async json(path: string, init: RequestInit, signal?: AbortSignal): Promise<unknown> {
    const response = await this.send(path, init, signal);
    try {
      return await response.json();
    } catch (error) {
      throw signal?.aborted
        ? new CancelledError()
        : new NetworkError(`${this.url}${path} sent no JSON`, response.status, { cause: error });
    }
  }

  private async send(path: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
    const { apiKey, headers, fetch: own } = this.options;
    const request: RequestInit = {
      ...init,
      headers: {
        ...(init.headers as Record<string, string> | undefined),
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
        ...headers,
      },
      ...(signal ? { signal } : {}),
    };
    let response: Response;
    try {
      response = await (own ?? fetch)(`${this.url}${path}`, request);
    } catch (error) {
      throw this.broken(path, error, signal);
    }
    if (response.ok) return response;
    throw failure(`${this.url}${path}`, response.status, await response.text().catch(() => ""));
  }

  private broken(path: string, error: unknown, signal?: AbortSignal): RullamaError {
    if (signal?.aborted) return new CancelledError("cancelled", { cause: error });
    if (error instanceof RullamaError) return error;
    const advice = "is it running, and does it let this page connect (CORS)?";
    return new NetworkError(`${this.url}${path} could not be reached: ${advice}`, undefined, { cause: error });
  }
}

function failure(url: string, status: number, body: string): RullamaError {
  const message = messageOf(body) ?? `${url} answered with status ${status}`;
  if (status === 404) return new NotFoundError(message);
  if (status === 400 || status === 413 || status === 422) {
    return new RullamaError(
      /context (?:size|length|window)|too long/iu.test(message) ? "context_full" : "bad_options",
      message,
    );
  }
  return new NetworkError(message, status);
}

/** What the server says: `{ error }` or `{ error: { message } }`. */
export function messageOf(body: string): string | undefined {
  try {
    const { error, message } = JSON.parse(body) as { error?: unknown; message?: unknown };
    if (typeof error === "string") return error;
    const said = (error as { message?: unknown } | undefined)?.message ?? message;
    return typeof said === "string" ? said : undefined;
  } catch {
    return undefined;
  }
}
