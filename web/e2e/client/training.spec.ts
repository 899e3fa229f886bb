// Training in the browser: golden losses, checkpoints that survive, and adapters that come out.
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Thread, expect, test } from "./fixtures.ts";
import { GOLDENS } from "./goldens.ts";
import { ADAPTER_GGUF, MODEL, loraGolden, serveLora, tensorsOf } from "./lora.ts";
import { WORKER } from "./lost.ts";

/** Relative, per point of a curve: what the native tests hold. */
const CURVE = 1e-3;
const STEPS = 4;
/** Lets PEFT load a folder. */
const PEFT = join(GOLDENS, "../tools/peft/check.py");
/** As the golden curves were made. */
const AS_GOLDEN = { learningRate: 2e-3, weightDecay: 0.01, schedule: "constant", clip: null, batch: 1 } as const;

// SwiftShader compiles the gradients' kernels for minutes on a busy machine.
test.describe.configure({ timeout: 900_000 });
test.beforeEach(async ({ client, server }) => {
  await serveLora(server);
  await client.evaluate((url) => {
    globalThis.taught ??= rullama.load(url, { keep: false, context: 64, cache: "f32" });
  }, MODEL);
});

declare global {
  /** The model in a worker that tests share: kernels of gradients are compiled once for each device. */
  var taught: ReturnType<typeof rullama.load>;
}

async function dataset(): Promise<string> {
  const golden = await loraGolden();
  return JSON.stringify({ ids: golden("train.ids"), n_prompt: golden("train.n_prompt")[0] });
}

for (const thread of ["worker", "page"] satisfies Thread[]) {
  test(
    `in a ${thread}: the golden curve, an answer in between, and an adapter that is used and exported`,
    { tag: thread === "page" ? "@slow" : [] },
    async ({ client }, testInfo) => {
      const golden = await loraGolden();
      const made = await client.evaluate(
        async ({ url, gguf, worker, data, options, ids }) => {
          const model = await (worker ? taught : rullama.load(url, { worker, keep: false, context: 64, cache: "f32" }));
          await model.adapters.add(gguf, { id: "first" });
          const report = await model.inspectTraining(data, { ...options, init: "first" });
          const training = await model.train(data, { ...options, init: "first", name: "golden" });
          const events = [];
          let answered = 0;
          for await (const progress of training) {
            events.push(progress);
            if (progress.step === 1 && answered++ === 0) {
              for await (const _ of model.complete("the", { maxTokens: 1 })) void _;
              await model.memory();
            }
          }
          const { adapter, loss } = await training.result;
          const top = async (id: string) => {
            const session = await model.session();
            for await (const event of session.completeIds(ids, { maxTokens: 1, logprobs: 3, adapters: [{ id }] })) {
              if (event.type === "logprobs") return event.top.map(({ logprob }) => logprob);
            }
            return [];
          };
          const used = await top(adapter.id);
          const files = await model.adapters.export(adapter.id);
          const parts = files.map(({ name, bytes }) => new File([bytes], name));
          const back = await model.adapters.add(parts, { id: "back" });
          const again = await top(back.id);
          const [stored] = await rullama.openEngine().storedAdapters();
          const saved = await rullama.TrainingSession.saved();
          if (!worker) await model.free();
          const plain = files.map(({ name, bytes }) => ({ name, bytes: [...bytes] }));
          return { report, events, losses: training.losses, loss, adapter, used, again, plain, stored, saved };
        },
        {
          url: MODEL,
          gguf: ADAPTER_GGUF,
          worker: thread === "worker",
          data: await dataset(),
          options: { ...AS_GOLDEN, steps: STEPS },
          ids: golden("short.ids"),
        },
      );
      const curve = golden("train.random_b.loss_curve");
      const found = [...made.losses, made.loss];
      expect(found).toHaveLength(STEPS + 1);
      found.forEach((loss, step) => expect(Math.abs(loss / curve[step]! - 1), `step ${step}`).toBeLessThan(CURVE));
      expect(made.report).toMatchObject({ examples: 1, tokens: 40, learned: 16, bad: 0, steps: STEPS });
      expect(made.report.memory?.gpu).toBeGreaterThan(500_000);
      const [first] = made.events;
      expect(first).toMatchObject({ step: 1, steps: STEPS, state: "running", learningRate: 2e-3 });
      expect(first!.tokensPerSecond).toBeGreaterThan(0);
      expect(made.events.at(-1)).toMatchObject({ step: STEPS, state: "done", eta: 0 });
      expect(made.adapter).toMatchObject({ name: "golden", rank: 4 });
      expect(made.used).toHaveLength(3);
      expect(made.again).toEqual(made.used);
      expect(made.stored).toMatchObject({ id: made.adapter.id, name: "golden", format: "peft" });
      expect(made.saved).toEqual([]);
      expect(made.plain.map(({ name }) => name)).toEqual(["adapter_config.json", "adapter_model.safetensors"]);
      for (const { name, bytes } of made.plain) await writeFile(testInfo.outputPath(name), Uint8Array.from(bytes));
      // `cargo xtask` says where a Python with PEFT is, if there is one.
      const python = process.env.RULLAMA_PEFT_PYTHON;
      if (python) {
        const { stdout } = await promisify(execFile)(python, [PEFT, testInfo.outputDir]);
        expect(stdout).toContain(`PEFT holds all ${tensorsOf(Buffer.from(made.plain[1]!.bytes)).size} tensors`);
      }
      const tensors = tensorsOf(Buffer.from(made.plain[1]!.bytes));
      const prefix = "base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_";
      expect(tensors.get(`${prefix}A.weight`)?.shape).toEqual([4, 64]);
      expect(tensors.get(`${prefix}B.weight`)?.numbers.every(Number.isFinite)).toBe(true);
    },
  );
}

