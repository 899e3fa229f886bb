// The in-process transport: requests answered by the wasm in this thread.

import { deviceReport } from "./device.js";
import { CancelledError, FreedError, NetworkError, RullamaError, pack, rullamaError } from "./errors.js";
import { LoadedEmbedder } from "./loaded-embedder.js";
import { LoadedDecoder } from "./loaded-decoder.js";
import { type OpenBriefly, fitReport } from "./fit-report.js";
import { type Drafts, type LoadedModel, type LoadedDenoiser, loadModel, readable } from "./load-model.js";
import type { ModelFiles } from "./on-device.js";
import { networkOf } from "./network.js";
import { ProgressMeter } from "./progress.js";
import type { CallOptions, Kind, PlainLoadOptions, PlainSource, Requests, Settings, Transport } from "./protocol.js";
import { beforeAbort } from "./queue.js";
import { selfTest } from "./self-test.js";
import { removeAdapter, renameAdapter, storedAdapters } from "./storage/adapters.js";
import { startHashing } from "./start-hashing.js";
import {
  ModelStorage,
  type OpenOptions,
  type Opened,
  TUNING,
  checked,
  hashInWorker,
  keepFile,
  layerOf,
  layersOf,
  openModel,
  servedModels,
} from "./storage/index.js";
import type { FitReport, ModelKind, Progress } from "./types.js";
import { inspectTraining } from "./training-report.js";
import { templateHeap } from "./template.js";
import { startWasm } from "./wasm-file.js";
import type { BytesOf, InitOutput } from "./wasm/rullama.js";

type Handlers = {
  [K in Kind]: (params: Requests[K]["params"], options: CallOptions<K>) => Promise<Requests[K]["result"]>;
};

export class InProcessTransport implements Transport {
  /** Functions can be passed. */
  readonly isInProcess = true;
  private readonly models = new Map<number, LoadedModel>();
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
    session: ({ model, options }) => this.writer(model).session(options),
    answer: ({ model, session, request }, { onEvent, signal }) =>
      this.writer(model).answer(session, request, onEvent ?? (() => {}), signal),
    encode: ({ model, medium }, { signal }) => this.decoder(model).encode(medium, signal),
    encodeVideo: ({ model, images, seconds }) => this.decoder(model).encodeVideo(images, seconds),
    forget: async ({ model, medium }) => {
      // Only a decoder has encoded anything.
      const held = this.models.get(model);
      if (held instanceof LoadedDecoder) held.forget(medium);
    },
    tokens: ({ model, session }) => this.decoder(model).tokens(session),
    save: ({ model, session }) => this.decoder(model).save(session),
    restore: ({ model, session, saved }) => this.decoder(model).restore(session, saved),
    freeSession: async ({ model, session }) => {
      if (this.models.has(model)) await this.writer(model).freeSession(session);
    },
    tokenize: ({ model, text, special, bos }) => this.find(model).tokenize(text, special, bos),
    detokenize: ({ model, ids }) => this.writer(model).detokenize(ids),
    embed: ({ model, request }, { signal }) => this.embedder(model).embed(request, signal),
    memory: async ({ model }) => this.find(model).memory(),
    bench: ({ model, ...request }, { signal }) => this.decoder(model).bench(request, signal),
    benchEncoders: ({ model, ...request }, { signal }) => this.decoder(model).benchEncoders(request, signal),
    freeEncoders: ({ model }) => this.decoder(model).freeEncoders(),
    freeModel: async ({ model }) => {
      const held = this.models.get(model);
      this.models.delete(model);
      await held?.free();
    },
    served: async (_, { signal }) => (await servedModels(this.host(), signal)) ?? [],
    storage: () => this.stored.report(),
    remove: ({ id }) => this.stored.remove(id),
    keepFile: async ({ file, name }, { onEvent, signal }) => {
      const blob = "getFile" in file ? await file.getFile() : file;
      const onProgress = (done: number, total: number) => onEvent?.({ done, total });
      return keepFile(blob, { ...(name === undefined ? {} : { name }), onProgress, ...(signal ? { signal } : {}) });
    },
    addAdapter: ({ model, id, name, adapter, keep }) => this.decoder(model).adapters.add(id, name, adapter, keep),
    listAdapters: async ({ model }) => this.decoder(model).adapters.list(),
    removeAdapter: ({ model, id }) => this.decoder(model).adapters.remove(id),
    exportAdapter: ({ model, id, format }) => this.decoder(model).adapters.export(id, format),
    storedAdapters: () => storedAdapters(),
    renameAdapter: async ({ id, name }) => {
      for (const held of this.models.values()) if (held instanceof LoadedDecoder) held.adapters.rename(id, name);
      await renameAdapter(id, name);
    },
    deleteAdapter: ({ id }) => removeAdapter(id),
    inspectTraining: ({ model, data, options }) => inspectTraining(this.decoder(model), data, options),
    train: ({ model, id, begin }, { onEvent, signal }) =>
      this.decoder(model).trainings.train(id, begin, onEvent ?? (() => {}), signal),
    steerTraining: async ({ model, id, command }) => this.decoder(model).trainings.steer(id, command),
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

