// Chat templates that a page runs in a module of its own: random models with another template reply as the native program does.
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { OTHER_TEMPLATE, changedGguf, medGemma } from "../../client/test/changed-gguf.ts";
import { bytesBody } from "../support/body.ts";
import { program } from "../support/program.ts";
import { expect, test } from "./fixtures.ts";
import { GOLDENS } from "./goldens.ts";

const golden = (name: string) => readFile(join(GOLDENS, "gguf", `${name}.gguf`));
const MODEL = "micro-llama3-Q8_0";
/** Tokens that are compared: a random model's choices are clear enough. */
const MOST = 12;

test("a model with an unknown template replies as natively", async ({ client, server }, testInfo) => {
  const bytes = changedGguf(await golden(MODEL), { "tokenizer.chat_template": OTHER_TEMPLATE });
  const path = testInfo.outputPath("other.gguf");
  await writeFile(path, bytes);
  server.file("/other.gguf", bytesBody(bytes));
  const system = "Be brief.";
  const user = "Hello <|eot_id|> there";
  const messages = [
    { role: "system" as const, content: system },
    { role: "user" as const, content: user },
  ];
  const native = (...args: string[]) => JSON.parse(execFileSync(program(), args, { encoding: "utf8" })) as unknown;
  const input = testInfo.outputPath("messages.json");
  await writeFile(input, JSON.stringify({ messages }));
  const { prompt } = native("render", path, "--input", input, "--json") as { prompt: string };
  const options = ["--device", "cpu", "--temperature", "0", "-n", String(MOST), "--json", "--system", system];
  const said = native("run", path, user, ...options) as { text: string };

  let fetched = 0;
  client.on("request", (request) => {
    if (request.url().includes("template_bg")) fetched += 1;
  });
  const made = await client.evaluate(
    async ({ url, messages, most }) => {
      const replies = [];
      for (const worker of [true, false]) {
        const model = await rullama.load(url, { keep: false, worker, cache: "f32" });
        const session = await model.session();
        let text = "";
        for await (const event of session.chat(messages, { temperature: 0, maxTokens: most })) {
          if (event.type === "text") text += event.text;
        }
        const ids = [...(await session.tokens())];
        replies.push({ text, ids, capabilities: model.info.capabilities });
        await model.free();
      }
      const header = await rullama.openHeader(url);
      const rendered = header.render(messages);
      header.free();
      return { replies, prompt: rendered.text, ids: [...rendered.ids] };
    },
    { url: "/other.gguf", messages, most: MOST },
  );
  expect(made.prompt).toBe(prompt);
  expect(fetched).toBeGreaterThan(0);
  expect(said.text).not.toBe("");
  for (const { text, ids, capabilities } of made.replies) {
    expect(text).toBe(said.text);
    expect(ids.slice(0, made.ids.length)).toEqual(made.ids);
    expect(capabilities).toEqual(["text", "tools", "thinking", "training"]);
  }
});

test("other interfaces and training render with it", async ({ client, server }) => {
  test.setTimeout(600_000);
  const bytes = changedGguf(await golden(MODEL), { "tokenizer.chat_template": OTHER_TEMPLATE });
  server.file("/other.gguf", bytesBody(bytes));
  const made = await client.evaluate(async () => {
    const model = await rullama.load("/other.gguf", { keep: false });
    const header = await rullama.openHeader("/other.gguf");
    const conversation = [{ role: "user" as const, content: "Hello" }];
    const wanted = header.render(conversation).ids.length;
    header.free();
    const completion = await model.openai.chat.completions.create({ messages: conversation, max_tokens: 2 });
    const line = { messages: [...conversation, { role: "assistant", content: "Bye" }] };
    const report = await model.inspectTraining(JSON.stringify(line));
    await model.free();
    return { wanted, used: completion.usage?.prompt_tokens, learned: report.preview[0]?.spans };
  });
  expect(made.used).toBe(made.wanted);
  const learned = made.learned?.filter(({ learned }) => learned);
  expect(learned?.map(({ text }) => text).join("")).toContain("Bye");
});

test("a broken template fails chats with the native error; text is still continued", async ({ client, server }) => {
  test.setTimeout(600_000);
  const bytes = changedGguf(await golden(MODEL), { "tokenizer.chat_template": "{% for %}" });
  server.file("/broken.gguf", bytesBody(bytes));
  const made = await client.evaluate(async () => {
    const model = await rullama.load("/broken.gguf", { keep: false });
    const chat = model.chat([{ role: "user", content: "Hello" }], { maxTokens: 1 });
    const failure = await chat.next().then(
      () => undefined,
      (error: { code: string; message: string }) => ({ code: error.code, message: error.message }),
    );
    let finish;
    for await (const event of model.complete("a", { maxTokens: 1 })) if (event.type === "done") ({ finish } = event);
    await model.free();
    return { failure, finish };
  });
  const message = expect.stringMatching(/^the model's chat template failed: syntax error/u);
  expect(made).toEqual({ failure: { code: "unsupported_model", message }, finish: "length" });
});

test("MedGemma thinks between its own markers", async ({ client, server }) => {
  server.file("/medgemma.gguf", bytesBody(medGemma(await golden("micro-g3-Q4_0"))));
  const made = await client.evaluate(async () => {
    const model = await rullama.load("/medgemma.gguf", { keep: false });
    const header = await rullama.openHeader("/medgemma.gguf");
    // The format allows the reply or a thought before it; the bias makes the random model open a thought, and close it by chance.
    const logitBias: Record<number, number> = {};
    for (const [id, token] of (header.value("tokenizer.ggml.tokens") as string[]).entries()) {
      if (token === "<unused95>") logitBias[id] = 4;
      if (["<0x59>", "Y", "Ye", "Yes"].includes(token)) logitBias[id] = -100;
    }
    header.free();
    let [text, thinking, finish] = ["", "", ""];
    const options = { think: true, format: /Yes/u, logitBias, maxTokens: 500, temperature: 1, seed: 1 };
    for await (const event of model.chat([{ role: "user", content: "Hi" }], options)) {
      if (event.type === "text") text += event.text;
      if (event.type === "thinking") thinking += event.text;
      if (event.type === "done") ({ finish } = event);
    }
    const { info } = model;
    await model.free();
    return { text, thinking, finish, info };
  });
  expect(made.info).toMatchObject({ thinking: true, capabilities: ["text", "thinking", "training"] });
  expect([made.text, made.finish]).toEqual(["Yes", "stop"]);
  expect(made.thinking).not.toBe("");
  expect(made.thinking).not.toContain("<unused");
});
