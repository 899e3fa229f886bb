// Adapters of a loaded model, in the thread of the engine.

import { BadAdapterError, rullamaError } from "./errors.js";
import { type AdapterFiles, CONFIG, WEIGHTS, openAdapter, storeAdapter, unknownAdapter } from "./storage/adapters.js";
import type { PlainAdapter } from "./training-protocol.js";
import type { AdapterFile, AdapterInfo, StoredAdapter } from "./training-types.js";
import type { BytesOf, Model } from "./wasm/rullama.js";

/** Runs a job after what came before on the model's device. */
export type Work = <T>(job: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

/** What the wasm says of an adapter. */
export type Facts = Omit<AdapterInfo, "id" | "name">;

/** A blob as the wasm reads it. */
export function bytesOfBlob(name: string, blob: Blob): BytesOf {
  return {
    name,
    size: blob.size,
    read: async (offset, length) => new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer()),
    done: () => {},
  };
}

export class LoadedAdapters {
  /** Those that the model's name brings: part of it unless a request says otherwise. */
  readonly own: { id: string; weight: number }[] = [];
  private readonly known = new Map<string, AdapterInfo>();

  constructor(
    private readonly model: Model,
    private readonly modelName: string,
    private readonly work: Work,
  ) {}

  async add(id: string, name: string | undefined, adapter: PlainAdapter, keep: boolean): Promise<AdapterInfo> {
    if ("stored" in adapter) return this.addStored(id, name, adapter.stored);
    const { weights } = adapter;
    const title = name ?? (weights instanceof File ? weights.name.replace(/\.(safetensors|gguf)$/i, "") : "adapter");
    const info = await this.read(id, title, adapter);
    if (keep) await this.store(info, adapter);
    return info;
  }

  /** Adds one that the model's name brings. */
  async addOwn(file: BytesOf): Promise<void> {
    const { id } = await this.readFrom(file.name, file.name, file);
    this.own.push({ id, weight: 1 });
  }

  private async addStored(id: string, name: string | undefined, stored: string): Promise<AdapterInfo> {
    const found = await openAdapter(stored);
    if (!found) throw unknownAdapter(stored);
    return this.read(id, name ?? found.about.name, found.files);
  }

  private read(id: string, name: string, { weights, config }: AdapterFiles): Promise<AdapterInfo> {
    return this.readFrom(id, name, bytesOfBlob(name, weights), config);
  }

  private async readFrom(id: string, name: string, file: BytesOf, config?: string): Promise<AdapterInfo> {
    try {
      const facts = JSON.parse(await this.work(() => this.model.addAdapter(id, file, config))) as Facts;
      return this.remember(id, name, facts);
    } catch (error) {
      const known = rullamaError(error);
      // Files of adapters that are broken are no broken models.
      throw known.code === "bad_file" ? new BadAdapterError(known.message, [], { cause: known }) : known;
    }
  }

  remember(id: string, name: string, facts: Facts): AdapterInfo {
    const info = { id, name, ...facts };
    this.known.set(id, info);
    return info;
  }

  list(): AdapterInfo[] {
    return [...this.known.values()];
  }

  remove(id: string): Promise<void> {
    return this.work(async () => {
      this.known.delete(id);
      this.model.removeAdapter(id);
    });
  }

  rename(id: string, name: string): void {
    const info = this.known.get(id);
    if (info) info.name = name;
  }

  /** Its files: PEFT's two, or one GGUF file. */
  export(id: string, format: "peft" | "gguf"): Promise<AdapterFile[]> {
    return this.work(async () => {
      const files: AdapterFile[] = [];
      for (const [name, file] of this.pieces(id, format)) {
        files.push({ name, bytes: new Uint8Array(await new Blob(file).arrayBuffer()) });
      }
      return files;
    });
  }

  /** Its files in pieces, by name: the wasm holds one piece at a time. */
  private pieces(id: string, format: "peft" | "gguf"): Map<string, Uint8Array<ArrayBuffer>[]> {
    const files = new Map<string, Uint8Array<ArrayBuffer>[]>();
    const each = (name: string, piece: Uint8Array<ArrayBuffer>) => {
      files.set(name, [...(files.get(name) ?? []), piece]);
    };
    this.model.exportAdapter(id, this.modelName, format === "gguf", each);
    return files;
  }

  /** Keeps an adapter of the model as it is. */
  async keep(info: AdapterInfo): Promise<void> {
    const files = await this.work(async () => this.pieces(info.id, "peft"));
    const blob = (name: string) => new Blob(files.get(name));
    await this.store(info, { weights: blob(WEIGHTS), config: await blob(CONFIG).text() });
  }

  private async store(info: AdapterInfo, files: AdapterFiles): Promise<void> {
    const { withoutEffect: _withoutEffect, ...about } = info;
    const stored: StoredAdapter = {
      ...about,
      model: this.modelName,
      bytes: files.weights.size,
      added: Date.now(),
    };
    await storeAdapter(stored, files);
  }

  /** Adds those of these that this browser keeps. */
  async ensure(adapters: { id: string }[]): Promise<void> {
    for (const { id } of adapters) {
      if (this.known.has(id)) continue;
      const found = await openAdapter(id).catch(() => undefined);
      if (found) await this.read(id, found.about.name, found.files);
    }
  }
}
