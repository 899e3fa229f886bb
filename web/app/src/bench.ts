// The benchmark page: everything it does is in its address, and what it finds is JSON, so that programs can run it.
//
//   bench.html?model=URL&prompt=512&answer=128&depth=0,8192&repeat=3&keep=0&device=cpu&table=gpu&report=/log&done=/done
//
// `train=512` also trains an adapter on sequences of so many tokens, for `steps=8`.
// `image=1` also times an image of 280 soft tokens (or of so many: 70, 140, 560, 1120) and `audio=1` 30 seconds of audio (or so many),
// `repeat` times after a first one; `projector=URL` names the file of the encoders, where they are not inside the model's. An empty
// `depth` leaves out reading and writing.
// The result is shown, set as `window.result`, and posted to `report` and then to `done`, where these are given: addresses of the
// page's own origin, so that no other site learns what is measured here.
//
// The page runs without a click, so it is no part of the app: `npm run build:bench -w rullama-app` builds it into `bench-dist/`.

import {
  type BenchResult,
  type DeviceReport,
  type Engine,
  type LoadOptions,
  type Model,
  type ImageTokens,
  type Progress,
  type EncoderBench,
  openEngine,
} from "rullama";
import { sameOrigin } from "./lib/same-origin.js";

interface Result {
  model: string;
  device: string;
  facts: { features: string[]; subgroups?: { min: number; max: number }; matrixUnits?: boolean };
  load: LoadTimes & { bytesPerSecond: number };
  tests: { depth: number; runs: BenchResult[]; prefillTokensPerSecond: number; decodeTokensPerSecond: number }[];
  /** Each step behind the first two, which compile. */
  training?: { tokens: number; secondsPerStep: number[]; tokensPerSecond: number };
  encoders?: EncoderBench;
  dispatchesPerToken: number;
  gpuBytes: number;
  /** A wasm heap never shrinks, so this is its peak. */
  wasmHeap: number;
}

/** Where the seconds of a load went: to the first weights on the GPU, then waiting for bytes, in the engine, and at the end. */
interface LoadTimes {
  bytes: number;
  seconds: number;
  openSeconds: number;
  waitSeconds: number;
  engineSeconds: number;
  endSeconds: number;
}

declare global {
  var result: Result | { error: string; code?: string } | undefined;
}

/** What `subgroups=0`, `f16=0` and `matrix=0` switch off. */
const FEATURES = ["subgroups", "f16", "matrix"] as const;
const query = new URLSearchParams(location.search);
const number = (name: string, otherwise: number) => Number(query.get(name) ?? otherwise);

function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found;
}

function say(text: string): void {
  element("status").textContent = text;
}

const mean = (numbers: number[]) => numbers.reduce((sum, x) => sum + x, 0) / Math.max(1, numbers.length);

/** How to load, as the address says. */
function loadOptions(seen: (progress: Progress) => void): LoadOptions {
  const given = <T extends string>(name: string) => (query.has(name) ? { [name]: query.get(name) as T } : {});
  return {
    keep: query.get("keep") === "1",
    onProgress: (progress) => {
      seen(progress);
      const { phase, loaded, total, speed } = progress;
      const mb = (bytes: number) => (bytes / 1e6).toFixed(0);
      say(`${phase}: ${mb(loaded)} of ${mb(total)} MB, ${mb(speed)} MB/s`);
    },
    ...given<"auto" | "gpu" | "cpu">("device"),
    ...given<"auto" | "gpu" | "file">("table"),
    ...given<"f32" | "f16" | "q8">("cache"),
    ...given("projector"),
    features: Object.fromEntries(FEATURES.map((name) => [name, query.get(name) !== "0"])),
  };
}

async function timedLoad(engine: Engine, model: string): Promise<{ loaded: Model; times: LoadTimes }> {
  const start = performance.now();
  const told: { at: number; progress: Progress }[] = [];
  const options = loadOptions((progress) => {
    if (progress.phase === "load") told.push({ at: performance.now(), progress });
  });
  const loaded = await engine.load(model, options);
  const end = performance.now();
  const [first, last] = [told[0], told.at(-1)];
  if (!first || !last) throw new Error("nothing was told of the load");
  const waitSeconds = last.progress.waited - first.progress.waited;
  const times = {
    bytes: last.progress.loaded,
    seconds: (end - start) / 1000,
    openSeconds: (first.at - start) / 1000,
    waitSeconds,
    engineSeconds: (last.at - first.at) / 1000 - waitSeconds,
    endSeconds: (end - last.at) / 1000,
  };
  return { loaded, times };
}

