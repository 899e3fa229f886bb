// Failures as the Prompt API's specification names them.

import { RullamaError } from "../errors.js";

interface QuotaDetails {
  requested: number;
  quota: number;
}

type QuotaClass = new (message: string, details: QuotaDetails) => DOMException & QuotaDetails;

/** Where the browser has none of its own. */
const OwnQuotaExceededError = class QuotaExceededError extends DOMException {
  readonly requested: number;
  readonly quota: number;

  constructor(message: string, { requested, quota }: QuotaDetails) {
    super(message, "QuotaExceededError");
    this.requested = requested;
    this.quota = quota;
  }
};

/** The prompt does not fit: tokens `requested` and the `quota`, which is the context window. */
export function quotaExceeded(requested: number, quota: number): DOMException {
  const native = (globalThis as { QuotaExceededError?: QuotaClass }).QuotaExceededError;
  const Class = typeof native === "function" ? native : OwnQuotaExceededError;
  const advice = "shorten the prompt, or load the model with a larger context";
  return new Class(`the prompt takes ${requested} tokens of a context of ${quota}; ${advice}`, { requested, quota });
}

export const domError = (name: string, message: string): DOMException => new DOMException(message, name);

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export function destroyedError(): DOMException {
  return domError("InvalidStateError", "the session was destroyed");
}

/** A failure of the engine while it answers. */
export function promptError(error: unknown, requested: number, quota: number): unknown {
  if (error instanceof DOMException) return error;
  if (!(error instanceof RullamaError)) return domError("UnknownError", messageOf(error));
  const { code, message } = error;
  // A schema that no value satisfies is wrong, not unknown; the grammars' library says so in its message alone.
  if (code === "bad_options" && /unsatisfiable/iu.test(message)) return domError("SyntaxError", message);
  if (code === "context_full") return quotaExceeded(Math.max(requested, quota + 1), quota);
  const names: Partial<Record<typeof code, string>> = {
    bad_options: "NotSupportedError",
    bad_media: "NotSupportedError",
    projector: "NotSupportedError",
    cancelled: "AbortError",
    freed: "InvalidStateError",
    network: "NetworkError",
  };
  return domError(names[code] ?? "UnknownError", message);
}

/** A failure of the engine while a model is loaded. */
export function createError(error: unknown): unknown {
  if (error instanceof DOMException) return error;
  if (!(error instanceof RullamaError)) return domError("OperationError", messageOf(error));
  const { code, message } = error;
  const networks = new Set(["network", "no_ranges", "file_changed", "checksum", "unverified", "not_found"]);
  if (networks.has(code)) return domError("NetworkError", message);
  return domError(
    code === "no_webgpu" || code === "unsupported_model" ? "NotSupportedError" : "OperationError",
    message,
  );
}
