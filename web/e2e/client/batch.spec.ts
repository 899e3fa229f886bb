// Several conversations of a page at once: each gets the tokens that it gets alone, and they are computed in one pass.
import type { GenerateOptions } from "../../client/src/types.ts";
import { MODEL, type Thread, expect, test } from "./fixtures.ts";

type Model = Awaited<ReturnType<typeof rullama.load>>;

/** What a conversation is told, turn by turn. */
interface Talk {
  turns: number[][];
  options: GenerateOptions;
  /** Texts after which it is cancelled. */
  most?: number;
}

/** What came of it. */
interface Told {
  tokens: number[];
  text: string;
  cached: number[];
  batched: number;
  answered: number;
  finish: string;
}

declare global {
  var talk: (model: Model, talk: Talk) => Promise<Told>;
}

/** Runs in the page: a conversation in a session of its own. */
function define(): void {
  globalThis.talk = async (model, { turns, options, most = Infinity }) => {
    const session = await model.session();
    const told: Told = { tokens: [], text: "", cached: [], batched: 0, answered: 0, finish: "" };
    for (const turn of turns) {
      let heard = 0;
      const stop = new AbortController();
      for await (const event of session.completeIds([...told.tokens, ...turn], { ...options, signal: stop.signal })) {
        if (event.type === "text" && (told.text += event.text) && ++heard >= most) stop.abort();
        if (event.type !== "done") continue;
        told.finish = event.finish;
        told.cached.push(event.usage.cachedTokens);
        told.batched += event.usage.batchedTokens ?? 0;
        told.answered += event.usage.answerTokens;
      }
      told.tokens = [...(await session.tokens())];
    }
    await session.free();
    return told;
  };
}

const GREEDY = { temperature: 0, maxTokens: 8 };
const FORMAT = {
  type: "object",
  properties: { kind: { enum: ["cat", "dog"] } },
  required: ["kind"],
  "x-guidance": { whitespace_flexible: false },
};

/** Prompts that differ, in two turns. */
const turns = (seed: number): number[][] =>
  [20, 7].map((length, turn) => Array.from({ length }, (_, i) => 5 + ((seed * 31 + turn * 11 + i * 7) % 150)));

const TALKS: Talk[] = [
  { turns: turns(1), options: GREEDY },
  { turns: turns(2), options: { temperature: 0.9, seed: 7, maxTokens: 8 } },
  { turns: turns(3), options: GREEDY },
  { turns: turns(4), options: { ...GREEDY, maxTokens: 40, format: FORMAT } },
];

/** What is equal, however the tokens were computed. */
const facts = ({ tokens, text, cached, finish }: Told) => ({ tokens, text, cached, finish });

for (const thread of ["page", "worker"] satisfies Thread[]) {
  const name = `two and four conversations in a ${thread} run in one pass, with the tokens of each alone`;
  test(name, { tag: thread === "page" ? "@slow" : [] }, async ({ client }) => {
    await client.evaluate(define);
    const made = await client.evaluate(
      async ({ thread, talks }) => {
        const model = await sharedModel(thread);
        const before = await model.memory();
        const alone = [];
        for (const one of talks) alone.push(await talk(model, one));
        const two = await Promise.all(talks.slice(0, 2).map((one) => talk(model, one)));
        const four = await Promise.all(talks.map((one) => talk(model, one)));
        const after = await model.memory();
        return { alone, two, four, sessions: [before.sessions, after.sessions] };
      },
      { thread, talks: TALKS },
    );
    expect(made.two.map(facts)).toEqual(made.alone.slice(0, 2).map(facts));
    expect(made.four.map(facts)).toEqual(made.alone.map(facts));
    // The second turn goes on from the caches of the first.
    for (const { cached } of made.alone) expect(cached[1]).toBeGreaterThan(20);
    expect(JSON.parse(made.four[3]!.text.slice(0, made.four[3]!.text.indexOf("}") + 1))).toHaveProperty("kind");
    expect(made.alone.map(({ batched }) => batched)).toEqual([0, 0, 0, 0]);
    // Tokens that the host chooses, as those of the format, have passes of their own.
    for (const together of [made.two, made.four.slice(0, 3)]) {
      const sum = (of: (told: Told) => number) => together.reduce((all, told) => all + of(told), 0);
      const [tokens, batched] = [sum(({ answered }) => answered), sum(({ batched }) => batched)];
      // A pass with more than one row makes at least two tokens.
      const passes = tokens - batched + batched / 2;
      expect(passes).toBeLessThan(0.8 * tokens);
    }
    expect(made.sessions[1]).toBe(made.sessions[0]);
  });
}

