// A loaded model that generates text, in the thread of the engine: its sessions.

import { FreedError, RullamaError } from "./errors.js";
import { type LoadedResources, OnDevice, quietly } from "./on-device.js";
import type { AnswerRequest } from "./protocol.js";
import type { GenerateEvent, MemoryReport, SessionOptions } from "./types.js";

/** What the wasm's models that answer have in common. */
interface Writes<S> {
  session(options: string): S;
  tokenize(text: string, special: boolean, bos: boolean): Uint32Array;
  detokenize(ids: Uint32Array): string;
  gpuBytes(): number;
  free(): void;
}

interface Answers {
  generate(request: string, each: (event: string) => boolean): Promise<void>;
  gpuBytes(): number;
  free(): void;
}

/** Passes events of the engine on; true ends the reply. An empty text only asks for that. */
function eachOf(onEvent: (event: GenerateEvent) => void, signal?: AbortSignal): (event: string) => boolean {
  return (event) => {
    if (event !== "") onEvent(JSON.parse(event) as GenerateEvent);
    return signal?.aborted ?? false;
  };
}

export class LoadedGenerator<M extends Writes<S>, S extends Answers> extends OnDevice {
  private readonly sessions = new Map<number, S>();
  private own: S | undefined;
  private nextSession = 1;

  constructor(
    resources: LoadedResources,
    protected readonly model: M,
  ) {
    super(resources);
  }

  async session(options: SessionOptions): Promise<number> {
    return this.share(async () => this.open(options));
  }

  private open(options: SessionOptions): number {
    const id = this.nextSession++;
    this.sessions.set(id, this.model.session(JSON.stringify(options)));
    return id;
  }

  private close(id: number): void {
    this.sessions.get(id)?.free();
    this.sessions.delete(id);
  }

  /** The conversation of a number; without one, that which the model keeps for itself. */
  protected find(id: number | undefined): S {
    if (id === undefined) return (this.own ??= this.model.session("{}"));
    const session = this.sessions.get(id);
    if (!session) throw new FreedError("the session was freed");
    return session;
  }

  answer(
    session: number | undefined,
    request: AnswerRequest,
    onEvent: (event: GenerateEvent) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    const each = eachOf(onEvent, signal);
    if (!this.isBatched) return this.work(() => this.generate(this.find(session), request, each), signal);
    return this.share(() => this.answerNow(session, request, each), session, signal);
  }

  /** Whether several conversations are answered at the same time. */
  protected readonly isBatched: boolean = false;
  private isOwnBusy = false;

  /** While the model's own conversation is answered, further requests without a conversation have one that ends with them. */
  private async answerNow(
    session: number | undefined,
    request: AnswerRequest,
    each: (event: string) => boolean,
  ): Promise<void> {
    if (session !== undefined) return this.generate(this.find(session), request, each);
    if (this.isOwnBusy) {
      const id = this.open({});
      return this.generate(this.find(id), request, each).finally(() => this.close(id));
    }
    this.isOwnBusy = true;
    return this.generate(this.find(undefined), request, each).finally(() => (this.isOwnBusy = false));
  }

  protected async generate(session: S, request: AnswerRequest, each: (event: string) => boolean): Promise<void> {
    if (request.prefix !== undefined) {
      throw new RullamaError("bad_options", "this model writes whole blocks: it cannot continue a prefix");
    }
    if (request.think_budget !== undefined) {
      throw new RullamaError("bad_options", "this model writes whole blocks: its thoughts cannot be limited");
    }
    if (request.constraint !== undefined) {
      const advice = "ask for the format in the prompt, and check what comes";
      throw new RullamaError("bad_options", `replies of ${this.info.name} cannot be constrained: ${advice}`);
    }
    await session.generate(JSON.stringify(request), each);
  }

  freeSession(id: number): Promise<void> {
    return this.afterwards(async () => this.close(id), id);
  }

  async tokenize(text: string, special: boolean, bos: boolean): Promise<Uint32Array> {
    if (this.gone) throw this.gone;
    return this.model.tokenize(text, special, bos);
  }

  async detokenize(ids: Uint32Array): Promise<string> {
    if (this.gone) throw this.gone;
    return this.model.detokenize(ids);
  }

  memory(): MemoryReport {
    if (this.gone) throw this.gone;
    const all = this.all();
    const caches = all.reduce((sum, session) => sum + session.gpuBytes(), 0);
    return { gpu: this.model.gpuBytes() + caches, wasmHeap: this.resources.heap(), sessions: all.length };
  }

  protected release(): void {
    for (const session of this.all()) quietly(() => session.free());
    this.sessions.clear();
    this.own = undefined;
    quietly(() => this.model.free());
  }

  private all(): S[] {
    return [...this.sessions.values(), ...(this.own ? [this.own] : [])];
  }
}
