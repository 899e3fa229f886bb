// The engine, as pages see it: the same over this thread and over a worker.

import type { EngineApi } from "./api.js";
import { RullamaError } from "./errors.js";
import { Model } from "./model.js";
import { pageAddress } from "./page-address.js";
import type { PlainLoadOptions, PlainSource, Transport } from "./protocol.js";
import {
  type SharedFile,
  digestsOf,
  findShared,
  handleRequest,
  isPublic,
  shareStored,
} from "./storage/cross-origin.js";
import { discardTraining, savedTrainings } from "./storage/trainings.js";
import { tablePlace } from "./table-place.js";
import type { SavedTraining, StoredAdapter } from "./training-types.js";
import type {
  DeviceReport,
  FitReport,
  LoadOptions,
  ModelSource,
  OpResult,
  ServedModel,
  StorageReport,
  StoredModel,
} from "./types.js";

export class Engine implements EngineApi {
  constructor(
    private readonly transport: Transport,
    private readonly host?: string,
  ) {}

  device(): Promise<DeviceReport> {
    return this.transport.call("device", undefined);
  }

  async inspect(source: ModelSource, options: LoadOptions = {}): Promise<FitReport> {
    const params = { source: plainSource(source), options: this.plain(options) };
    return this.transport.call("inspect", params, options.signal ? { signal: options.signal } : {});
  }

  async load(source: ModelSource, options: LoadOptions = {}): Promise<Model> {
    const { onProgress, signal } = options;
    const shared = await this.sharedFiles(source, options);
    const plain = { ...this.plain(options), ...(shared.files.length > 0 ? { sharedFiles: shared.files } : {}) };
    const params = { source: plainSource(source), options: plain };
    const { model, info } = await this.transport.call("load", params, {
      ...(onProgress ? { onEvent: onProgress } : {}),
      ...(signal ? { signal } : {}),
    });
    const loaded = new Model(this.transport, model, info);
    // Once the digest is known to be right; what cannot be shared stays in this site's storage.
    if (shared.missing.length > 0) void loaded.verified.then(() => shareAll(shared.missing)).catch(() => {});
    return loaded;
  }

  /** What Cross-Origin Storage has of a model's files, and what it lacks. */
  private async sharedFiles(
    source: ModelSource,
    options: LoadOptions,
  ): Promise<{ files: SharedFile[]; missing: string[] }> {
    if (!isPublic(options) || !handleRequest()) return { files: [], missing: [] };
    const digests = await digestsOf(source, this.host ?? pageAddress(), options);
    const files = await findShared(digests);
    return { files, missing: digests.filter((sha256) => !files.some((file) => file.sha256 === sha256)) };
  }

  served(signal?: AbortSignal): Promise<ServedModel[]> {
    return this.transport.call("served", undefined, signal ? { signal } : {});
  }

  storage(): Promise<StorageReport> {
    return this.transport.call("storage", undefined);
  }

  keepFile(
    file: Blob | FileSystemFileHandle,
    options: { name?: string; onProgress?: (done: number, total: number) => void; signal?: AbortSignal } = {},
  ): Promise<StoredModel> {
    const { name, onProgress, signal } = options;
    const params = { file, ...(name === undefined ? {} : { name }) };
    return this.transport.call("keepFile", params, {
      ...(onProgress ? { onEvent: ({ done, total }) => onProgress(done, total) } : {}),
      ...(signal ? { signal } : {}),
    });
  }

  /** Browsers take this from pages alone: workers have no `persist`, so it is not asked of the transport. */
  async persist(): Promise<boolean> {
    const storage = globalThis.navigator?.storage;
    if (typeof storage?.persist === "function") return storage.persist();
    return (await storage?.persisted?.()) ?? false;
  }

  remove(id: string): Promise<void> {
    return this.transport.call("remove", { id });
  }

  selfTest(
    options: { most?: number; onResult?: (result: OpResult) => void; signal?: AbortSignal } = {},
  ): Promise<OpResult[]> {
    const { most, onResult, signal } = options;
    return this.transport.call(
      "selfTest",
      { most: most ?? null },
      { ...(onResult ? { onEvent: onResult } : {}), ...(signal ? { signal } : {}) },
    );
  }

  storedAdapters(): Promise<StoredAdapter[]> {
    return this.transport.call("storedAdapters", undefined);
  }

  renameAdapter(id: string, name: string): Promise<void> {
    return this.transport.call("renameAdapter", { id, name });
  }

  deleteAdapter(id: string): Promise<void> {
    return this.transport.call("deleteAdapter", { id });
  }

  savedTrainings(): Promise<SavedTraining[]> {
    return savedTrainings();
  }

  discardTraining(id: string): Promise<void> {
    return discardTraining(id);
  }

  private plain(options: LoadOptions): PlainLoadOptions {
    if (options.fetch && !this.transport.isInProcess) {
      throw new RullamaError(
        "bad_options",
        "a fetch of your own needs { worker: false }: it cannot be posted to a worker",
      );
    }
    return plainOptions(options);
  }

  /** @internal False once it was closed or its worker broke. */
  get alive(): boolean {
    return this.transport.alive;
  }

  close(): void {
    this.transport.close();
  }
}

/** One after the other: each may have gigabytes. */
async function shareAll(digests: string[]): Promise<void> {
  for (const sha256 of digests) await shareStored(sha256);
}

/** Without what cannot be posted. */
function plainOptions(options: LoadOptions): PlainLoadOptions {
  const { onProgress: _onProgress, signal: _signal, draft, projector, table = "auto", ...plain } = options;
  return {
    ...plain,
    // Here and not in the worker, where an iPad cannot be told from a Mac.
    table: table === "auto" ? tablePlace(options.gpuMemory, globalThis.navigator) : table,
    ...(draft === undefined ? {} : { draft: plainSource(draft) }),
    ...(projector === undefined ? {} : { projector: plainSource(projector) }),
  };
}

/** Addresses as the page means them: a worker has another base. */
function plainSource(source: ModelSource): PlainSource {
  if (source instanceof URL) return source.href;
  if (typeof source !== "string") return source;
  const isAddress = /^(\.{0,2}\/|[a-z][a-z0-9+.-]*:\/\/)/i.test(source);
  return isAddress ? new URL(source, pageAddress()).href : source;
}
