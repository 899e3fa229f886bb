// Limits of thoughts: from every interface's words to the engine's.
import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama/browser";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { connect } from "../src/connect/index.js";
import { modelFetch } from "../src/http/index.js";
import { chatRequest } from "../src/sampling.js";
import { thinkAt } from "../src/think.js";
import { type FakeModel, drained, fakeModel } from "./fake-model.js";

const BASE = "http://tab.invalid";
const QUESTION = [{ role: "user" as const, content: "Hi" }];
const keyed = (model: FakeModel) => ({
  apiKey: "x",
  fetch: modelFetch(model),
  dangerouslyAllowBrowser: true,
  maxRetries: 0,
});
const thoughts = (model: FakeModel) => model.asked.map(({ options: { think, thinkBudget } }) => [think, thinkBudget]);

describe("a limit of thoughts", () => {
  it("is a word of the engine where the model thinks", () => {
    expect(chatRequest(QUESTION, { think: true, thinkBudget: 7 })).toMatchObject({ think: true, think_budget: 7 });
    for (const options of [{ think: true }, { think: false, thinkBudget: 7 }, { thinkBudget: 7 }]) {
      expect(chatRequest(QUESTION, options)).not.toHaveProperty("think_budget");
    }
    for (const thinkBudget of [0, -1, 1.5, NaN, 2 ** 32]) {
      expect(() => chatRequest(QUESTION, { think: true, thinkBudget })).toThrow("thinkBudget");
    }
  });

  it("has levels, as servers have them", () => {
    expect(["minimal", "low", "medium"].map((level) => thinkAt(level, "x").thinkBudget)).toEqual([512, 2048, 8192]);
    for (const level of ["high", "max", true]) expect(thinkAt(level, "x")).toEqual({ think: true });
    for (const level of ["none", false]) expect(thinkAt(level, "x")).toEqual({ think: false });
    expect([thinkAt(undefined, "x"), thinkAt(null, "x")]).toEqual([{}, {}]);
    for (const level of ["little", "toString", 3]) expect(() => thinkAt(level, "effort")).toThrow("effort");
  });

  it("is Anthropic's budget, or its effort", async () => {
    const model = fakeModel();
    const create = (more: object) =>
      new Anthropic({ ...keyed(model), baseURL: BASE }).messages.create({
        model: "m",
        max_tokens: 5000,
        messages: QUESTION,
        ...more,
      } as never);
    const thinking = { type: "enabled", budget_tokens: 1024 };
    await create({ thinking });
    await create({ thinking, output_config: { effort: "low" } });
    await create({ thinking: { type: "adaptive" }, output_config: { effort: "low" } });
    await create({ thinking: { type: "enabled" } });
    await create({ thinking: { type: "disabled" }, output_config: { effort: "low" } });
    await create({});
    const none = undefined;
    expect(thoughts(model)).toEqual([
      [true, 1024],
      [true, 1024],
      [true, 2048],
      [true, none],
      [false, none],
      [none, none],
    ]);
    for (const wrong of [
      { type: "enabled", budget_tokens: 5000 },
      { type: "enabled", budget_tokens: 0 },
      { type: "enabled", budget_tokens: "9" },
      { type: "often" },
    ]) {
      await expect(create({ thinking: wrong })).rejects.toMatchObject({ status: 400 });
    }
  });

  it("is an effort of OpenAI's, or a level of Ollama's", async () => {
    const model = fakeModel();
    const openai = new OpenAI({ ...keyed(model), baseURL: `${BASE}/v1` });
    await openai.chat.completions.create({ model: "m", messages: QUESTION, reasoning_effort: "low" });
    await openai.responses.create({ model: "m", input: "Hi", reasoning: { effort: "medium" } });
    const ollama = new Ollama({ host: BASE, fetch: modelFetch(model) });
    await ollama.chat({ model: "m", messages: QUESTION, think: "low" });
    await ollama.chat({ model: "m", messages: QUESTION, think: "high" });
    expect(thoughts(model)).toEqual([
      [true, 2048],
      [true, 8192],
      [true, 2048],
      [true, undefined],
    ]);
    await expect(ollama.chat({ model: "m", messages: QUESTION, think: "huge" as never })).rejects.toThrow("think");
  });

  it.each([
    ["ollama", BASE, [2048, 2048, 8192], 600],
    ["openai", `${BASE}/v1`, [512, 2048, 8192], 500],
  ] as const)("is the level that keeps it on a server of %s's dialect", async (_, url, levels, small) => {
    const fake = fakeModel();
    const model = await connect(url, { fetch: modelFetch(fake) });
    for (const thinkBudget of [levels[0], 5000, 9000]) {
      await drained(model.chat(QUESTION, { think: true, thinkBudget }));
    }
    expect(thoughts(fake)).toEqual(levels.map((level) => [true, level]));
    const tooSmall = drained(model.chat(QUESTION, { think: true, thinkBudget: small }));
    await expect(tooSmall).rejects.toMatchObject({ code: "bad_options" });
  });
});
