// Greedy tokens are those of other implementations, wherever the engine runs and whichever kernels it takes.
import { NAME, type Thread, expect, test } from "./fixtures.ts";
import { type Golden, golden } from "./goldens.ts";

/** A software GPU takes half a second for each. */
const TOKENS = 6;

function check(wanted: Golden, made: { tokens: number[]; last: unknown }): void {
  expect(made.tokens).toEqual([...wanted.prompt, ...wanted.greedy]);
  const usage = { promptTokens: wanted.prompt.length, cachedTokens: 0, answerTokens: wanted.greedy.length };
  expect(made.last).toMatchObject({ type: "done", finish: "length", usage });
}

for (const thread of ["page", "worker"] satisfies Thread[]) {
  test(`in a ${thread}, ${thread === "worker" ? "with" : "without"} subgroups`, async ({ client }) => {
    const wanted = await golden(NAME, "short", TOKENS);
    const made = await client.evaluate(
      async ({ golden, thread }) => {
        const session = await (await sharedModel(thread)).session();
        let last;
        const options = { temperature: 0, maxTokens: golden.greedy.length };
        for await (const event of session.completeIds(golden.prompt, options)) last = event;
        const tokens = [...(await session.tokens())];
        await session.free();
        return { tokens, last };
      },
      { golden: wanted, thread },
    );
    check(wanted, made);
  });
}

const OTHERS: { model: string; prompt: string; thread: Thread; subgroups: boolean }[] = [
  { model: "tiny-e2b-Q4_K_M", prompt: "short", thread: "worker", subgroups: true },
  { model: "tiny-e2b-Q4_K_M", prompt: "medium", thread: "page", subgroups: false },
  { model: "tiny-moe-Q4_K_M", prompt: "short", thread: "page", subgroups: true },
  { model: "tiny-moe-Q4_K_M", prompt: "short", thread: "worker", subgroups: false },
];

for (const { model, prompt, thread, subgroups } of OTHERS) {
  const name = `${model}, ${prompt} prompt, in a ${thread}, ${subgroups ? "with" : "without"} subgroups`;
  test(name, { tag: "@slow" }, async ({ client }) => {
    const wanted = await golden(model, prompt);
    const made = await client.evaluate(
      async ({ golden, thread, subgroups }) => {
        const options = { worker: thread === "worker", keep: false, features: { subgroups } };
        const loaded = await rullama.load(`/goldens/gguf/${golden.model}.gguf`, options);
        const session = await loaded.session({ cache: "f32", context: 128 });
        let last;
        const wishes = { temperature: 0, maxTokens: golden.greedy.length };
        for await (const event of session.completeIds(golden.prompt, wishes)) last = event;
        const tokens = [...(await session.tokens())];
        await loaded.free();
        return { tokens, last };
      },
      { golden: wanted, thread, subgroups },
    );
    check(wanted, made);
  });
}