test(
  "an adapter's numbers are in the wasm's memory once, however it is trained, kept and read back",
  { tag: "@slow" },
  async ({ client }) => {
    const made = await client.evaluate(
      async (data) => {
        const model = await taught;
        const heap = async () => (await model.memory()).wasmHeap;
        const before = await heap();
        // So large that nothing else counts.
        const training = await model.train(data, { rank: 1024, steps: 2, name: "large" });
        await training.checkpoint();
        const { adapter } = await training.result;
        const trained = await heap();
        const [config, weights] = await model.adapters.export(adapter.id);
        await model.adapters.remove(adapter.id);
        const files = [config!, weights!].map(({ name, bytes }) => new File([bytes], name));
        await model.adapters.add(files, { id: "back" });
        const read = await heap();
        return { bytes: 4 * adapter.parameters, trained: trained - before, read: read - before };
      },
      JSON.stringify({ ids: [2, 5, 6, 7, 8, 9], n_prompt: 2 }),
    );
    expect(made.bytes).toBeGreaterThan(10e6);
    expect(made.trained / made.bytes).toBeLessThan(1.6);
    expect(made.read / made.bytes).toBeLessThan(1.6);
  },
);

test("bad lines, options that make no sense, and cancelling", async ({ client }) => {
  const made = await client.evaluate(
    async (data) => {
      const model = await taught;
      const mixed = `${data}\n\n{"prompt": 1, "completion": "x"}\nnonsense`;
      const report = await model.inspectTraining(mixed, { rank: 2 });
      const failing = async (data: string, options: object) => {
        try {
          await model.train(data, options);
        } catch (error) {
          const { code, line, message } = error as { code: string; line?: number; message: string };
          return { code, line, message };
        }
        return { code: "none" };
      };
      const bad = await failing(mixed, {});
      const typo = await failing(data, { learningrate: 1 });
      const target = await failing(data, { targets: ["nose"] });
      const small = await model.inspectTraining(data, { memory: 1000 });
      const training = await model.train(data, { rank: 2, steps: 1000 });
      await training.cancel();
      const cancelled = await training.result.catch((error: { code: string }) => error.code);
      const saved = await rullama.TrainingSession.saved();
      return { report, bad, typo, target, small, cancelled, saved };
    },
    await dataset(),
  );
  expect(made.report).toMatchObject({ examples: 1, bad: 2 });
  expect(made.report.badLines.map(({ line }) => line)).toEqual([3, 4]);
  expect(made.report.preview[0]?.spans.map(({ learned }) => learned)).toEqual([false, true]);
  expect(made.bad).toMatchObject({ code: "bad_data", line: 3 });
  expect(made.typo.code).toBe("bad_options");
  expect(made.typo.message).toContain("learningrate");
  expect(made.target.code).toBe("bad_options");
  expect(made.small.problem).toContain("1000");
  expect(made).toMatchObject({ cancelled: "cancelled", saved: [] });
});

