// A model's adapters, as pages see them.

import type { AdaptersApi } from "./api.js";
import { BadAdapterError, NetworkError } from "./errors.js";
import type { Transport } from "./protocol.js";
import type { PlainAdapter } from "./training-protocol.js";
import type { AdapterFile, AdapterInfo, AdapterSource, AddAdapterOptions } from "./training-types.js";

const CONFIG = "adapter_config.json";
const WEIGHTS = "adapter_model.safetensors";

export class Adapters implements AdaptersApi {
  constructor(
    private readonly transport: Transport,
    private readonly model: number,
  ) {}

  async add(source: AdapterSource, options: AddAdapterOptions = {}): Promise<AdapterInfo> {
    const { adapter, name } = await opened(source);
    const stored = "stored" in adapter ? adapter.stored : undefined;
    const { id = stored ?? crypto.randomUUID(), keep = false } = options;
    const title = options.name ?? name;
    return this.transport.call("addAdapter", {
      model: this.model,
      id,
      adapter,
      keep,
      ...(title === undefined ? {} : { name: title }),
    });
  }

  list(): Promise<AdapterInfo[]> {
    return this.transport.call("listAdapters", { model: this.model });
  }

  remove(id: string): Promise<void> {
    return this.transport.call("removeAdapter", { model: this.model, id });
  }

  export(id: string, format: "peft" | "gguf" = "peft"): Promise<AdapterFile[]> {
    return this.transport.call("exportAdapter", { model: this.model, id, format });
  }
}

/** The bytes of a source, and what it is called. */
async function opened(source: AdapterSource): Promise<{ adapter: PlainAdapter; name?: string }> {
  if (typeof source === "string" || source instanceof URL) return fetched(source);
  if (source instanceof Blob) {
    return { adapter: { weights: source }, ...(source instanceof File ? { name: titleOf(source.name) } : {}) };
  }
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
    return { adapter: { weights: new Blob([source as BlobPart]) } };
  }
  if ("stored" in source) return { adapter: source };
  return ofFiles([...source]);
}

/** The files of a folder: the adapter, and PEFT's configuration where it is among them. */
async function ofFiles(files: File[]): Promise<{ adapter: PlainAdapter; name?: string }> {
  const weights =
    files.find(({ name }) => name === WEIGHTS) ?? files.find(({ name }) => /\.(safetensors|gguf)$/i.test(name));
  if (!weights) {
    const names = files.map(({ name }) => name).join(", ") || "no files";
    throw new BadAdapterError(`there is no adapter among ${names}: choose ${WEIGHTS} with ${CONFIG}, or a GGUF file`);
  }
  const config = await files.find(({ name }) => name === CONFIG)?.text();
  const [folder] = weights.webkitRelativePath.split("/");
  return {
    adapter: { weights, ...(config === undefined ? {} : { config }) },
    name: folder || titleOf(weights.name),
  };
}

function titleOf(file: string): string {
  return file.replace(/\.(safetensors|gguf)$/i, "");
}

async function fetched(source: URL | string): Promise<{ adapter: PlainAdapter; name?: string }> {
  const base = globalThis.document?.baseURI ?? globalThis.location.href;
  const address = new URL(source, base);
  const folder = address.pathname.endsWith("/");
  const file = folder ? new URL(WEIGHTS, address) : address;
  const weights = await (await answerOf(file)).blob();
  // A file of PEFT's may hold its configuration itself: the one beside it is welcome, but need not be there.
  const config = /\.gguf$/i.test(file.pathname)
    ? undefined
    : await answerOf(new URL(CONFIG, file)).catch(() => undefined);
  const [title] = address.pathname.split("/").filter(Boolean).slice(-1);
  return {
    adapter: { weights, ...(config === undefined ? {} : { config: await config.text() }) },
    ...(title === undefined ? {} : { name: titleOf(decodeURIComponent(title)) }),
  };
}

async function answerOf(address: URL): Promise<Response> {
  const response = await fetch(address).catch((error: unknown) => {
    throw new NetworkError(`${address.href} could not be fetched`, undefined, { cause: error });
  });
  if (response.ok) return response;
  throw new NetworkError(`${address.href} answered with status ${response.status}`, response.status);
}
