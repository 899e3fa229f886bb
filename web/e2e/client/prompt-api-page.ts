// What the tests of the Prompt API run in the page, as one script.
export { echo } from "./prompt-api-check.ts";
export { failedFacts } from "./prompt-api-facts.ts";
export { idlFailures } from "./prompt-api-idl.ts";