test(
  "a checkpoint goes on after a reload to the same numbers, also where the newest one is broken",
  { tag: "@slow" },
  async ({ client }) => {
    const options = { ...AS_GOLDEN, rank: 4, targets: ["q_proj", "down_proj"], dropout: 0.2, steps: STEPS };
    const data = `${await dataset()}\n${JSON.stringify({ ids: [2, 5, 6, 7, 8, 9], n_prompt: 2 })}`;
    const whole = await client.evaluate(
      async ({ data, options }) => {
        const model = await taught;
        const training = await model.train(data, { ...options, keep: false });
        const { loss } = await training.result;
        // Paused behind the third step: one checkpoint from the second, one from the pause.
        const second = await model.train(data, { ...options, keep: false, checkpointEvery: 2 });
        for await (const { step } of second) if (step === 2) break;
        await second.pause();
        return { losses: [...training.losses, loss], paused: second.progress.state, step: second.progress.step };
      },
      { data, options },
    );
    expect(whole.paused).toBe("paused");
    await client.reload();
    await client.waitForFunction(() => "rullama" in globalThis);
    const rest = await client.evaluate(async (url) => {
      const [saved] = await rullama.TrainingSession.saved();
      if (!saved) throw new Error("nothing was saved");
      const root = await navigator.storage.getDirectory();
      const folder = await (await root.getDirectoryHandle("rullama")).getDirectoryHandle("training");
      const run = await folder.getDirectoryHandle(saved.id);
      let places = 0;
      let newest: { at: number; handle: FileSystemFileHandle } | undefined;
      for await (const [name, handle] of run.entries()) {
        if (!name.startsWith("checkpoint") || !(handle instanceof FileSystemFileHandle)) continue;
        places++;
        const at = (await handle.getFile()).lastModified;
        if (!newest || at >= newest.at) newest = { at, handle };
      }
      if (places === 2) {
        // As a crash in the middle of writing would leave it.
        const stream = await newest!.handle.createWritable({ keepExistingData: true });
        await stream.write({ type: "write", position: 1000, data: new Uint8Array(64) });
        await stream.close();
      }
      const model = await rullama.load(url, { keep: false, context: 64 });
      const training = await rullama.TrainingSession.continue(model, saved.id);
      const begun = training.progress.step;
      const { loss } = await training.result;
      const left = await rullama.TrainingSession.saved();
      await model.free();
      return { saved, places, begun, losses: [...training.losses, loss], left };
    }, MODEL);
    expect(rest.saved.step).toBe(whole.step);
    expect(rest.begun).toBeLessThanOrEqual(whole.step);
    expect(rest.losses).toEqual(whole.losses);
    expect(rest.left).toEqual([]);
  },
);

test(
  "a lost device: the training fails, and goes on from its checkpoint once the model is loaded again",
  { tag: "@slow" },
  async ({ client, server }) => {
    server.script("/worker.js", WORKER);
    const made = await client.evaluate(
      async ({ url, data, options }) => {
        const engine = { keep: false, workerScript: "/worker.js", context: 64 };
        const model = await rullama.load(url, engine);
        const training = await model.train(data, options);
        const channel = new BroadcastChannel("devices");
        let code = "none";
        try {
          for await (const { step, saved } of training) if (step === 2 && saved) channel.postMessage("destroy");
        } catch (error) {
          code = error instanceof rullama.DeviceLostError ? error.code : String(error);
        }
        await model.lost;
        await model.free();
        const again = await rullama.load(url, engine);
        const [saved] = await rullama.TrainingSession.saved();
        const rest = await again.continueTraining(saved!.id);
        const begun = rest.progress.step;
        const { steps } = await rest.result;
        await again.free();
        return { code, begun, steps };
      },
      {
        url: MODEL,
        data: await dataset(),
        options: { ...AS_GOLDEN, rank: 2, steps: 10, checkpointEvery: 2, keep: false },
      },
    );
    expect(made).toMatchObject({ code: "device_lost", steps: 10 });
    expect(made.begun).toBeGreaterThanOrEqual(2);
  },
);
