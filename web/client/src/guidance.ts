// Grammars of constrained replies, in a wasm module of their own: it is fetched when a reply is first constrained.

import type { GrammarFormat, PlainConstraint } from "./constraint.js";
import { RullamaError } from "./errors.js";
import { LazyModule, TrappingInstance } from "./lazy-module.js";
import type { Tool } from "./types.js";
import init, { type InitOutput, type Matcher, Vocabulary, __wbg_reset_state } from "./wasm/guidance.js";

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
  /** Why the module failed, once it did. */
  readonly failure: RullamaError | undefined;
}

/** What of a model constraints need. */
export interface ConstrainedModel {
  vocabulary(): Uint8Array;
  outputFormat(): string;
}

const MODULE_FILE = new LazyModule<InitOutput>(
  {
    init,
    reset: __wbg_reset_state,
    // Bundlers look for exactly this.
    address: () => new URL("./wasm/guidance_bg.wasm", import.meta.url),
  },
  "constrained replies",
);

/** Fetches and compiles the module. */
export function startGuidance(address?: string): Promise<InitOutput> {
  return MODULE_FILE.start(address);
}

/** What is used of the module; tests put another in its place. */
export interface GuidanceModule {
  vocabulary(packed: Uint8Array): Pick<Vocabulary, "compile" | "free">;
  /** Makes a new instance; what the old one made is gone. */
  restart(): void;
}

const MODULE: GuidanceModule = {
  vocabulary: (packed) => new Vocabulary(packed),
  restart: () => MODULE_FILE.restart(),
};

/** An instance of the module. */
export class GuidanceInstance extends TrappingInstance {
  constructor(private readonly module: GuidanceModule) {
    const trapped = "the format of this reply broke its grammar: simplify the format";
    super(() => module.restart(), { what: "constrained replies", trapped });
  }

  vocabulary(packed: Uint8Array): Pick<Vocabulary, "compile" | "free"> {
    return this.module.vocabulary(packed);
  }
}

const INSTANCE = new GuidanceInstance(MODULE);

/** The constraints of one model. */
export class Guidance {
  private readonly compiled = new Map<string, Matcher>();
  private vocabulary: Pick<Vocabulary, "compile" | "free"> | undefined;
  /** The instance that made them. */
  private number: number;

  constructor(
    private readonly model: ConstrainedModel,
    private readonly instance = INSTANCE,
  ) {
    this.number = instance.number;
  }

  /** The constraint of one reply, which may continue a text. */
  constraint(constraint: PlainConstraint, tools: Tool[] = [], prefix = ""): TokenConstraint {
    if (prefix !== "" && constraint.toolChoice !== undefined) {
      throw new RullamaError(
        "bad_options",
        "a reply that must be a call cannot continue a prefix: leave out one of them",
      );
    }
    const { format, calls } = formatOf(constraint, tools, () => this.model.outputFormat());
    const { instance } = this;
    this.renew();
    const { number } = this;
    // Outside of the call: a trap of the engine is none of this module.
    const packed = this.vocabulary ? undefined : this.model.vocabulary();
    let failure: RullamaError | undefined;
    const call = <T>(job: () => T): T => {
      try {
        return instance.call(number, job);
      } catch (error) {
        if (error instanceof RullamaError) failure = error;
        throw error;
      }
    };
    // Reading the vocabulary takes a second or two.
    if (packed) this.vocabulary = call(() => instance.vocabulary(packed));
    const matcher = call(() => this.matcher(JSON.stringify(format)).fork());
    try {
      if (prefix !== "") call(() => matcher.advance(prefix));
    } catch (error) {
      this.quietly(number, () => matcher.free());
      throw error;
    }
    return {
      calls,
      mask: () => call(() => matcher.mask()),
      commit: (id) => call(() => matcher.commit(id)),
      free: () => this.quietly(number, () => matcher.free()),
      get failure() {
        return failure;
      },
    };
  }

  free(): void {
    for (const matcher of this.compiled.values()) this.quietly(this.number, () => matcher.free());
    this.compiled.clear();
    this.quietly(this.number, () => this.vocabulary?.free());
    this.vocabulary = undefined;
  }

  /** Forgets what an earlier instance made. */
  private renew(): void {
    if (this.number === this.instance.number) return;
    this.number = this.instance.number;
    this.compiled.clear();
    this.vocabulary = undefined;
  }

  private quietly(number: number, job: () => void): void {
    try {
      this.instance.call(number, job);
    } catch {
      // Nothing is left to free.
    }
  }

  private matcher(key: string): Matcher {
    const known = this.compiled.get(key);
    if (known) return known;
    const made = this.vocabulary!.compile(key);
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
