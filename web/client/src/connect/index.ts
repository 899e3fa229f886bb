// A model on a server, with the interface of one in this tab.

import { CancelledError, NotFoundError, RullamaError } from "../errors.js";
import { Model } from "../model.js";
import type { ModelInfo } from "../types.js";
import type { Dialect } from "./dialect.js";
import { Server, type ServerOptions } from "./http.js";
import { OllamaDialect } from "./ollama.js";
import { OpenAiDialect } from "./openai.js";
import { HttpTransport } from "./transport.js";

export interface ConnectOptions extends ServerOptions {
  /** The model's name there; the first one it lists where absent. */
  model?: string;
  /** What the server speaks; found out where absent. */
  dialect?: "ollama" | "openai";
  signal?: AbortSignal;
}

/** Connects to `rullama serve`, Ollama, llama-server, vLLM or another server of OpenAI's or Ollama's API. */
export async function connect(url: string | URL, options: ConnectOptions = {}): Promise<Model> {
  const base = checked(url);
  const { signal } = options;
  const dialect = await dialectOf(base, options);
  const name = options.model ?? (await dialect.models(signal))[0];
  if (name === undefined) throw new NotFoundError(`${base} lists no models`);
  const told = await dialect.info(name, signal).catch((error: unknown) => {
    if (signal?.aborted) throw new CancelledError();
    if (error instanceof NotFoundError && dialect.name === "ollama") throw error;
    return {};
  });
  return new Model(new HttpTransport(dialect, name), 0, infoOf(name, base, dialect, told));
}

function checked(url: string | URL): string {
  const here = (globalThis.location as Location | undefined)?.href;
  let address: URL;
  try {
    address = new URL(url, here);
  } catch (error) {
    throw new RullamaError("bad_options", `${String(url)} is no address of a server`, { cause: error });
  }
  if (address.protocol !== "http:" && address.protocol !== "https:") {
    throw new RullamaError("bad_options", `${address.href} is not an http(s) address`);
  }
  return address.href.replace(/[?#].*$/u, "").replace(/\/+$/u, "");
}

async function dialectOf(base: string, options: ConnectOptions): Promise<Dialect> {
  const openai = () => new OpenAiDialect(new Server(/\/v\d+$/u.test(base) ? base : `${base}/v1`, options));
  const ollama = () => new OllamaDialect(new Server(base.replace(/\/(?:v\d+|api)$/u, ""), options));
  if (options.dialect !== undefined) return options.dialect === "ollama" ? ollama() : openai();
  if (/\/v\d+$/u.test(base)) return openai();
  const server = new Server(base.replace(/\/api$/u, ""), options);
  try {
    const { version } = (await server.get("/api/version", options.signal)) as { version?: unknown };
    if (typeof version === "string") return ollama();
  } catch (error) {
    // What cannot be reached at all speaks no other dialect either.
    const { code, status } = error as { code?: string; status?: number };
    if (code === "cancelled" || (code === "network" && status === undefined)) throw error;
  }
  return openai();
}

function infoOf(name: string, url: string, { name: dialect }: Dialect, told: Partial<ModelInfo>): ModelInfo {
  return {
    kind: "decoder",
    name,
    architecture: "",
    parameters: 0,
    quantization: "",
    fileBytes: 0,
    layers: 0,
    vocabulary: 0,
    trainedContext: Infinity,
    context: Infinity,
    thinking: false,
    memory: { weights: 0, caches: 0, work: 0, gpu: 0, tableOnGpu: false },
    device: new URL(url).host,
    defaults: {},
    ...told,
    remote: { url, dialect },
  };
}
