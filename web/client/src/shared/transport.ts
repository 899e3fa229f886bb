// One engine for all tabs of an origin: an owner is elected by a Web Lock, and the other tabs send it their calls. When it closes, the next
// tab in the queue of the lock takes over.

import { FreedError, InterruptedError, type PackedError, pack, rullamaError, unpack } from "../errors.js";
import type { CallOptions, Kind, Requests, Transport } from "../protocol.js";
import { Owner } from "./owner.js";

/** Raised when messages change: tabs of different versions do not share an engine. */
const PROTOCOL = 1;

type Message =
  /** To all: who owns the engine? To all: this tab does, since it took over as `epoch`. */
  | { type: "who" }
  | { type: "owner"; epoch: string }
  /** To the owner. */
  | { type: "call"; epoch: string; tab: string; id: number; kind: Kind; params: unknown }
  | { type: "abort"; tab: string; id: number }
  /** To a tab. */
  | { type: "event"; tab: string; id: number; event: unknown }
  | { type: "result"; tab: string; id: number; result: unknown }
  | { type: "error"; tab: string; id: number; error: PackedError };

/** What of a browser is used; tests bring their own. */
export interface TabTools {
  locks: Pick<LockManager, "request">;
  channel: (name: string) => Pick<BroadcastChannel, "postMessage" | "close" | "addEventListener">;
}

interface Waiting {
  kind: Kind;
  resolve: (result: never) => void;
  reject: (error: Error) => void;
  onEvent: ((event: never) => void) | undefined;
}

export class SharedTransport implements Transport {
  private readonly tab = crypto.randomUUID();
  private readonly channel: ReturnType<TabTools["channel"]>;
  private readonly closing = new AbortController();
  private owner: Owner | undefined;
  private epoch: string | undefined;
  /** Settles when there is an owner, or this was closed. */
  private readonly found: Promise<void>;
  private settle = () => {};
  private readonly waiting = new Map<number, Waiting>();
  /** Numbers of models, by the owner they are of: another owner has other models under the same numbers. */
  private readonly models = new Map<number, { epoch: string; model: number }>();
  /** Calls of other tabs that run here. */
  private readonly running = new Map<string, AbortController>();
  private readonly tabs = new Set<string>();
  private nextId = 1;
  private nextModel = 1;

  constructor(
    private readonly open: () => Transport,
    name: string,
    private readonly tools: TabTools = browserTools(),
  ) {
    this.found = new Promise((resolve) => (this.settle = resolve));
    this.channel = tools.channel(`rullama/engine/${PROTOCOL}/${name}`);
    this.channel.addEventListener("message", ({ data }) => this.receive(data as Message));
    // Held as long as this tab lives: the owner waits for it, and then frees what is left over.
    this.hold(`rullama/tab/${this.tab}`, () => {});
    this.hold(`rullama/owner/${PROTOCOL}/${name}`, () => this.takeOver());
    this.post({ type: "who" });
  }

  get alive(): boolean {
    return !this.closing.signal.aborted;
  }

  close(): void {
    const error = new FreedError("the engine was closed");
    this.closing.abort(error);
    this.settle();
    this.end(error);
    for (const controller of this.running.values()) controller.abort();
    this.owner?.close();
    this.channel.close();
  }

  async call<K extends Kind>(
    kind: K,
    params: Requests[K]["params"],
    options: CallOptions<K> = {},
  ): Promise<Requests[K]["result"]> {
    await this.found;
    if (this.closing.signal.aborted) throw new FreedError("the engine was closed");
    const epoch = this.epoch!;
    const real = this.real(params, epoch);
    const result = await this.send(kind, real as Requests[K]["params"], options);
    if (kind !== "load") return result;
    const { model, info } = result as Requests["load"]["result"];
    const number = this.nextModel++;
    this.models.set(number, { epoch, model });
    return { model: number, info } as Requests[K]["result"];
  }

  /** Parameters with the owner's number of the model. */
  private real(params: unknown, epoch: string): unknown {
    const { model } = (params ?? {}) as { model?: unknown };
    if (typeof model !== "number") return params;
    const known = this.models.get(model);
    if (!known || known.epoch !== epoch) throw interrupted();
    return { ...(params as object), model: known.model };
  }

