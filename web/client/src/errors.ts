// Failures with a stable code. They cross to and from a worker as plain data: `pack` there, `unpack` here.

import type { ErrorCode, WebGpuAbsence } from "./types.js";

/** Every failure of this package; `code` says which kind it is. */
export class RullamaError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** No model of this name here or at the host; `similar` lists names that come close. */
export class NotFoundError extends RullamaError {
  readonly similar: string[];

  constructor(message: string, similar: string[] = [], options?: ErrorOptions) {
    super("not_found", message, options);
    this.similar = similar;
  }
}

/** The server could not be reached, or broke off, more often than we try; `status` is its last answer, where it gave one. */
export class NetworkError extends RullamaError {
  readonly status?: number;

  constructor(message: string, status?: number, options?: ErrorOptions) {
    super("network", message, options);
    this.status = status;
  }
}

/** This browser's storage has no room: bytes `needed` and bytes `free`. */
export class QuotaError extends RullamaError {
  readonly needed: number;
  readonly free: number;

  constructor(message: string, needed: number, free: number, options?: ErrorOptions) {
    super("quota", message, options);
    this.needed = needed;
    this.free = free;
  }
}

/** The bytes are not those that were promised. */
export class ChecksumError extends RullamaError {
  readonly expected: string;
  readonly actual: string;

  constructor(message: string, expected: string, actual: string, options?: ErrorOptions) {
    super("checksum", message, options);
    this.expected = expected;
    this.actual = actual;
  }
}

/** What was asked for was cancelled, by a signal or by closing. */
export class CancelledError extends RullamaError {
  constructor(message = "cancelled", options?: ErrorOptions) {
    super("cancelled", message, options);
  }
}

/** There is no WebGPU here; the message says what to do about it, and `why` which of the known causes it is. */
export class NoWebGpuError extends RullamaError {
  readonly why?: WebGpuAbsence;

  constructor(message: string, why?: WebGpuAbsence, options?: ErrorOptions) {
    super("no_webgpu", message, options);
    this.why = why;
  }
}

/** The GPU went away: a driver's reset, a sleeping laptop. The model must be loaded again. */
export class DeviceLostError extends RullamaError {
  constructor(message: string, options?: ErrorOptions) {
    super("device_lost", message, options);
  }
}

/** The model, session or engine was freed before. */
export class FreedError extends RullamaError {
  constructor(message: string, options?: ErrorOptions) {
    super("freed", message, options);
  }
}

/** The tab that ran the model was closed; loading it again and repeating the call helps. */
export class InterruptedError extends RullamaError {
  readonly canRetry = true;

  constructor(message: string, options?: ErrorOptions) {
    super("interrupted", message, options);
  }
}

/** The adapter cannot be used; `misfits` lists what does not fit the model, one sentence each. */
export class BadAdapterError extends RullamaError {
  readonly misfits: string[];

  constructor(message: string, misfits: string[] = [], options?: ErrorOptions) {
    super("bad_adapter", message, options);
    this.misfits = misfits;
  }
}

/** The data cannot be trained on; `line` is the number of the first line that is wrong, where one is. */
export class BadDataError extends RullamaError {
  readonly line?: number;

  constructor(message: string, line?: number, options?: ErrorOptions) {
    super("bad_data", message, options);
    this.line = line;
  }
}

/** Any failure as one of ours. What the wasm throws has a code and no class. */
export function rullamaError(error: unknown): RullamaError {
  if (error instanceof RullamaError) return error;
  const { code, fields } = (error ?? {}) as { code?: unknown; fields?: unknown };
  if (error instanceof Error && typeof code === "string") {
    const given = typeof fields === "string" ? (JSON.parse(fields) as PackedError["fields"]) : {};
    return unpack({ code: code as ErrorCode, message: error.message, fields: given });
  }
  return unpack(pack(error));
}

/** An error as plain data that `postMessage` takes everywhere. */
export interface PackedError {
  code: ErrorCode;
  message: string;
  /** Fields of the subclass. */
  fields: Record<string, unknown>;
  cause?: string;
}

/** Makes any failure plain data; what is not ours becomes `internal`. */
export function pack(error: unknown): PackedError {
  if (error instanceof RullamaError) {
    const { code, message, cause, name: _name, stack: _stack, ...fields } = error;
    return { code, message, fields, ...(cause === undefined ? {} : { cause: String(cause) }) };
  }
  if (error instanceof DOMException && error.name === "AbortError") {
    return { code: "cancelled", message: "cancelled", fields: {} };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { code: "internal", message, fields: {}, cause: String(error) };
}

/** The error that `pack` took apart, of the same class. */
export function unpack(packed: PackedError): RullamaError {
  const { code, message, fields } = packed;
  const options = packed.cause === undefined ? undefined : { cause: packed.cause };
  switch (code) {
    case "not_found":
      return new NotFoundError(message, (fields["similar"] as string[] | undefined) ?? [], options);
    case "network":
      return new NetworkError(message, fields["status"] as number | undefined, options);
    case "quota":
      return new QuotaError(message, Number(fields["needed"]), Number(fields["free"]), options);
    case "checksum":
      return new ChecksumError(message, String(fields["expected"]), String(fields["actual"]), options);
    case "bad_adapter":
      return new BadAdapterError(message, (fields["misfits"] as string[] | undefined) ?? [], options);
    case "bad_data":
      return new BadDataError(message, fields["line"] as number | undefined, options);
    case "cancelled":
      return new CancelledError(message, options);
    case "no_webgpu":
      return new NoWebGpuError(message, fields["why"] as WebGpuAbsence | undefined, options);
    case "device_lost":
      return new DeviceLostError(message, options);
    case "interrupted":
      return new InterruptedError(message, options);
    case "freed":
      return new FreedError(message, options);
    default:
      return new RullamaError(code, message, options);
  }
}
