// The owner of the engine that all tabs share: counts who uses which model, and frees what nobody uses any more.

import { CancelledError } from "../errors.js";
import type { CallOptions, Kind, Requests, Transport } from "../protocol.js";
import type { Progress } from "../types.js";

type Loaded = Requests["load"]["result"];

/** A model that is loaded or being loaded. */
interface SharedModel {
  key: string | undefined;
  loading: Promise<Loaded>;
  /** How often each tab has loaded it. */
  users: Map<string, number>;
  listeners: Set<(progress: Progress) => void>;
  stop: AbortController;
}

/** What a tab has in the engine besides models. */
interface Belongings {
  sessions: Map<number, number>;
  media: Map<number, number>;
}

export class Owner {
  private readonly models = new Set<SharedModel>();
  private readonly byNumber = new Map<number, SharedModel>();
  private readonly belongings = new Map<string, Belongings>();

  constructor(private readonly transport: Transport) {}

  /** Answers a call of a tab. */
  async call<K extends Kind>(
    tab: string,
    kind: K,
    params: Requests[K]["params"],
    options: CallOptions<K> = {},
  ): Promise<Requests[K]["result"]> {
    type Result = Requests[K]["result"];
    const { model } = (params ?? {}) as { model?: number };
    if (kind === "load") {
      const loaded = this.load(tab, params as Requests["load"]["params"], options as CallOptions<"load">);
      return loaded as Promise<Result>;
    }
    if (kind === "freeModel") return this.release(tab, model!) as Promise<Result>;
    const result = await this.transport.call(kind, params, options);
    const mine = this.of(tab);
    if (kind === "session") mine.sessions.set(result as number, model!);
    else if (kind === "freeSession") mine.sessions.delete((params as { session: number }).session);
    else if (kind === "encode" || kind === "encodeVideo") mine.media.set(result as number, model!);
    else if (kind === "forget") mine.media.delete((params as { medium: number }).medium);
    else if (kind === "memory") {
      const tabs = this.byNumber.get(model!)?.users.size ?? 1;
      return { ...(result as object), tabs } as Result;
    }
    return result;
  }

  /** Frees what a tab had that is gone. */
  leave(tab: string): void {
    const { sessions, media } = this.of(tab);
    this.belongings.delete(tab);
    const quietly = (call: Promise<unknown>) => void call.catch(() => {});
    for (const [session, model] of sessions) quietly(this.transport.call("freeSession", { model, session }));
    for (const [medium, model] of media) quietly(this.transport.call("forget", { model, medium }));
    for (const shared of this.models) {
      if (shared.users.delete(tab)) quietly(this.freeUnused(shared));
    }
  }

  close(): void {
    this.transport.close();
  }

  private of(tab: string): Belongings {
    const known = this.belongings.get(tab) ?? { sessions: new Map(), media: new Map() };
    this.belongings.set(tab, known);
    return known;
  }

  private async load(tab: string, params: Requests["load"]["params"], options: CallOptions<"load">): Promise<Loaded> {
    const { onEvent, signal } = options;
    const key = keyOf(params);
    const known = key === undefined ? undefined : [...this.models].find((model) => model.key === key);
    const shared = known ?? this.begin(key, params);
    shared.users.set(tab, (shared.users.get(tab) ?? 0) + 1);
    if (onEvent) shared.listeners.add(onEvent);
    let cancel = () => {};
    const cancelled = new Promise<never>((_, reject) => (cancel = () => reject(new CancelledError())));
    cancelled.catch(() => {});
    signal?.addEventListener("abort", cancel, { once: true });
    if (signal?.aborted) cancel();
    try {
      return await Promise.race([shared.loading, cancelled]);
    } catch (error) {
      this.leaveModel(shared, tab);
      // Nobody waits for it any more: the download stays, the load ends.
      if (shared.users.size === 0) shared.stop.abort();
      throw error;
    } finally {
      signal?.removeEventListener("abort", cancel);
      if (onEvent) shared.listeners.delete(onEvent);
    }
  }

  private begin(key: string | undefined, params: Requests["load"]["params"]): SharedModel {
    const stop = new AbortController();
    const listeners: SharedModel["listeners"] = new Set();
    const onEvent = (progress: Progress) => listeners.forEach((listener) => listener(progress));
    const loading = this.transport.call("load", params, { onEvent, signal: stop.signal });
    const shared: SharedModel = { key, loading, users: new Map(), listeners, stop };
    this.models.add(shared);
    loading.then(
      ({ model }) => {
        this.byNumber.set(model, shared);
        // A model whose device is lost is loaded anew by the next one.
        this.transport.call("lost", { model }).then(
          () => this.forget(shared, model),
          () => {},
        );
        if (shared.users.size === 0) void this.freeUnused(shared).catch(() => {});
      },
      () => this.models.delete(shared),
    );
    return shared;
  }

  private async release(tab: string, model: number): Promise<void> {
    const shared = this.byNumber.get(model);
    if (!shared) return this.transport.call("freeModel", { model });
    this.leaveModel(shared, tab);
    await this.freeUnused(shared);
  }

  private leaveModel(shared: SharedModel, tab: string): void {
    const count = (shared.users.get(tab) ?? 0) - 1;
    if (count > 0) shared.users.set(tab, count);
    else shared.users.delete(tab);
  }

  private async freeUnused(shared: SharedModel): Promise<void> {
    if (shared.users.size > 0) return;
    const { model } = await shared.loading;
    // Loaded again meanwhile, or freed.
    if (shared.users.size > 0 || !this.models.has(shared)) return;
    this.forget(shared, model);
    await this.transport.call("freeModel", { model });
  }

  private forget(shared: SharedModel, model: number): void {
    this.models.delete(shared);
    this.byNumber.delete(model);
  }
}

/** Loads of the same place with the same options are one model; files that were picked are not compared. */
function keyOf({ source, options }: Requests["load"]["params"]): string | undefined {
  const { draft, projector, ...plain } = options;
  const files = [source, draft, projector].filter((one) => one !== undefined);
  if (files.some((one) => typeof one !== "string") || plain.fetch) return undefined;
  const sorted = Object.entries(plain).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([source, draft, projector, sorted]);
}
