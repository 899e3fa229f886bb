// What the app takes from the browser package: its types, and the one function that opens an engine.
export type * from "../../../client/src/types.js";
export type * from "../../../client/src/api.js";
import type { OpenEngine } from "../../../client/src/api.js";
export declare const openEngine: OpenEngine;
