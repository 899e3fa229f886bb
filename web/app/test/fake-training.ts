// Made-up adapters and trainings for tests of the app: they learn nothing, but look as if they did.

import type {
  AdapterFile,
  AdapterInfo,
  AdapterSource,
  AdaptersApi,
  AddAdapterOptions,
  SavedTraining,
  StoredAdapter,
  TrainingData,
  TrainingOptions,
  TrainingProgress,
  TrainingReport,
  TrainingResult,
  TrainingSessionApi,
} from "rullama";
import { FakeError, pause, settings } from "./fake.js";

const ADAPTERS = "fake-adapters";
const RUNS = "fake-trainings";

const read = <T>(key: string): T[] => JSON.parse(localStorage.getItem(key) ?? "[]") as T[];
const write = (key: string, list: unknown[]) => localStorage.setItem(key, JSON.stringify(list));

export const storedAdapters = () => read<StoredAdapter>(ADAPTERS);
export const storeAdapters = (list: StoredAdapter[]) => write(ADAPTERS, list);
export const savedTrainings = () => read<SavedTraining>(RUNS);
export const saveTrainings = (list: SavedTraining[]) => write(RUNS, list);

function infoOf(id: string, name: string, rank: number): AdapterInfo {
  return {
    id,
    name,
    format: "peft",
    rank,
    alpha: 2 * rank,
    parameters: rank * 1_500_000,
    targets: ["attn_q"],
    withoutEffect: [],
  };
}

export class FakeAdapters implements AdaptersApi {
  readonly known = new Map<string, AdapterInfo>();

  constructor(private readonly model: string) {}

  async add(source: AdapterSource, options: AddAdapterOptions = {}): Promise<AdapterInfo> {
    await pause(5);
    const files = Array.isArray(source) ? (source as File[]) : [];
    if (files.some(({ name }) => name.includes("other"))) throw new FakeError("bad_adapter");
    const stored = typeof source === "object" && "stored" in source ? source.stored : undefined;
    const id = options.id ?? stored ?? crypto.randomUUID();
    const kept = storedAdapters().find((one) => one.id === stored);
    const info = infoOf(id, options.name ?? kept?.name ?? files[0]?.name ?? "adapter", 16);
    this.known.set(id, info);
    if (options.keep) this.keep(info);
    return info;
  }

  keep(info: AdapterInfo): void {
    const stored: StoredAdapter = { ...info, model: this.model, bytes: 24_000_000, added: Date.now() };
    storeAdapters([stored, ...storedAdapters()]);
  }

  list = async () => [...this.known.values()];

  async remove(id: string): Promise<void> {
    this.known.delete(id);
  }

  async export(): Promise<AdapterFile[]> {
    const bytes = new TextEncoder().encode("{}");
    return ["adapter_config.json", "adapter_model.safetensors"].map((name) => ({ name, bytes }));
  }
}

/** Lines with a prompt or messages are good; the last words of a line are learned. */
export async function report(data: TrainingData, options: TrainingOptions = {}): Promise<TrainingReport> {
  const text = typeof data === "string" ? data : await data.text();
  const lines = text.split("\n").map((line, index) => ({ line: index + 1, text: line.trim() }));
  const given = lines.filter(({ text: one }) => one !== "");
  const good = given.filter(({ text: one }) => one.startsWith("{") && one.endsWith("}"));
  const bad = given.filter((one) => !good.includes(one));
  const gpu = 3.7e9 + (options.rank ?? 16) * 60e6;
  return {
    examples: good.length,
    tokens: good.length * 40,
    learned: good.length * 16,
    longest: 40,
    cut: 0,
    dropped: 0,
    badLines: bad.map(({ line }) => ({ line, message: "expected value at line 1 column 1" })),
    bad: bad.length,
    preview: good.slice(0, 8).map(({ text: one }) => ({
      tokens: 40,
      learned: 16,
      spans: [
        { text: `<|turn>user\n${one.slice(0, 30)}<turn|>\n<|turn>model\n`, learned: false },
        { text: `${one.slice(30)}<turn|>`, learned: true },
      ],
    })),
    ...(good.length === 0
      ? {}
      : {
          steps: options.steps ?? good.length,
          batch: Math.min(4, good.length),
          evaluated: 0,
          memory: { model: 3.6e9, adapter: gpu - 3.7e9, work: 0.1e9, gpu, layersComputedTwice: 3 },
          verdict: settings().verdict ?? "fits",
        }),
    warnings: settings().warnings ?? [],
  };
}

