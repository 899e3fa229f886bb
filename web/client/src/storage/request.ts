// One range request, checked: what comes back is the asked part of the file we began with, or a typed error.

import { CancelledError, NetworkError, NotFoundError, RullamaError } from "../errors.js";
import { type Bytes, chunksOf } from "./chunks.js";
import { type Tuning, headersFor } from "./tuning.js";

/** What tells one version of a file from another. Servers of other origins may hide all but the size. */
export interface Version {
  size: number;
  etag?: string;
  lastModified?: string;
}

/** An answer whose bytes can be read. */
export interface RangeAnswer {
  version: Version;
  /** The next bytes, good until the next call; undefined at the end. Rejects when the connection stalls or breaks. */
  next(): Promise<Bytes | undefined>;
  /** Drops the rest. */
  cancel(): void;
}

const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

/**
 * Asks for bytes from `start` to before `end` (or to the file's end). With `known`, another version is refused.
 *
 * The answer's validators are compared instead of sending `If-Range`: that header needs a preflight at other origins, which
 * many file servers do not answer.
 */
export async function requestRange(
  url: string,
  range: { start: number; end?: number },
  known: Version | undefined,
  tuning: Tuning,
  signal: AbortSignal | undefined,
): Promise<RangeAnswer> {
  const guard = new Guard(url, tuning.stallMs, signal);
  try {
    const header = `bytes=${range.start}-${range.end === undefined ? "" : range.end - 1}`;
    // The HTTP cache would keep gigabytes a second time, and lets only one request per address run.
    const headers = { ...headersFor(url, tuning), range: header };
    const send = tuning.fetch ?? fetch;
    const response = await guard.watch(send(url, { headers, cache: "no-store", signal: guard.signal }));
    checkAnswer(url, response, known);
    const version = known ?? (await versionOf(url, response, guard, tuning));
    checkVersion(url, response, range, version);
    if (!response.body) throw new NetworkError(`${url} answered without a body`, response.status);
    const expected = (range.end ?? version.size) - range.start;
    return new Answer(url, version, chunksOf(response.body), expected, guard);
  } catch (error) {
    guard.end();
    throw guard.translate(error);
  }
}

class Answer implements RangeAnswer {
  private got = 0;

  constructor(
    private readonly url: string,
    readonly version: Version,
    private readonly chunk: () => Promise<Bytes | undefined>,
    private readonly expected: number,
    private readonly guard: Guard,
  ) {}

  async next(): Promise<Bytes | undefined> {
    try {
      const chunk = await this.guard.watch(this.chunk());
      this.got += chunk?.length ?? 0;
      if (this.got > this.expected || (!chunk && this.got < this.expected)) {
        throw new NetworkError(`${this.url} sent ${this.got} bytes where ${this.expected} were asked for`);
      }
      if (!chunk) this.guard.end();
      return chunk;
    } catch (error) {
      this.cancel();
      throw this.guard.translate(error);
    }
  }

  cancel(): void {
    this.guard.end();
  }
}

/** Ends a request when the caller wants, or when nothing was heard for too long. */
class Guard {
  private readonly controller = new AbortController();
  private stalled = false;
  private readonly forward = () => this.controller.abort();

