// The engine in this thread: requests answered by the wasm.

import { deviceReport, openDevice } from "./device.js";
import { CancelledError, FreedError, NetworkError, pack, rullamaError } from "./errors.js";
import { fit } from "./fit.js";
import { HeldModel } from "./held.js";
import { ProgressMeter } from "./progress.js";
import type { CallOptions, Kind, PlainLoadOptions, PlainSource, Requests, Settings, Transport } from "./protocol.js";
import { aborted } from "./queue.js";
import { selfTest } from "./self-test.js";
import { removeAdapter, renameAdapter, storedAdapters } from "./storage/adapters.js";
import { startHashing } from "./workers.js";
import { ModelStorage, type Opened, hashInWorker, openModel, servedModels } from "./storage/index.js";
import type { FitReport, MemoryUse, ModelInfo, Progress } from "./types.js";
import { inspectTraining } from "./training-report.js";
import { startWasm } from "./wasm-file.js";
import { Device, type InitOutput, Model, inspect } from "./wasm/rullama.js";

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
    forget: async ({ model, medium }) => this.models.get(model)?.forget(medium),
    tokens: ({ model, session }) => this.find(model).tokens(session),
    save: ({ model, session }) => this.find(model).save(session),
    restore: ({ model, session, saved }) => this.find(model).restore(session, saved),
    freeSession: async ({ model, session }) => this.models.get(model)?.freeSession(session),
    tokenize: ({ model, text, special, bos }) => this.find(model).tokenize(text, special, bos),
    detokenize: ({ model, ids }) => this.find(model).detokenize(ids),
    memory: async ({ model }) => this.find(model).memory(),
    bench: ({ model, ...request }, { signal }) => this.find(model).bench(request, signal),
    freeModel: async ({ model }) => {
      const held = this.models.get(model);
      this.models.delete(model);
      await held?.free();
    },
    served: async (_, { signal }) => (await servedModels(this.host(), signal)) ?? [],
    storage: () => this.stored.report(),
    persist: () => this.stored.persist(),
    remove: ({ id }) => this.stored.remove(id),
    addAdapter: ({ model, id, name, adapter, keep }) => this.find(model).adapters.add(id, name, adapter, keep),
    listAdapters: async ({ model }) => this.find(model).adapters.list(),
    removeAdapter: ({ model, id }) => this.find(model).adapters.remove(id),
    exportAdapter: ({ model, id, format }) => this.find(model).adapters.export(id, format),
    storedAdapters: () => storedAdapters(),
    renameAdapter: async ({ id, name }) => {
      for (const { adapters } of this.models.values()) adapters.rename(id, name);
      await renameAdapter(id, name);
    },
    deleteAdapter: ({ id }) => removeAdapter(id),
    inspectTraining: ({ model, data, options }) => inspectTraining(this.find(model), data, options),
    train: ({ model, id, begin }, { onEvent, signal }) =>
      this.find(model).trainings.train(id, begin, onEvent ?? (() => {}), signal),
    steerTraining: async ({ model, id, command }) => this.find(model).trainings.steer(id, command),
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
    signal?: AbortSignal,
    onDownload?: (have: number, total: number) => void,
  ): Promise<Opened> {
    return openModel(source, {
      host: this.host(),
      ...(options.sha256 === undefined ? {} : { sha256: options.sha256 }),
      ...(signal === undefined ? {} : { signal }),
      ...(onDownload === undefined ? {} : { onDownload }),
      keep: options.keep ?? true,
      hash: hashInWorker(() => startHashing(this.settings.wasm)),
    });
  }

  private async inspect(source: PlainSource, options: PlainLoadOptions, signal?: AbortSignal): Promise<FitReport> {
    await this.ready();
    // A look at the header is no reason to keep a file.
    const opened = await this.open(source, { ...options, keep: false }, signal);
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
    const opened = await this.open(source, options, signal, (have, total) => meter.downloaded(have, total));
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
        return this.hold(opened, model, device, exports);
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
  ): Requests["load"]["result"] {
    const system = opened.info?.system;
    const info: ModelInfo = {
      ...(JSON.parse(model.info()) as Omit<ModelInfo, "name" | "system">),
      name: opened.name,
      ...(system ? { system } : {}),
    };
    const heap = () => exports.memory.buffer.byteLength;
    const held = new HeldModel(info, opened.verified, model, device, heap, () => opened.source.close());
    const id = this.nextModel++;
    this.models.set(id, held);
    return { model: id, info };
  }
}

function readable({ source, name }: Opened) {
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