export class FakeTraining implements TrainingSessionApi {
  readonly losses: number[] = [];
  readonly evaluations: { step: number; loss: number }[] = [];
  readonly result: Promise<TrainingResult>;
  progress: TrainingProgress;
  private readonly events: TrainingProgress[] = [];
  private wake = () => {};
  private paused = false;
  private cancelled = false;
  private ended = false;

  constructor(
    private readonly adapters: FakeAdapters,
    private readonly saved: SavedTraining,
  ) {
    const { step, steps } = saved;
    this.progress = { state: "running", step, steps, loss: 3, learningRate: 2e-4, tokensPerSecond: 900, eta: 10 };
    for (let done = 0; done < step; done++) this.losses.push(lossOf(done));
    saveTrainings([saved, ...savedTrainings().filter(({ id }) => id !== saved.id)]);
    this.result = this.run().finally(() => {
      this.ended = true;
      this.wake();
    });
    this.result.catch(() => {});
  }

  get id(): string {
    return this.saved.id;
  }

  private async run(): Promise<TrainingResult> {
    const { id, name, steps, options } = this.saved;
    while (this.progress.step < steps) {
      await pause(settings().trainingStep ?? 10);
      if (this.cancelled) {
        saveTrainings(savedTrainings().filter((one) => one.id !== id));
        throw new FakeError("cancelled");
      }
      if (this.paused) continue;
      const step = this.progress.step + 1;
      if (settings().trainingFailsAt === step) {
        delete settings().trainingFailsAt;
        this.save();
        throw new FakeError("device_lost");
      }
      this.losses.push(lossOf(step));
      if (options.evalSplit && step % 5 === 0) {
        this.evaluations.push({ step, loss: lossOf(step) + 0.2 });
        this.tell({ evalLoss: lossOf(step) + 0.2 });
      }
      this.tell({ step, loss: lossOf(step), eta: (steps - step) / 10 });
    }
    saveTrainings(savedTrainings().filter((one) => one.id !== id));
    const adapter = infoOf(id, name, options.rank ?? 16);
    this.adapters.known.set(id, adapter);
    this.adapters.keep(adapter);
    this.tell({ state: "done", eta: 0 });
    return { adapter, steps, loss: lossOf(steps), early: false };
  }

  private tell(changed: Partial<TrainingProgress>): void {
    this.progress = { ...this.progress, ...changed };
    this.events.push(this.progress);
    this.wake();
  }

  private save(): void {
    const { step, loss } = this.progress;
    saveTrainings(savedTrainings().map((one) => (one.id === this.id ? { ...one, step, loss } : one)));
  }

  async pause(): Promise<void> {
    this.paused = true;
    await pause(5);
    this.save();
    this.tell({ state: "paused", saved: this.progress.step });
  }

  async resume(): Promise<void> {
    this.paused = false;
    this.tell({ state: "running" });
  }

  async cancel(): Promise<void> {
    this.cancelled = true;
    await this.result.catch(() => {});
  }

  async checkpoint(): Promise<void> {
    this.save();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<TrainingProgress> {
    for (let next = 0; ;) {
      const event = this.events[next];
      if (event) {
        next++;
        yield event;
      } else if (this.ended) {
        await this.result;
        return;
      } else await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }
}

const lossOf = (step: number) => 0.2 + 3 * Math.exp(-step / 12);
