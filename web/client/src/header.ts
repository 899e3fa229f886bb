// A model's file without its weights: its header, tokenizer and chat template. No GPU is needed, so that this works in every runtime.

import { CancelledError, RullamaError, rullamaError } from "./errors.js";
import { readable } from "./load-model.js";
import { networkOf } from "./network.js";
import { pageAddress } from "./page-address.js";
import { chatRequest } from "./sampling.js";
import { DiskSource, diskPath } from "./storage/disk.js";
import { type Opened, TUNING, openModel } from "./storage/index.js";
import type { EngineOptions, GenerateOptions, LoadOptions, Message, ModelKind, ModelSource } from "./types.js";
import { openWithTemplate } from "./template.js";
import { startWasm } from "./wasm-file.js";
import type { Header } from "./wasm/rullama.js";

/** How a header is read. */
export type HeaderOptions = Pick<LoadOptions, "headers" | "token" | "fetch" | "signal"> &
  Pick<EngineOptions, "host" | "wasm" | "templateWasm">;

/** A tensor of a file; the first dimension is the length of a row. */
export interface TensorInfo {
  name: string;
  /** The quantisation format, such as `Q4_K`. */
  type: string;
  shape: number[];
  bytes: number;
}

/** A conversation as the model reads it. */
export interface RenderedPrompt {
  text: string;
  /** Its tokens. Images and audio are one token each: how many they take is known once they are encoded. */
  ids: Uint32Array;
}

/** The header of a model's file. */
export class ModelHeader {
  /** What the model does. */
  readonly kind: ModelKind;

  /** @internal */
  constructor(
    private readonly header: Header,
    /** The name it was opened by, or its file's name. */
    readonly name: string,
    private readonly system?: string,
  ) {
    this.kind = header.kind() as ModelKind;
  }

  /** The keys of the metadata, in the order of the file. */
  keys(): string[] {
    return JSON.parse(this.header.keys()) as string[];
  }

  /** The value of a key of the metadata; undefined where there is none. */
  value(key: string): unknown {
    const text = this.header.value(key);
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  }

  tensors(): TensorInfo[] {
    return JSON.parse(this.header.tensors()) as TensorInfo[];
  }

  /** The tokens of a text; `special` recognises special tokens in it, `bos` puts the token before it that begins a sequence. */
  tokenize(text: string, options: { special?: boolean; bos?: boolean } = {}): Uint32Array {
    const { special = false, bos = false } = options;
    return ours(() => this.header.tokenize(text, special, bos));
  }

  /** The text of tokens, special ones included. */
  detokenize(ids: Iterable<number>): string {
    return ours(() => this.header.detokenize(Uint32Array.from(ids)));
  }

  /** A conversation as the chat template writes it, up to where the reply begins. */
  render(messages: Message[], options: Pick<GenerateOptions, "tools" | "toolChoice" | "think"> = {}): RenderedPrompt {
    const { messages: turns, tools, think, prefix } = chatRequest(messages, options, this.system, () => ({}));
    const { text, ids } = JSON.parse(
      ours(() => this.header.render(JSON.stringify({ messages: turns, tools, think, prefix }))),
    ) as { text: string; ids: number[] };
    return { text, ids: Uint32Array.from(ids) };
  }

  /** Frees its memory; nothing can be asked of it afterwards. */
  free(): void {
    this.header.free();
  }
}

/**
 * Reads the header of a model's file, a few megabytes of it: of a picked file, an address, a name, or, under Node, Deno and Bun, a path.
 */
export async function openHeader(source: ModelSource, options: HeaderOptions = {}): Promise<ModelHeader> {
  const base = pageAddress();
  const [wasm, templateWasm] = [options.wasm, options.templateWasm].map((address) =>
    address === undefined ? undefined : new URL(address, base).href,
  );
  await startWasm(wasm);
  const opened = await open(source, options, base);
  try {
    const header = await openWithTemplate(readable(opened), templateWasm);
    return new ModelHeader(header, opened.name, opened.info?.system ?? undefined);
  } catch (error) {
    throw options.signal?.aborted ? new CancelledError() : rullamaError(error);
  } finally {
    opened.source.close();
  }
}

async function open(source: ModelSource, options: HeaderOptions, base: string): Promise<Opened> {
  const path = diskPath(source);
  if (path !== undefined) return openPath(path);
  const host = options.host === undefined ? new URL(base).origin : new URL(options.host, base).href;
  const named = source instanceof URL ? source.href : source;
  const headersFor = typeof named === "string" ? { headersFor: named } : {};
  // A look at the header is no reason to keep a file, and a part of it has no checksum.
  const hash = () => Promise.reject(new RullamaError("unverified", "a header alone has no checksum"));
  const { signal } = options;
  const opened = await openModel(
    source,
    { host, keep: false, brief: true, hash, ...(signal ? { signal } : {}) },
    { ...TUNING, ...networkOf({ ...options, ...headersFor }, host) },
  );
  opened.verified.catch(() => {});
  opened.stored.catch(() => {});
  return opened;
}

async function openPath(path: string | URL): Promise<Opened> {
  const source = await DiskSource.open(path);
  const whole = path instanceof URL ? decodeURIComponent(path.pathname) : path;
  const name = whole.split(/[/\\]/u).at(-1) ?? "";
  const settled = { verified: Promise.resolve(), stored: Promise.resolve() };
  return { source, name, strict: false, ...settled };
}

/** Failures of the wasm as this package's. */
function ours<T>(job: () => T): T {
  try {
    return job();
  } catch (error) {
    throw rullamaError(error);
  }
}