test("a cancelled conversation leaves the others, and its session goes on", async ({ client }) => {
  await client.evaluate(define);
  const made = await client.evaluate(
    async (talks) => {
      const model = await sharedModel("worker");
      const [first, second, third] = talks as [Talk, Talk, Talk];
      const long = {
        ...second,
        turns: second.turns.slice(0, 1),
        options: { ...second.options, maxTokens: 300 },
        most: 2,
      };
      const alone = [await talk(model, first), await talk(model, third)];
      const [one, cancelled, two] = await Promise.all([talk(model, first), talk(model, long), talk(model, third)]);
      return { alone, together: [one, two], cancelled };
    },
    TALKS.slice(0, 3),
  );
  expect(made.together.map(facts)).toEqual(made.alone.map(facts));
  expect(made.cancelled).toMatchObject({ finish: "cancelled" });
  expect(made.cancelled.answered).toBeLessThan(100);
});

test("chats without sessions, requests of one session and errors of one", async ({ client }) => {
  const made = await client.evaluate(async () => {
    const model = await sharedModel("worker");
    const order: string[] = [];
    const ask = async (name: string, events: AsyncIterable<import("../../client/src/types.js").GenerateEvent>) => {
      let [text, batched] = ["", 0];
      for await (const event of events) {
        if (event.type === "text" || event.type === "thinking") text += event.text;
        if (event.type === "done") batched = event.usage.batchedTokens ?? 0;
      }
      order.push(name);
      return { text, batched };
    };
    const chat = (content: string) =>
      ask(content, model.chat([{ role: "user", content }], { temperature: 0, maxTokens: 10 }));
    const sessions = (await model.memory()).sessions;
    const questions = ["the cat", "a dog", "two birds"];
    const alone = [];
    for (const question of questions) alone.push((await chat(question)).text);
    const session = await model.session();
    const said = (name: string, ids: number[], maxTokens: number) =>
      ask(name, session.completeIds(ids, { temperature: 0, maxTokens }));
    const failing = ask("fails", session.completeIds([99999])).catch((error: { code?: string }) => error.code);
    const own = [said("first", [2, 5, 6, 7], 9), said("second", [2, 5, 6, 7], 1)];
    const together = await Promise.all(questions.map(chat));
    await Promise.all(own);
    const code = await failing;
    await session.free();
    return { alone, together, order, code, sessions: [sessions, (await model.memory()).sessions] };
  });
  expect(made.together.map(({ text }) => text)).toEqual(made.alone);
  for (const { batched } of made.together) expect(batched).toBeGreaterThan(0);
  expect(made.order.indexOf("first")).toBeLessThan(made.order.indexOf("second"));
  expect(made.code).toBe("bad_options");
  expect(made.sessions[1]).toBeLessThanOrEqual(made.sessions[0]! + 1);
});

test("tabs that share a model answer in one pass", { tag: "@slow" }, async ({ studio }) => {
  const { context, server } = studio;
  const open = async () => {
    const page = await context.newPage();
    await page.goto(server.origin);
    await page.waitForFunction(() => "rullama" in globalThis);
    return page;
  };
  const pages = [await open(), await open()];
  const load = async (source: string) => {
    const model = await rullama.load(source, { keep: false, context: 256, worker: false, shared: true });
    Object.assign(globalThis, { model });
  };
  const say = async (content: string) => {
    const { model } = globalThis as unknown as { model: Model };
    let [text, batched] = ["", 0];
    for await (const event of model.chat([{ role: "user", content }], { temperature: 0, maxTokens: 12 })) {
      if (event.type === "text" || event.type === "thinking") text += event.text;
      if (event.type === "done") batched = event.usage.batchedTokens ?? 0;
    }
    return { text, batched };
  };
  const questions = ["Hello", "What is a cat?"];
  for (const page of pages) await page.evaluate(load, MODEL);
  const alone = [];
  for (const [index, page] of pages.entries()) alone.push(await page.evaluate(say, questions[index]!));
  const together = await Promise.all(pages.map((page, index) => page.evaluate(say, questions[index]!)));
  expect(together.map(({ text }) => text)).toEqual(alone.map(({ text }) => text));
  expect(alone.map(({ batched }) => batched)).toEqual([0, 0]);
  for (const { batched } of together) expect(batched).toBeGreaterThan(0);
  for (const page of pages) await page.close();
});
