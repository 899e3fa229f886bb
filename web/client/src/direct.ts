// The engine in this thread: requests answered by the wasm.

import { deviceReport, openDevice } from "./device.js";
import { CancelledError, FreedError, NetworkError, pack, rullamaError } from "./errors.js";
import { fit } from "./fit.js";
import { HeldModel, type ModelFiles } from "./held.js";
import { ProgressMeter } from "./progress.js";
import type { CallOptions, Kind, PlainLoadOptions, PlainSource, Requests, Settings, Transport } from "./protocol.js";
import { aborted } from "./queue.js";
import { selfTest } from "./self-test.js";
import { startHashing } from "./workers.js";
import {
  ModelStorage,
  type OpenOptions,
  type Opened,
  hashInWorker,
  layerOf,
  openModel,
  servedModels,
} from "./storage/index.js";
import type { FitReport, MemoryUse, ModelInfo, Progress } from "./types.js";
import { startWasm } from "./wasm-file.js";
import { type BytesOf, Device, type InitOutput, Model, inspect } from "./wasm/rullama.js";

type Handlers = {
  [K in Kind]: (params: Requests[K]["params"], options: CallOptions<K>) => Promise<Requests[K]["result"]>;
};

/** What the wasm says of a file. */
interface Inspected {
  info: Omit<FitReport["info"], "name" | "system">;
  memory: { withTable: MemoryUse; withoutTable: MemoryUse };
}

export class Direct implements Transport {
  private readonly models = new Map<number, HeldModel>();
  private readonly stored = new ModelStorage();
  private nextModel = 1;
  private closed = false;
  private wasm: Promise<InitOutput> | undefined;

  constructor(private readonly settings: Settings) {}

  async call<K extends Kind>(
    kind: K,
    params: Requests[K]["params"],
    options: CallOptions<K> = {},
  ): Promise<Requests[K]["result"]> {
    try {
      if (this.closed) throw new FreedError("the engine was closed");
      const handler = this.handlers[kind] as Handlers[K];
      return await handler(params, options);
    } catch (error) {
      throw rullamaError(error);
    }
  }

  get alive(): boolean {
    return !this.closed;
  }

  close(): void {
    this.closed = true;
    for (const model of this.models.values()) void model.free();
    this.models.clear();
  }

  private readonly handlers: Handlers = {
    device: () => deviceReport(),
    inspect: ({ source, options }, { signal }) => this.inspect(source, options, signal),
    load: ({ source, options }, call) => this.load(source, options, call),
    verified: ({ model }) => this.find(model).verified,
    lost: async ({ model }) => pack(await this.find(model).lost),
    session: ({ model, options }) => this.find(model).session(options),
    answer: ({ model, session, request }, { onEvent, signal }) =>
      this.find(model).answer(session, request, onEvent ?? (() => {}), signal),
    perceive: ({ model, medium }, { signal }) => this.find(model).perceive(medium, signal),
    film: ({ model, pictures, seconds }) => this.find(model).film(pictures, seconds),
    forget: async ({ model, medium }) => this.models.get(model)?.forget(medium),
    tokens: ({ model, session }) => this.find(model).tokens(session),
    save: ({ model, session }) => this.find(model).save(session),
    restore: ({ model, session, saved }) => this.find(model).restore(session, saved),
    freeSession: async ({ model, session }) => this.models.get(model)?.freeSession(session),
    tokenize: ({ model, text, special, bos }) => this.find(model).tokenize(text, special, bos),
    detokenize: ({ model, ids }) => this.find(model).detokenize(ids),
    memory: async ({ model }) => this.find(model).memory(),
    bench: ({ model, ...request }, { signal }) => this.find(model).bench(request, signal),
    freeTowers: ({ model }) => this.find(model).freeTowers(),
    freeModel: async ({ model }) => {
      const held = this.models.get(model);
      this.models.delete(model);
      await held?.free();
    },
    served: async (_, { signal }) => (await servedModels(this.host(), signal)) ?? [],
    storage: () => this.stored.report(),
    persist: () => this.stored.persist(),
    remove: ({ id }) => this.stored.remove(id),
    selfTest: async ({ most }, { onEvent, signal }) => {
      await this.ready();
      return selfTest(most ?? Infinity, onEvent ?? (() => {}), signal);
    },
  };

  /** The wasm, compiled when it is first needed. */
  private ready(): Promise<InitOutput> {
    if (this.wasm) return this.wasm;
    const ready = startWasm(this.settings.wasm).catch((error: unknown) => {
      // The next call tries again.
      this.wasm = undefined;
      throw new NetworkError("the engine's wasm could not be fetched or compiled", undefined, { cause: error });
    });
    this.wasm = ready;
    return ready;
  }

  private host(): string {
    return this.settings.host ?? globalThis.location.origin;
  }

  private find(id: number): HeldModel {
    const model = this.models.get(id);
    if (!model) throw new FreedError("the model was freed; load it again");
    return model;
  }

  private open(
    source: PlainSource,
    options: PlainLoadOptions,
    more: Pick<OpenOptions, "signal" | "onDownload" | "brief"> = {},
  ): Promise<Opened> {
    return openModel(source, {
      host: this.host(),
      ...(options.sha256 === undefined ? {} : { sha256: options.sha256 }),
      ...more,
      keep: options.keep ?? true,
      hash: hashInWorker(() => startHashing(this.settings.wasm)),
    });
  }

