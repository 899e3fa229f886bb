// What tests tell the made-up engine, and how it fails. Never shipped.

import type { ErrorCode, FitReport, GenerateOptions, LoadOptions, Message, ServedModel } from "rullama";

/** What a test sets on `window.fake` before the page starts, and may change later. */
export interface Fake {
  webgpu?: boolean;
  served?: Pick<ServedModel, "name" | "size" | "error">[];
  servedFailure?: ErrorCode;
  storageFailure?: ErrorCode;
  /** The operation whose self-test fails. */
  brokenOp?: string;
  loadFailure?: ErrorCode;
  verifyFailure?: ErrorCode;
  verdict?: FitReport["verdict"];
  warnings?: string[];
  /** Milliseconds of each of a load's steps and between an answer's words. */
  loadStep?: number;
  word?: number;
  /** After that many words of an answer or cases of a self-test, neither goes on nor stops until a test takes this away. */
  held?: number;
  answer?: string;
  /** Answers of models by their names. */
  answers?: Record<string, string>;
  thinking?: string;
  /** Fails after that many words of the next answer. */
  failAfter?: { words: number; code: ErrorCode };
  /** Tokens of the context, counted as words. */
  context?: number;
  toolCall?: { name: string; arguments: Record<string, unknown> };
  /** Calls the tool after each result again. */
  callsAgain?: boolean;
  badCall?: string;
  quota?: number;
  /** What the last answer was asked with, for tests to look at. */
  asked?: { messages: Message[]; seen?: Message[]; options: Omit<GenerateOptions, "signal"> };
  /** The system prompt that the model brings. */
  system?: string;
  /** A GPU that a program plays on the CPU. */
  fallback?: boolean;
  /** Refuses all attachments. */
  badMedia?: boolean;
  /** Milliseconds of decoding and of encoding an attachment. */
  encode?: number;
  /** Attachments stay in this phase until a test takes this away. */
  heldPhase?: "decode" | "encode";
  loadedWith?: Pick<LoadOptions, "context" | "cache" | "keep"> & { draft?: string; projector?: string };
  loads?: number;
  /** Milliseconds of a training's step, and the step at which its device is lost. */
  trainingStep?: number;
  trainingFailsAt?: number;
}

declare global {
  interface Window {
    fake?: Fake;
  }
}

export const settings = (): Fake => (window.fake ??= {});
export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export class FakeError extends Error {
  constructor(readonly code: ErrorCode) {
    super(`made up: ${code}`);
  }
}