  private templateWasm(): Pick<Settings, "templateWasm"> {
    const { templateWasm } = this.settings;
    return templateWasm === undefined ? {} : { templateWasm };
  }

  private host(): string {
    return this.settings.host ?? globalThis.location.origin;
  }

  private find(id: number): LoadedModel {
    const model = this.models.get(id);
    if (!model) throw new FreedError("the model was freed; load it again");
    return model;
  }

  /** A model that answers. */
  private writer(id: number): LoadedDecoder | LoadedDenoiser {
    const model = this.find(id);
    if (!(model instanceof LoadedEmbedder)) return model;
    throw cannot(model, "answer: it turns texts into vectors, with `embed`");
  }

  /** A model that does what only decoders do. */
  private decoder(id: number): LoadedDecoder {
    const model = this.writer(id);
    if (model instanceof LoadedDecoder) return model;
    throw cannot(model, "do this: it denoises whole blocks, and it only generates text");
  }

  private embedder(id: number): LoadedEmbedder {
    const model = this.find(id);
    if (model instanceof LoadedEmbedder) return model;
    throw cannot(model, "make vectors: load an EmbeddingGemma for that");
  }

  private open(
    source: PlainSource,
    options: PlainLoadOptions,
    more: Pick<OpenOptions, "signal" | "onDownload" | "brief" | "name" | "digest"> = {},
  ): Promise<Opened> {
    const network = networkOf(options, this.host());
    const opening: OpenOptions = {
      host: this.host(),
      ...(options.sha256 === undefined ? {} : { sha256: options.sha256 }),
      ...more,
      ...(options.sharedFiles ? { sharedFiles: options.sharedFiles } : {}),
      keep: options.keep ?? true,
      hash: hashInWorker(() => startHashing(this.settings.wasm)),
    };
    return openModel(source, opening, { ...TUNING, ...network });
  }

  private async inspect(source: PlainSource, options: PlainLoadOptions, signal?: AbortSignal): Promise<FitReport> {
    await this.ready();
    // A look at the header is no reason to keep a file.
    const open: OpenBriefly = (from, { sha256: digest } = {}) => {
      const { sha256: _sha256, ...rest } = { ...options, headersFor: source };
      return this.open(from, { ...rest, keep: false }, { signal, brief: true, ...(digest ? { digest } : {}) });
    };
    const opened = await open(source, options);
    try {
      const words = (cpu: boolean) => engineOptions(options, opened, cpu);
      return await fitReport(opened, { options, words, host: this.host(), open, ...this.templateWasm() });
    } finally {
      opened.source.close();
    }
  }

  private async load(
    source: PlainSource,
    given: PlainLoadOptions,
    call: CallOptions<"load">,
  ): Promise<Requests["load"]["result"]> {
    const { signal } = call;
    const meter = new ProgressMeter((progress: Progress) => call.onEvent?.(progress));
    meter.phase("open");
    const exports = await this.ready();
    const onDownload = (have: number, total: number) => meter.downloaded(have, total);
    const options = { ...given, headersFor: source };
    const opened = await this.open(source, options, { signal, onDownload });
    // `verified` reports the failure.
    opened.verified.catch(() => {});
    opened.stored.catch(() => {});
    let adapters: Opened[] = [];
    try {
      // What can never be checked is refused before gigabytes of it are read.
      if ((options.verify ?? "before") === "before") await Promise.race([checked(opened), Promise.resolve()]);
      adapters = await this.ownAdapters(opened, options, signal);
      const held = await loadModel({
        opened,
        drafts: await this.drafts(opened, options, signal),
        adapters,
        options,
        words: engineOptions(options, opened),
        each: (done, total, waited) => {
          meter.loaded(done, total, waited / 1000);
          return signal?.aborted ?? false;
        },
        heap: () => exports.memory.buffer.byteLength + templateHeap(),
        files: this.files(opened, options),
        ...(this.settings.guidanceWasm === undefined ? {} : { guidanceWasm: this.settings.guidanceWasm }),
        ...this.templateWasm(),
        verify: () => this.verify(opened, options, meter, signal),
      });
      const id = this.nextModel++;
      this.models.set(id, held);
      return { model: id, info: held.info };
    } catch (error) {
      for (const { source } of [opened, ...adapters]) source.close();
      throw signal?.aborted ? new CancelledError() : error;
    }
  }

