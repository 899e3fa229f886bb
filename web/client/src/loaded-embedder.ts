// A loaded text embedding model, in the thread of the engine.

import { type LoadedResources, OnDevice, quietly } from "./on-device.js";
import type { EmbedRequest, PlainVectors } from "./protocol.js";
import type { MemoryReport } from "./types.js";
import type { Embedder } from "./wasm/rullama.js";

export class LoadedEmbedder extends OnDevice {
  constructor(
    resources: LoadedResources,
    private readonly model: Embedder,
  ) {
    super(resources);
  }

  embed(request: EmbedRequest, signal?: AbortSignal): Promise<PlainVectors> {
    return this.work(async () => {
      const made = await this.model.embed(JSON.stringify(request));
      try {
        const { count, tokens, cut } = made;
        return { values: made.takeValues() as Float32Array<ArrayBuffer>, count, tokens, cut };
      } finally {
        made.free();
      }
    }, signal);
  }

  /** Always with the ends it reads texts with, and never with markers. */
  async tokenize(text: string, _special: boolean, _bos: boolean): Promise<Uint32Array> {
    if (this.gone) throw this.gone;
    return this.model.tokenize(text);
  }

  memory(): MemoryReport {
    if (this.gone) throw this.gone;
    return { gpu: this.model.gpuBytes(), wasmHeap: this.resources.heap(), sessions: 0 };
  }

  protected release(): void {
    quietly(() => this.model.free());
  }
}
