// What the document of this page allows.

import { domError } from "./errors.js";

interface FeaturePolicy {
  features(): string[];
  allowsFeature(name: string): boolean;
}

/** Throws where the document is not shown any more, as that of an iframe which was removed. */
export function checkActive(): void {
  if (globalThis.document && !globalThis.document.defaultView) {
    throw domError("InvalidStateError", "the document is not active");
  }
}

export function hasActivation(): boolean {
  const { userActivation } = (globalThis.navigator ?? {}) as Partial<Navigator>;
  return userActivation === undefined || userActivation.hasBeenActive;
}

/** Whether the permissions policy forbids it. Browsers that do not know of such a policy forbid nothing. */
export function isDenied(): boolean {
  const policy = (globalThis.document as { featurePolicy?: FeaturePolicy } | undefined)?.featurePolicy;
  return (
    policy !== undefined && policy.features().includes("language-model") && !policy.allowsFeature("language-model")
  );
}
