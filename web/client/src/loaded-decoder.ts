// A loaded decoder, in the thread of the engine: what it does beyond generating text.

import type { PlainConstraint } from "./constraint.js";
import { Guidance, startGuidance } from "./guidance.js";
import { LoadedAdapters, type Work } from "./loaded-adapters.js";
import { TrainingRuns } from "./training-run.js";
import { LoadedGenerator } from "./loaded-generator.js";
import { pollWhile } from "./poll-device.js";
import type { LoadedResources } from "./on-device.js";
import type { AnswerRequest, BenchRequest, PlainMedium, EncoderBenchRequest } from "./protocol.js";
import { benchEncoders } from "./encoder-bench.js";
import type { BenchResult, GenerateEvent, MemoryReport, EncoderBench, Tool } from "./types.js";
import type { Model, Session } from "./wasm/rullama.js";

/** The encoders do one thing at a time; numbers are keys of sessions. */
const ENCODERS = "encoders";

export class LoadedDecoder extends LoadedGenerator<Model, Session> {
  readonly adapters: LoadedAdapters;
  readonly trainings: TrainingRuns;
  protected override readonly isBatched = true;
  private attached = false;
  /** Grammars of constrained replies, once there was one. */
  private guidance: { constraints: Guidance; heap: () => number } | undefined;

  constructor(resources: LoadedResources, model: Model) {
    super(resources, model);
    const work: Work = (job, signal) => this.work(job, signal);
    this.adapters = new LoadedAdapters(model, resources.info.name, work);
    this.trainings = new TrainingRuns(model, resources.info.name, this.adapters, work);
  }

  override async answer(
    session: number | undefined,
    request: AnswerRequest,
    onEvent: (event: GenerateEvent) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    const { own } = this.adapters;
    const adapters = request.adapters ?? (own.length > 0 ? own : undefined);
    // Without a pause where there is nothing to look for: calls keep their order.
    if (request.adapters?.length) await this.adapters.ensure(request.adapters);
    return super.answer(session, { ...request, ...(adapters ? { adapters } : {}) }, onEvent, signal);
  }

  override memory(): MemoryReport {
    const memory = super.memory();
    const grammars = this.guidance?.heap() ?? 0;
    return { ...memory, gpu: memory.gpu + this.trainings.gpuBytes(), wasmHeap: memory.wasmHeap + grammars };
  }

  override async free(): Promise<void> {
    this.trainings.close();
    await super.free();
  }

  protected override async generate(
    session: Session,
    request: AnswerRequest,
    each: (event: string) => boolean,
  ): Promise<void> {
    const { constraint: wanted, ...rest } = request;
    if (wanted === undefined) return session.generate(JSON.stringify(rest), each);
    const constraints = await this.constraints();
    const tools = (rest.tools ?? []) as Tool[];
    const constraint = constraints.constraint(wanted as PlainConstraint, tools, rest.prefix?.text);
    try {
      await session.generate(JSON.stringify(rest), each, constraint);
    } catch (error) {
      // The engine only knows that its constraint failed.
      throw constraint.failure ?? error;
    } finally {
      constraint.free();
    }
  }

  private async constraints(): Promise<Guidance> {
    const { memory } = await startGuidance(this.resources.guidanceWasm);
    const constraints = this.guidance?.constraints ?? new Guidance(this.model);
    this.guidance = { constraints, heap: () => memory.buffer.byteLength };
    return constraints;
  }

  protected override release(): void {
    this.guidance?.constraints.free();
    super.release();
  }

  /** Encodes an image or audio clip; requests name the result by its number. */
  encode(medium: PlainMedium, signal?: AbortSignal): Promise<number> {
    const job = async () => {
      await this.attach();
      if (medium.kind === "audio") return this.model.encodeAudio(medium.samples, medium.channels, medium.rate);
      const encoding = this.model.encodeImage(medium.width, medium.height, medium.pixels, medium.tokens);
      const { browser } = this.resources.device;
      if (!browser) return encoding;
      return pollWhile(browser, encoding, () => this.gone !== undefined || signal?.aborted === true);
    };
    return this.share(job, ENCODERS, signal);
  }

  /** A projector is opened when something is to be encoded. */
  private async attach(): Promise<void> {
    const { projector } = this.resources.files;
    if (this.attached || !projector) return;
    this.model.attach(await projector());
    this.attached = true;
  }

  encodeVideo(images: number[], seconds: number[]): Promise<number> {
    return this.share(async () => {
      const video = this.model.joinVideo(Uint32Array.from(images), Float64Array.from(seconds));
      for (const image of images) this.model.forget(image);
      return video;
    }, ENCODERS);
  }

  freeEncoders(): Promise<void> {
    return this.share(async () => this.model.freeEncoders(), ENCODERS);
  }

  forget(medium: number): void {
    if (!this.gone) this.model.forget(medium);
  }

  softTokens(medium: number): number {
    return this.model.softTokens(medium);
  }

  benchEncoders(request: EncoderBenchRequest, signal?: AbortSignal): Promise<EncoderBench> {
    return benchEncoders(this, request, signal);
  }

  tokens(session: number): Promise<Uint32Array> {
    return this.share(async () => this.find(session).tokens(), session);
  }

  save(session: number): Promise<Uint8Array> {
    return this.share(() => this.find(session).save(), session);
  }

  restore(session: number, saved: Uint8Array): Promise<void> {
    return this.share(() => this.find(session).restore(saved), session);
  }

  bench(request: BenchRequest, signal?: AbortSignal): Promise<BenchResult> {
    return this.work(async () => {
      const context = Math.max(1, request.depth) + request.prompt + request.answer;
      const session = this.model.session(JSON.stringify({ context }));
      try {
        const stop = () => signal?.aborted ?? false;
        const once = () => session.bench(JSON.stringify(request), stop);
        // The first time makes lists and kernels ready, and a device that idled fast again: it does not count natively, either.
        await once();
        const measured = JSON.parse(await once()) as Omit<BenchResult, "device" | "memory">;
        const memory = this.memory();
        return { ...measured, device: this.info.device, memory: { ...memory, gpu: memory.gpu + session.gpuBytes() } };
      } finally {
        session.free();
      }
    }, signal);
  }
}