  constructor(
    private readonly url: string,
    private readonly stallMs: number,
    private readonly outer: AbortSignal | undefined,
  ) {
    if (outer?.aborted) this.controller.abort();
    outer?.addEventListener("abort", this.forward);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  async watch<T>(step: Promise<T>): Promise<T> {
    const timer = setTimeout(() => {
      this.stalled = true;
      this.controller.abort();
    }, this.stallMs);
    try {
      return await step;
    } finally {
      clearTimeout(timer);
    }
  }

  end(): void {
    this.outer?.removeEventListener("abort", this.forward);
    this.controller.abort();
  }

  translate(error: unknown): unknown {
    if (this.outer?.aborted) return new CancelledError("the download was cancelled", { cause: error });
    if (error instanceof RullamaError) return error;
    if (this.stalled) return new NetworkError(`${this.url} sent nothing for ${this.stallMs / 1000} s`);
    const reason = "this device is offline, the connection broke, or the server does not let this page read (CORS)";
    return new NetworkError(`${this.url} could not be read: ${reason}`, undefined, { cause: error });
  }
}

function checkAnswer(url: string, response: Response, known: Version | undefined): void {
  const { status } = response;
  if (status === 404 || status === 410) throw new NotFoundError(`there is no file at ${url} (status ${status})`);
  if (status === 416 && known) throw changed(url);
  if (status === 401 || status === 403) {
    const advice = "pass { token } or { headers } where it needs a login";
    throw new NetworkError(`${url} may not be read (status ${status}): ${advice}`, status);
  }
  if (!response.ok) throw new NetworkError(`${url} answered with status ${status}`, status);
  if (response.headers.get("content-type")?.startsWith("text/html")) {
    throw new RullamaError(
      "bad_file",
      `${url} is a web page, not a model file; check the address, or sign in there first`,
    );
  }
  if (status !== 206) {
    const hint = "host the file on a server with byte ranges, or download it and open it as a file";
    throw new RullamaError("no_ranges", `the server of ${url} does not answer range requests; ${hint}`);
  }
}

/** The file's version by its first answer. `Content-Range` is hidden at other origins unless exposed; HEAD tells the size then. */
async function versionOf(url: string, response: Response, guard: Guard, tuning: Tuning): Promise<Version> {
  let size = totalOf(response);
  if (size === undefined) {
    const init: RequestInit = { method: "HEAD", headers: headersFor(url, tuning), cache: "no-store" };
    const head = await guard.watch((tuning.fetch ?? fetch)(url, { ...init, signal: guard.signal }));
    const length = head.ok ? Number(head.headers.get("content-length") ?? NaN) : NaN;
    if (!Number.isSafeInteger(length)) {
      throw new RullamaError("no_ranges", `the server of ${url} does not tell the file's size`);
    }
    size = length;
  }
  const etag = response.headers.get("etag") ?? undefined;
  const lastModified = response.headers.get("last-modified") ?? undefined;
  return { size, ...(etag === undefined ? {} : { etag }), ...(lastModified === undefined ? {} : { lastModified }) };
}

function checkVersion(url: string, response: Response, range: { start: number }, known: Version): void {
  const { headers } = response;
  const differs = (now: string | null, then: string | undefined) => now !== null && then !== undefined && now !== then;
  // An ETag decides alone: behind a load balancer, dates differ more easily than contents.
  const tagged = headers.get("etag") !== null && known.etag !== undefined;
  const total = totalOf(response);
  if (
    differs(headers.get("etag"), known.etag) ||
    (!tagged && differs(headers.get("last-modified"), known.lastModified)) ||
    (total !== undefined && total !== known.size)
  ) {
    throw changed(url);
  }
  const start = /^bytes (\d+)-/.exec(headers.get("content-range") ?? "")?.[1];
  if (start !== undefined && Number(start) !== range.start) {
    throw new RullamaError("no_ranges", `the server of ${url} answered another range than the one asked for`);
  }
}

function totalOf(response: Response): number | undefined {
  const total = /\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1];
  return total === undefined ? undefined : Number(total);
}

function changed(url: string): RullamaError {
  return new RullamaError("file_changed", `the file at ${url} was replaced while it was read; load it again`);
}

/** Whether trying again may help. */
export function mayPass(error: unknown): boolean {
  return (
    error instanceof NetworkError && (error.status === undefined || error.status === 206 || PASSING.has(error.status))
  );
}

/**
 * Runs `attempt` until it succeeds. Failures that may pass are tried again after a pause, until `tries` of them came in a row;
 * `attempt` calls `progressed` when it got something, which starts the count anew.
 */
export async function withRetries<T>(
  attempt: (progressed: () => void) => Promise<T>,
  tries: number,
  tuning: Tuning,
  signal: AbortSignal | undefined,
): Promise<T> {
  let failures = 0;
  for (;;) {
    try {
      return await attempt(() => (failures = 0));
    } catch (error) {
      failures += 1;
      if (!mayPass(error) || failures >= tries || signal?.aborted) throw error;
      const pause = Math.min(tuning.backoffMs * 2 ** (failures - 1), tuning.mostBackoffMs);
      await sleep(pause * (0.75 + Math.random() / 2), signal);
    }
  }
}

/** Waits; rejects with `cancelled` when the signal comes first. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new CancelledError());
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
