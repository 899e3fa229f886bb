// The HTTP transport: requests of a `Model` answered by a server.

import { CancelledError, FreedError, RullamaError, rullamaError } from "../errors.js";
import type { AnswerRequest, CallOptions, Kind, Requests, Transport } from "../protocol.js";
import type { GenerateEvent } from "../types.js";
import type { Dialect, EncodedFile } from "./dialect.js";
import { encodedFile } from "./files.js";

type Handlers = {
  [K in Kind]?: (params: Requests[K]["params"], options: CallOptions<K>) => Promise<Requests[K]["result"]>;
};

const never = () => new Promise<never>(() => {});

export class HttpTransport implements Transport {
  private readonly files = new Map<number, EncodedFile[]>();
  private nextFile = 1;
  private nextSession = 1;
  private closed = false;

  constructor(
    private readonly dialect: Dialect,
    private readonly model: string,
  ) {}

  get alive(): boolean {
    return !this.closed;
  }

  close(): void {
    this.closed = true;
    this.files.clear();
  }

  async call<K extends Kind>(
    kind: K,
    params: Requests[K]["params"],
    options: CallOptions<K> = {},
  ): Promise<Requests[K]["result"]> {
    if (this.closed) throw new FreedError("the model was freed; connect again");
    const handler = this.handlers[kind] as Handlers[K];
    if (!handler) throw new RullamaError("bad_options", `${kind} needs a model in this tab, not one on a server`);
    try {
      return await handler(params, options);
    } catch (error) {
      throw options.signal?.aborted ? new CancelledError("cancelled", { cause: error }) : rullamaError(error);
    }
  }

  private readonly handlers: Handlers = {
    verified: async () => {},
    lost: never,
    session: async () => this.nextSession++,
    freeSession: async () => {},
    freeEncoders: async () => {},
    memory: async () => ({ gpu: 0, wasmHeap: 0, sessions: 0 }),
    freeModel: async () => this.close(),
    answer: ({ request }, { onEvent, signal }) => this.answer(request, onEvent ?? (() => {}), signal),
    encode: async ({ medium }) => this.keep([await encodedFile(medium)]),
    encodeVideo: async ({ images }) => {
      const frames = images.flatMap((image) => this.files.get(image) ?? []);
      for (const image of images) this.files.delete(image);
      return this.keep(frames);
    },
    forget: async ({ medium }) => void this.files.delete(medium),
    embed: ({ request }, { signal }) => {
      const { ids, purpose } = request;
      refuseGiven({ "token ids": ids, [`the purpose ${purpose}`]: purpose === "none" ? undefined : purpose });
      return this.dialect.embed(this.model, request, signal);
    },
    tokenize: async ({ model: _model, ...request }) =>
      Uint32Array.from(await this.dialect.tokenize(this.model, request)),
  };

  private keep(files: EncodedFile[]): number {
    const number = this.nextFile++;
    this.files.set(number, files);
    return number;
  }

  private async answer(
    request: AnswerRequest,
    onEvent: (event: GenerateEvent) => void,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    refuseLocal(request);
    const files = (request.media ?? []).map((number) => this.files.get(number) ?? []);
    const remote = { ...withPrefix(request), files };
    for await (const event of this.dialect.answer(this.model, remote, signal)) onEvent(event);
  }
}

/** Servers continue a last message of role `assistant`. */
function withPrefix(request: AnswerRequest): AnswerRequest {
  const { messages, prefix } = request;
  if (messages === undefined || prefix === undefined) return request;
  const { text, ...thought } = prefix;
  return { ...request, messages: [...messages, { role: "assistant", content: text, ...thought }] };
}

/** What only the engine in this tab knows. */
function refuseLocal({ ids, adapters, denoising, options }: AnswerRequest): void {
  refuseGiven({
    "token ids": ids,
    adapters: adapters?.length ? adapters : undefined,
    logprobs: options["logprobs"],
    "options of DiffusionGemma": denoising,
  });
}

function refuseGiven(given: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    throw new RullamaError("bad_options", `${name} cannot be used with a model on a server`);
  }
}
