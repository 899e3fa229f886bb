// How the requests for a model's file are made.

import type { PlainLoadOptions } from "./protocol.js";
import { HUB, type Tuning, hubPlace } from "./storage/index.js";

/** The caller's headers, which go to the origin of the file that was named, and its own `fetch`. */
export function networkOf(
  { headers, token, headersFor, fetch: own }: Pick<PlainLoadOptions, "headers" | "token" | "headersFor" | "fetch">,
  host: string,
): Partial<Tuning> {
  const source = typeof headersFor === "string" ? headersFor : "";
  const isHub = hubPlace(source) !== undefined;
  // Names are the host's.
  const origin = isHub ? HUB : new URL(/^https?:/iu.test(source) ? source : host).origin;
  const values = { ...headers, ...(token !== undefined && isHub ? { authorization: `Bearer ${token}` } : {}) };
  return {
    ...(Object.keys(values).length > 0 ? { headers: { origin, values } } : {}),
    ...(own ? { fetch: own, workers: false } : {}),
  };
}