/** Pairs of rank 16 on all projections learn sequences of arbitrary tokens, one sequence a step. */
async function timedTraining(loaded: Model, tokens: number): Promise<NonNullable<Result["training"]>> {
  const ids = Array.from({ length: tokens }, (_, i) => 1000 + ((i * 7919) % 1000));
  const data = JSON.stringify({ ids, n_prompt: 0 });
  const options = {
    rank: 16,
    batch: 1,
    steps: number("steps", 8),
    sequenceLength: tokens,
    checkpointEvery: 0,
    keep: false,
  };
  const training = await loaded.train(data, options);
  const ends: number[] = [];
  for await (const progress of training) {
    say(`training, step ${progress.step} of ${progress.steps}`);
    if (progress.step > ends.length) ends.push(performance.now());
  }
  await training.result;
  const secondsPerStep = ends.slice(2).map((end, i) => (end - (ends[i + 1] ?? end)) / 1000);
  return { tokens, secondsPerStep, tokensPerSecond: tokens / mean(secondsPerStep) };
}

function benchEncoders(loaded: Model): Promise<EncoderBench> {
  say("looking and listening");
  const asked = (name: string, usual: number) => (query.get(name) === "1" ? usual : number(name, 0));
  const imageTokens = asked("image", 280) as ImageTokens | 0;
  return loaded.benchEncoders({ imageTokens, seconds: asked("audio", 30), repeat: number("repeat", 10) });
}

function pick({ features, subgroups, matrixUnits }: DeviceReport): Result["facts"] {
  return { features, subgroups, matrixUnits };
}

async function measure(model: string): Promise<Result> {
  const engine = openEngine({ worker: query.get("worker") !== "0" });
  const report = await engine.device();
  const { loaded, times } = await timedLoad(engine, model);
  const tests: Result["tests"] = [];
  const depths = (query.get("depth") ?? "0").split(",").filter((depth) => depth !== "");
  for (const depth of depths.map(Number)) {
    const runs: BenchResult[] = [];
    for (let run = 1; run <= number("repeat", 3); run++) {
      say(`at depth ${depth}, run ${run}`);
      runs.push(await loaded.bench({ prompt: number("prompt", 512), answer: number("answer", 128), depth }));
    }
    tests.push({
      depth,
      runs,
      prefillTokensPerSecond: mean(runs.map((run) => run.prefillTokensPerSecond)),
      decodeTokensPerSecond: mean(runs.map((run) => run.decodeTokensPerSecond)),
    });
  }
  const last = tests.at(-1)?.runs.at(-1);
  const training = query.has("train") ? await timedTraining(loaded, number("train", 512)) : undefined;
  const encoders = query.has("image") || query.has("audio") ? await benchEncoders(loaded) : undefined;
  const { wasmHeap, gpu } = await loaded.memory();
  await loaded.free();
  engine.close();
  return {
    model,
    device: loaded.info.device,
    facts: pick(report),
    load: { ...times, bytesPerSecond: times.bytes / times.seconds },
    tests,
    ...(training ? { training } : {}),
    ...(encoders ? { encoders } : {}),
    dispatchesPerToken: last?.dispatchesPerToken ?? 0,
    gpuBytes: last?.memory.gpu ?? gpu,
    wasmHeap,
  };
}

async function run(): Promise<void> {
  const reports = ["report", "done"].flatMap((name) => sameOrigin(query.get(name), location.href) ?? []);
  const model = query.get("model");
  if (model === null) {
    say("Say which model in the address: ?model=URL&prompt=512&answer=128&depth=0,8192&repeat=3&keep=0&table=gpu");
    return;
  }
  const result = await measure(model).catch((error: unknown) => {
    const { message, code } = error as { message?: string; code?: string };
    return { error: message ?? String(error), ...(code === undefined ? {} : { code }) };
  });
  const text = JSON.stringify(result, undefined, 2);
  element("result").textContent = text;
  say("error" in result ? `failed: ${result.error}` : "finished");
  globalThis.result = result;
  for (const address of reports) await fetch(address, { method: "POST", body: text });
}

await run();