  /** The adapters that a model's name brings. */
  private async ownAdapters(opened: Opened, options: PlainLoadOptions, signal?: AbortSignal): Promise<Opened[]> {
    const layers = opened.info ? layersOf(opened.info, "adapter", this.host()) : [];
    const { sha256: _sha256, ...rest } = options;
    const adapters: Opened[] = [];
    for (const { url, sha256: digest } of layers) {
      const name = `${opened.name} (adapter ${adapters.length + 1})`;
      adapters.push(await this.open(url, rest, { signal, name, ...(digest ? { digest } : {}) }));
    }
    return adapters;
  }

  /** What drafts for a model: as told, else the drafter that its name brings. */
  private async drafts(opened: Opened, options: PlainLoadOptions, signal?: AbortSignal): Promise<Drafts> {
    const { draft } = options;
    if (draft === "off") return undefined;
    if (draft === "ngram") return { from: "ngram" };
    const { sha256: _sha256, ...rest } = options;
    if (draft !== undefined) return { from: "drafter", opened: await this.open(draft, rest, { signal }), own: false };
    const layer = opened.info && layerOf(opened.info, "drafter", this.host());
    if (!layer) return undefined;
    const { url, sha256: digest } = layer;
    const name = `${opened.name} (drafter)`;
    // One that cannot be had is no reason not to answer.
    const more = { signal, name, ...(digest ? { digest } : {}) };
    const found = await this.open(url, rest, more).catch(() => undefined);
    return found && { from: "drafter", opened: found, own: true };
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
      await beforeAbort(checked(opened), signal);
    }
    if (signal?.aborted) throw new CancelledError();
  }

  /** A loaded model's file, and that of its encoders: the one given, or the one that its name brings. */
  private files(opened: Opened, options: PlainLoadOptions): ModelFiles {
    const { sha256: _models, projector: given, ...rest } = options;
    const layer = opened.info && layerOf(opened.info, "projector", this.host());
    const source = given ?? layer?.url;
    const digest = given === undefined ? layer?.sha256 : undefined;
    const closing = new AbortController();
    return {
      ...(source === undefined ? {} : { projector: () => this.openProjector(source, rest, closing.signal, digest) }),
      close() {
        opened.source.close();
        closing.abort();
      },
    };
  }

  private async openProjector(
    source: PlainSource,
    options: PlainLoadOptions,
    signal: AbortSignal,
    digest?: string,
  ): Promise<BytesOf> {
    const opened = await this.open(source, options, { signal, ...(digest ? { digest } : {}) });
    signal.addEventListener("abort", () => opened.source.close(), { once: true });
    opened.stored.catch(() => {});
    try {
      if ((options.verify ?? "before") === "before") await checked(opened);
      else opened.verified.catch(() => {});
    } catch (error) {
      opened.source.close();
      throw error;
    }
    return readable(opened);
  }
}

function cannot({ info }: LoadedModel, what: string): RullamaError {
  const kinds: Record<ModelKind, string> = {
    decoder: "a Gemma 4",
    embedding: "an EmbeddingGemma",
    diffusion: "a DiffusionGemma",
    drafter: "a drafter",
  };
  return new RullamaError("bad_options", `${info.name} is ${kinds[info.kind]} and cannot ${what}`);
}

/** What the engine wants to know of a load, in its words. */
function engineOptions({ context, cache, table, gpuMemory }: PlainLoadOptions, opened: Opened, cpu = false): string {
  return JSON.stringify({ context, cache, table, gpuMemory, cpu, parameters: opened.info?.parameters ?? {} });
}
