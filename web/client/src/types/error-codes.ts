// Codes of failures.

/** Stable names of failures; each class of `errors.ts` has one. */
export const ERROR_CODES = [
  "no_webgpu",
  "device_lost",
  "interrupted",
  "out_of_memory",
  "does_not_fit",
  "not_found",
  "network",
  "no_ranges",
  "file_changed",
  "checksum",
  "unverified",
  "quota",
  "storage",
  "bad_file",
  "unsupported_model",
  "projector",
  "context_full",
  "bad_options",
  "bad_media",
  "bad_adapter",
  "bad_data",
  "bad_checkpoint",
  "diverged",
  "cancelled",
  "freed",
  "internal",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];
