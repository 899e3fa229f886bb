// Failures as the AI SDK recognises them, by markers instead of classes.

import { rullamaError } from "../errors.js";
import { failureOf } from "../http/responses.js";

/** An `AI_APICallError` that is not retried: what fails on this device fails again. */
export function apiError(error: unknown, modelId: string): Error {
  const { message, code } = rullamaError(error);
  const { status } = failureOf(error);
  const failure = Object.assign(new Error(message, { cause: error }), {
    name: "AI_APICallError",
    url: `rullama:${modelId}`,
    requestBodyValues: {},
    statusCode: status,
    isRetryable: false,
    data: { code },
  });
  for (const marker of ["vercel.ai.error", "vercel.ai.error.AI_APICallError"]) {
    Object.defineProperty(failure, Symbol.for(marker), { value: true });
  }
  return failure;
}
