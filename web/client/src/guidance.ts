// Grammars of constrained replies, in a wasm module of their own: it is fetched when a reply is first constrained.

import type { GrammarFormat, PlainConstraint } from "./constraint.js";
import { NetworkError, RullamaError } from "./errors.js";
import type { Tool } from "./types.js";
import { wasmSource } from "./wasm-file.js";
import init, { type InitOutput, type Matcher, Vocabulary } from "./wasm/guidance.js";

/** Compiled formats that are kept: pages send the same few again and again. */
const KEPT = 16;

/** What the engine asks before each token of a reply. */
export interface TokenConstraint {
  /** Whether the reply is a tool call. */
  readonly calls: "never" | "maybe" | "always";
  /** Bits of the tokens that may come next, 32 in a word. */
  mask(): Uint32Array;
  /** Advances by a token; true if only the end can follow. */
  commit(id: number): boolean;
  free(): void;
}

/** What of a model constraints need. */
export interface ConstrainedModel {
  vocabulary(): Uint8Array;
  outputFormat(): string;
}

let loading: Promise<InitOutput> | undefined;

/** Fetches and compiles the module. */
export function startGuidance(address?: string): Promise<InitOutput> {
  loading ??= (async () => init({ module_or_path: await wasmSource(moduleAddress(), address) }))().catch(
    (error: unknown) => {
      // The next call tries again.
      loading = undefined;
      throw new NetworkError("the wasm of constrained replies could not be fetched or compiled", undefined, {
        cause: error,
      });
    },
  );
  return loading;
}

// Bundlers look for exactly this.
const moduleAddress = () => new URL("./wasm/guidance_bg.wasm", import.meta.url);

/** The constraints of one model. */
export class Guidance {
  private readonly compiled = new Map<string, Matcher>();
  private vocabulary: Vocabulary | undefined;

  constructor(private readonly model: ConstrainedModel) {}

  /** The constraint of one reply. */
  constraint(constraint: PlainConstraint, tools: Tool[] = []): TokenConstraint {
    const { format, calls } = formatOf(constraint, tools, () => this.model.outputFormat());
    const matcher = guarded(() => this.matcher(JSON.stringify(format)).fork());
    return {
      calls,
      mask: () => guarded(() => matcher.mask()),
      commit: (id) => guarded(() => matcher.commit(id)),
      free: () => quietly(() => matcher.free()),
    };
  }

  free(): void {
    for (const matcher of this.compiled.values()) quietly(() => matcher.free());
    this.compiled.clear();
    quietly(() => this.vocabulary?.free());
    this.vocabulary = undefined;
  }

  private matcher(key: string): Matcher {
    const known = this.compiled.get(key);
    if (known) return known;
    // Reading the vocabulary takes a second or two.
    this.vocabulary ??= new Vocabulary(this.model.vocabulary());
    const made = this.vocabulary.compile(key);
    const [oldest] = this.compiled.keys();
    if (this.compiled.size >= KEPT && oldest !== undefined) {
      this.compiled.get(oldest)?.free();
      this.compiled.delete(oldest);
    }
    this.compiled.set(key, made);
    return made;
  }
}

/** A format in the words of the module; it is one of text, of a call, or of either. */
function formatOf(
  { format, toolChoice }: PlainConstraint,
  tools: Tool[],
  output: () => string,
): { format: object; calls: TokenConstraint["calls"] } {
  const called =
    typeof toolChoice === "object" ? tools.filter((tool) => tool.function.name === toolChoice.name) : tools;
  const calls = () => ({ output: output(), tools: called });
  // A call has no text that could have a format.
  if (toolChoice !== undefined) return { format: { calls: calls() }, calls: "always" };
  const text = format === undefined ? undefined : textOf(format);
  return tools.length === 0
    ? { format: { text }, calls: "never" }
    : { format: { text, calls: calls() }, calls: "maybe" };
}

function textOf(format: NonNullable<PlainConstraint["format"]>): object {
  if (format === "json") return { json: { type: "object" } };
  if (format["type"] !== "grammar") return { json: format };
  const { syntax, definition, flags = "" } = format as GrammarFormat;
  return syntax === "lark" ? { lark: definition } : { regex: { pattern: definition, flags } };
}

let broken: RullamaError | undefined;

/** A trap leaves the module in an unknown state: nothing more is asked of it. */
function guarded<T>(job: () => T): T {
  if (broken) throw broken;
  try {
    return job();
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    broken = new RullamaError("internal", "constrained replies stopped working: load the page again", {
      cause: error,
    });
    throw broken;
  }
}

function quietly(job: () => void): void {
  try {
    if (!broken) job();
  } catch {
    // Nothing is left to free.
  }
}
