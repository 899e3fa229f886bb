// A device that goes away in the middle of an answer.
import { type Thread, expect, test } from "./fixtures.ts";
import { WORKER } from "./lost.ts";

const MODEL = "/goldens/gguf/tiny-e2b-Q4_K_M.gguf";

for (const thread of ["page", "worker"] satisfies Thread[]) {
  test(
    `in a ${thread}: the answer fails, the model says so, and loading again helps`,
    { tag: thread === "page" ? "@slow" : [] },
    async ({ client, server }) => {
      server.script("/worker.js", WORKER);
      const made = await client.evaluate(
        async ({ url, worker }) => {
          const options = { keep: false, worker, workerScript: "/worker.js", context: 512 };
          const model = await rullama.load(url, options);
          const channel = new BroadcastChannel("devices");
          const destroy = () =>
            worker ? channel.postMessage("destroy") : gpuWatch.devices.forEach((device) => device.destroy());
          let heard = 0;
          let code = "none";
          try {
            for await (const event of model.complete("the cat", { temperature: 0, maxTokens: 400 })) {
              if (event.type === "text" && ++heard === 2) destroy();
            }
          } catch (error) {
            code = error instanceof rullama.DeviceLostError ? error.code : String(error);
          }
          const lost = await model.lost;
          const next = await model.memory().then(
            () => "none",
            (error) => error.code,
          );
          await model.free();
          const again = await rullama.load(url, options);
          let finish;
          for await (const event of again.complete("the cat", { temperature: 0, maxTokens: 3 })) {
            if (event.type === "done") finish = event.finish;
          }
          await again.free();
          return { heard, code, lost: lost.message, next, finish };
        },
        { url: MODEL, worker: thread === "worker" },
      );
      expect(made).toMatchObject({ code: "device_lost", next: "device_lost", finish: "length" });
      expect(made.lost).toContain("load the model again");
      expect(made.heard).toBeLessThan(300);
    },
  );
}
