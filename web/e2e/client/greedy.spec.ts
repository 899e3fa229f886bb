// Greedy tokens are those of other implementations, wherever the engine runs and whichever kernels it takes.
import { type Thread, expect, test } from "./fixtures.ts";
import { golden } from "./goldens.ts";

const CASES: { model: string; prompt: string; thread: Thread; subgroups: boolean }[] = [
  { model: "tiny-e2b-Q4_K_M", prompt: "short", thread: "worker", subgroups: true },
  { model: "tiny-e2b-Q4_K_M", prompt: "medium", thread: "page", subgroups: false },
  { model: "tiny-moe-Q4_K_M", prompt: "short", thread: "page", subgroups: true },
  { model: "tiny-moe-Q4_K_M", prompt: "short", thread: "worker", subgroups: false },
];

for (const { model, prompt, thread, subgroups } of CASES) {
  test(`${model}, ${prompt} prompt, in a ${thread}, ${subgroups ? "with" : "without"} subgroups`, async ({
    client,
  }) => {
    const wanted = await golden(model, prompt);
    const made = await client.evaluate(
      async ({ golden, thread, subgroups }) => {
        const options = { worker: thread === "worker", keep: false, features: { subgroups } };
        const loaded = await rullama.load(`/goldens/gguf/${golden.model}.gguf`, options);
        const session = await loaded.session({ cache: "f32", context: 128 });
        const events = [];
        for await (const event of session.completeIds(golden.prompt, {
          temperature: 0,
          maxTokens: golden.greedy.length,
        })) {
          events.push(event);
        }
        const tokens = [...(await session.tokens())];
        await loaded.free();
        return { tokens, last: events.at(-1), device: loaded.info.device };
      },
      { golden: wanted, thread, subgroups },
    );
    expect(made.tokens).toEqual([...wanted.prompt, ...wanted.greedy]);
    const usage = {
      promptTokens: wanted.prompt.length,
      cachedTokens: 0,
      answerTokens: wanted.greedy.length,
      context: 128,
    };
    expect(made.last).toMatchObject({ type: "done", finish: "length", usage });
  });
}