  private send<K extends Kind>(
    kind: K,
    params: Requests[K]["params"],
    options: CallOptions<K>,
  ): Promise<Requests[K]["result"]> {
    if (this.owner) return this.owner.call(this.tab, kind, params, options);
    const id = this.nextId++;
    const { signal, onEvent } = options;
    return new Promise((resolve, reject) => {
      const abort = () => this.post({ type: "abort", tab: this.tab, id });
      const settled = () => {
        this.waiting.delete(id);
        signal?.removeEventListener("abort", abort);
      };
      this.waiting.set(id, {
        kind,
        resolve: (result) => (settled(), resolve(result)),
        reject: (error) => (settled(), reject(error)),
        onEvent,
      });
      try {
        this.post({ type: "call", epoch: this.epoch!, tab: this.tab, id, kind, params });
      } catch (error) {
        this.waiting.get(id)?.reject(rullamaError(error));
        return;
      }
      if (signal?.aborted) abort();
      else signal?.addEventListener("abort", abort);
    });
  }

  private receive(message: Message): void {
    if (message.type === "who") {
      if (this.owner) this.post({ type: "owner", epoch: this.epoch! });
    } else if (message.type === "owner") {
      if (message.epoch !== this.epoch) this.follow(message.epoch);
    } else if (message.type === "call") {
      if (this.owner && message.epoch === this.epoch) void this.answer(message);
    } else if (message.type === "abort") {
      this.running.get(`${message.tab} ${message.id}`)?.abort();
    } else if (message.tab === this.tab) {
      const waiting = this.waiting.get(message.id);
      if (message.type === "event") waiting?.onEvent?.(message.event as never);
      else if (message.type === "result") waiting?.resolve(message.result as never);
      else waiting?.reject(unpack(message.error));
    }
  }

  private async answer({ tab, id, kind, params }: Extract<Message, { type: "call" }>): Promise<void> {
    this.watch(tab);
    const controller = new AbortController();
    const key = `${tab} ${id}`;
    this.running.set(key, controller);
    try {
      const result = await this.owner!.call(tab, kind, params as Requests[typeof kind]["params"], {
        signal: controller.signal,
        onEvent: (event: unknown) => this.post({ type: "event", tab, id, event }),
      });
      this.post({ type: "result", tab, id, result });
    } catch (error) {
      this.post({ type: "error", tab, id, error: pack(error) });
    } finally {
      this.running.delete(key);
    }
  }

  /** Notices the end of a tab: its lock can be had then. */
  private watch(tab: string): void {
    if (this.tabs.has(tab)) return;
    this.tabs.add(tab);
    this.hold(`rullama/tab/${tab}`, () => {
      this.tabs.delete(tab);
      for (const [key, controller] of this.running) if (key.startsWith(`${tab} `)) controller.abort();
      this.owner?.leave(tab);
      return false;
    });
  }

  private takeOver(): void {
    this.follow(crypto.randomUUID(), new Owner(this.open()));
    this.post({ type: "owner", epoch: this.epoch! });
  }

  /** From now on calls go to this owner; those of the one before have no one to answer them. */
  private follow(epoch: string, owner?: Owner): void {
    this.epoch = epoch;
    this.owner = owner;
    this.end(interrupted());
    this.settle();
  }

  private end(error: InterruptedError | FreedError): void {
    for (const { kind, resolve, reject } of this.waiting.values()) {
      // Models of an owner that is gone are as lost as their device.
      if (kind === "lost" && error instanceof InterruptedError) resolve(pack(error) as never);
      else reject(error);
    }
  }

  /** Runs `then` once the lock is had, and keeps it until this transport is closed, unless `then` says false. */
  private hold(name: string, then: () => void | false): void {
    const { signal } = this.closing;
    const held = () => {
      if (then() === false || signal.aborted) return;
      return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    };
    this.tools.locks.request(name, { signal }, held).catch(() => {});
  }

  private post(message: Message): void {
    if (!this.closing.signal.aborted) this.channel.postMessage(message);
  }
}

function interrupted(): InterruptedError {
  return new InterruptedError("the tab that ran the model was closed: load it again, and repeat the call");
}

function browserTools(): TabTools {
  return { locks: navigator.locks, channel: (name) => new BroadcastChannel(name) };
}

/** Whether tabs can share an engine here. */
export function canShare(): boolean {
  return typeof BroadcastChannel !== "undefined" && globalThis.navigator?.locks !== undefined;
}
