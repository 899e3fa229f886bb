// Wasm modules that are fetched when they are first needed, and that may trap.

import { NetworkError, RullamaError } from "./errors.js";
import { wasmSource } from "./wasm-file.js";

/** What wasm-bindgen makes for a module. */
interface Glue<O> {
  init(source: { module_or_path: string | URL | Uint8Array<ArrayBuffer> }): Promise<O>;
  /** Makes a new instance; what the old one made is gone. */
  reset(): void;
  /** Where the wasm is by default. */
  address(): URL;
}

/** A module that is fetched and compiled once. */
export class LazyModule<O extends { memory: WebAssembly.Memory }> {
  private loading: Promise<O> | undefined;
  private memory: WebAssembly.Memory | undefined;

  constructor(
    private readonly glue: Glue<O>,
    /** What the module is, in messages. */
    private readonly what: string,
  ) {}

  start(address?: string): Promise<O> {
    this.loading ??= this.load(address).catch((error: unknown) => {
      // The next call tries again.
      this.loading = undefined;
      throw new NetworkError(`the wasm of ${this.what} could not be fetched or compiled`, undefined, { cause: error });
    });
    return this.loading;
  }

  private async load(address?: string): Promise<O> {
    return this.started(await this.glue.init({ module_or_path: await wasmSource(this.glue.address(), address) }));
  }

  private started(exports: O): O {
    this.memory = exports.memory;
    return exports;
  }

  /** Replaces the instance. */
  restart(): void {
    this.glue.reset();
    this.loading = this.glue.init({ module_or_path: this.glue.address() }).then((exports) => this.started(exports));
  }

  /** Bytes of its memory. */
  heap(): number {
    return this.memory?.buffer.byteLength ?? 0;
  }
}

/** An instance of a module. A trap leaves it in an unknown state, so that it is replaced. */
export class TrappingInstance {
  /** Counts instances: what an earlier one made must not be used. */
  number = 0;
  private broken: RullamaError | undefined;

  constructor(
    private readonly replace: () => void,
    /** What it does, and what a trap means. */
    private readonly words: { what: string; trapped: string },
  ) {}

  /** Calls the instance of this number. */
  call<T>(number: number, job: () => T): T {
    if (this.broken) throw this.broken;
    if (number !== this.number) {
      throw new RullamaError("internal", `${this.words.what} were started anew: ask again`);
    }
    try {
      return job();
    } catch (error) {
      // What the module throws itself has a code; anything else is a trap, which may be an error of JavaScript, as for a full stack.
      if (typeof (error as { code?: unknown } | null)?.code === "string") throw error;
      throw this.restart(error);
    }
  }

  private restart(cause: unknown): RullamaError {
    this.number++;
    try {
      this.replace();
    } catch (error) {
      this.broken = new RullamaError("internal", `${this.words.what} stopped working: load the page again`, {
        cause: error,
      });
      return this.broken;
    }
    return new RullamaError("internal", this.words.trapped, { cause });
  }
}