  private async inspect(source: PlainSource, options: PlainLoadOptions, signal?: AbortSignal): Promise<FitReport> {
    await this.ready();
    // A look at the header is no reason to keep a file.
    const opened = await this.open(source, { ...options, keep: false }, { signal, brief: true });
    try {
      const file = readable(opened);
      const found = JSON.parse(await inspect(file, engineOptions(options, opened))) as Inspected;
      const memory = tableFits(options, found.memory.withTable) ? found.memory.withTable : found.memory.withoutTable;
      const system = opened.info?.system;
      const info = { ...found.info, name: opened.name, ...(system ? { system } : {}) };
      const { deviceMemory } = navigator as { deviceMemory?: number };
      return { info, memory, ...fit(memory, await deviceReport(), options, deviceMemory) };
    } finally {
      opened.source.close();
    }
  }

  private async load(
    source: PlainSource,
    options: PlainLoadOptions,
    call: CallOptions<"load">,
  ): Promise<Requests["load"]["result"]> {
    const { signal } = call;
    const meter = new ProgressMeter((progress: Progress) => call.onEvent?.(progress));
    meter.phase("open");
    const exports = await this.ready();
    const onDownload = (have: number, total: number) => meter.downloaded(have, total);
    const opened = await this.open(source, options, { signal, onDownload });
    // Whoever asks for `verified` hears of it.
    opened.verified.catch(() => {});
    opened.stored.catch(() => {});
    try {
      const device = await openDevice(Device, options);
      try {
        const each = (done: number, total: number): boolean => {
          meter.loaded(done, total);
          return signal?.aborted ?? false;
        };
        const model = await Model.load(readable(opened), device.engine, engineOptions(options, opened), each);
        try {
          await this.verify(opened, options, meter, signal);
        } catch (error) {
          model.free();
          throw error;
        }
        return this.hold(opened, model, device, exports, options);
      } catch (error) {
        device.engine.destroy();
        device.engine.free();
        throw error;
      }
    } catch (error) {
      opened.source.close();
      throw signal?.aborted ? new CancelledError() : error;
    }
  }

  /** Waits for the checksum, unless the caller would rather not. */
  private async verify(
    opened: Opened,
    options: PlainLoadOptions,
    meter: ProgressMeter,
    signal?: AbortSignal,
  ): Promise<void> {
    if ((options.verify ?? "before") === "before") {
      meter.phase("verify");
      await Promise.race([opened.verified, aborted(signal)]);
    }
    if (signal?.aborted) throw new CancelledError();
  }

  private hold(
    opened: Opened,
    model: Model,
    device: Awaited<ReturnType<typeof openDevice>>,
    exports: InitOutput,
    options: PlainLoadOptions,
  ): Requests["load"]["result"] {
    const system = opened.info?.system;
    const info: ModelInfo = {
      ...(JSON.parse(model.info()) as Omit<ModelInfo, "name" | "system">),
      name: opened.name,
      ...(system ? { system } : {}),
    };
    const heap = () => exports.memory.buffer.byteLength;
    const held = new HeldModel(info, opened.verified, model, device, heap, this.files(opened, options));
    const id = this.nextModel++;
    this.models.set(id, held);
    return { model: id, info };
  }

  /** A loaded model's file, and that of its eyes and ears: as it was told, or the one its name brings. */
  private files(opened: Opened, options: PlainLoadOptions): ModelFiles {
    const { sha256: _models, projector: given, ...rest } = options;
    const layer = opened.info && layerOf(opened.info, "projector", this.host());
    const source = given ?? layer?.url;
    const wishes = given === undefined && layer?.sha256 !== undefined ? { ...rest, sha256: layer.sha256 } : rest;
    const closing = new AbortController();
    return {
      ...(source === undefined ? {} : { projector: () => this.openProjector(source, wishes, closing.signal) }),
      close() {
        opened.source.close();
        closing.abort();
      },
    };
  }

  private async openProjector(source: PlainSource, options: PlainLoadOptions, signal: AbortSignal): Promise<BytesOf> {
    const opened = await this.open(source, options, { signal });
    signal.addEventListener("abort", () => opened.source.close(), { once: true });
    opened.stored.catch(() => {});
    try {
      if ((options.verify ?? "before") === "before") await opened.verified;
      else opened.verified.catch(() => {});
    } catch (error) {
      opened.source.close();
      throw error;
    }
    return readable(opened);
  }
}

function readable({ source, name }: Opened): BytesOf {
  return { name, size: source.size, read: (offset: number, length: number) => source.read(offset, length) };
}

/** Whether the table of per-layer inputs will go to the GPU: as told, or where a budget has room for it. */
function tableFits({ table = "auto", gpuMemory }: PlainLoadOptions, { gpu }: MemoryUse): boolean {
  return table === "gpu" || (table === "auto" && gpuMemory !== undefined && gpu <= gpuMemory);
}

/** What the engine wants to know of a load, in its words. */
function engineOptions({ context, cache, table, gpuMemory }: PlainLoadOptions, opened: Opened): string {
  return JSON.stringify({ context, cache, table, gpuMemory, parameters: opened.info?.parameters ?? {} });
}
