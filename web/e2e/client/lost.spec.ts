// A device that goes away in the middle of two answers.
import { type Thread, expect, test } from "./fixtures.ts";

for (const thread of ["page", "worker"] satisfies Thread[]) {
  const name = `in a ${thread}: the answers fail, the model says so, and loading again helps`;
  test(name, { tag: thread === "page" ? "@slow" : [] }, async ({ client }) => {
    const made = await client.evaluate(async (thread) => {
      const model = await sharedModel(thread);
      const channel = new BroadcastChannel("devices");
      const destroy = () =>
        thread === "worker" ? channel.postMessage("destroy") : gpuWatch.devices.forEach((device) => device.destroy());
      let heard = 0;
      const ask = async (text: string): Promise<string> => {
        try {
          for await (const event of model.complete(text, { temperature: 0, maxTokens: 400 })) {
            if (event.type === "text" && ++heard === 4) destroy();
          }
        } catch (error) {
          return error instanceof rullama.DeviceLostError ? error.code : String(error);
        }
        return "none";
      };
      // Two in one pass: both fail.
      const codes = await Promise.all([ask("the cat"), ask("a dog")]);
      const lost = await model.lost;
      const next = await model.memory().then(
        () => "none",
        (error) => error.code,
      );
      await release(thread);
      const session = await (await sharedModel(thread)).session();
      let finish;
      // One token of a prompt needs few kernels, and all are compiled anew.
      for await (const event of session.completeIds([2], { temperature: 0, maxTokens: 1 })) {
        if (event.type === "done") finish = event.finish;
      }
      await session.free();
      return { heard, codes, lost: lost.message, next, finish };
    }, thread);
    expect(made).toMatchObject({ codes: ["device_lost", "device_lost"], next: "device_lost", finish: "length" });
    expect(made.lost).toContain("load the model again");
    expect(made.heard).toBeLessThan(300);
  });
}
