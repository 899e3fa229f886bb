// The demo model answers as it does natively: text, thoughts, images and speech, in a browser. One load for all.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ContentPart, Message, Tool } from "../../client/src/types.ts";
import { bytesBody, fileBody } from "../support/body.ts";
import { type Answer, CASES, MEDIA, right } from "./cases.ts";
import { expect, test } from "./fixtures.ts";
import { GOLDENS } from "./goldens.ts";

/** The file is in two, as registries limit the size of a package. */
const MODEL = ["demo/demo-1.bin", "demo-tail/demo-2.bin"].map((piece) =>
  fileURLToPath(new URL(`../../../crates/${piece}`, import.meta.url)),
);

/** The first case of some skills: a software GPU takes seconds for each. */
const SKILLS = ["arithmetic", "system"];
const CHOSEN = SKILLS.map((skill) => CASES.find((one) => one.skill === skill && !one.thinking)!);
const SHOWN = [MEDIA.find(({ file }) => file.endsWith(".png"))!, MEDIA.find(({ file }) => file.endsWith(".wav"))!];

test("answers are right: text, an image, speech", { tag: "@slow" }, async ({ client, server }) => {
  test.setTimeout(900_000);
  // Seen when it fails, and how long each takes.
  client.on("console", (message) => console.log(message.text()));
  server.file("/demo.gguf", bytesBody(Buffer.concat(await Promise.all(MODEL.map((piece) => readFile(piece))))));
  for (const { file } of SHOWN) server.file(`/${file}`, await fileBody(join(GOLDENS, "demo", file)));
  await client.evaluate(async () => {
    const model = await rullama.load("/demo.gguf", { keep: false });
    const ask = async (messages: Message[], options: { think?: boolean; tools?: Tool[] }): Promise<Answer> => {
      const answer: Answer = { text: "", thinking: "", calls: [] };
      const start = performance.now();
      for await (const event of model.chat(messages, { ...options, temperature: 0, maxTokens: 80 })) {
        if (event.type === "text") answer.text += event.text;
        if (event.type === "thinking") answer.thinking += event.text;
        if (event.type === "tool_call") answer.calls.push(event.call);
      }
      console.log(`${((performance.now() - start) / 1000).toFixed(1)} s: ${JSON.stringify(answer)}`);
      return answer;
    };
    Object.assign(globalThis, { demo: { model, ask } });
  });
  for (const { skill, messages, thinking, tools, check } of CHOSEN) {
    // As text: what a message may hold in a page is more than Playwright's types can pass on.
    const request = JSON.stringify({ messages, options: { think: thinking, ...(tools ? { tools } : {}) } });
    const answer = await client.evaluate((text) => {
      const { messages, options } = JSON.parse(text) as { messages: Message[]; options: { think: boolean } };
      return demo.ask(messages, options);
    }, request);
    expect(right(check, answer), `${skill}: ${JSON.stringify(answer)}`).toBe(true);
    expect(answer.thinking !== "", skill).toBe(thinking);
  }
  for (const { file, question, check } of SHOWN) {
    const answer = await client.evaluate(
      async ({ file, question }) => {
        const blob = await (await fetch(`/${file}`)).blob();
        const part: ContentPart = file.endsWith(".png")
          ? { type: "image", image: blob }
          : { type: "audio", audio: blob };
        const message: Message = { role: "user", content: [part, { type: "text", text: question }] };
        const first = await demo.ask([message], {});
        // Told again, it is not looked at again; and it is the same in OpenAI's words.
        const again = await demo.ask([message], {});
        if (!file.endsWith(".png")) return { first, again, completion: first.text };
        const url = await new Promise<string>((resolve) => {
          const reader = new FileReader();
          reader.onload = () => resolve(reader.result as string);
          reader.readAsDataURL(blob);
        });
        const theirs: ContentPart = { type: "image_url", image_url: { url } };
        const completion = await demo.model.openai.chat.completions.create({
          messages: [{ role: "user", content: [theirs, { type: "text", text: question }] }],
          temperature: 0,
          max_tokens: 80,
        });
        return { first, again, completion: completion.choices[0]!.message.content };
      },
      { file, question },
    );
    expect(right(check, answer.first), `${file}: ${JSON.stringify(answer)}`).toBe(true);
    expect(answer.again).toEqual(answer.first);
    expect(answer.completion).toBe(answer.first.text);
  }
  const failures = await client.evaluate(async () => {
    const codeOf = (part: ContentPart) =>
      demo.ask([{ role: "user", content: [part, { type: "text", text: "What is this?" }] }], {}).then(
        () => "none",
        (error: { code?: string }) => error.code,
      );
    const noise = new Blob([new Uint8Array(100)]);
    return [
      await codeOf({ type: "image", image: noise }),
      await codeOf({ type: "audio", audio: noise }),
      await codeOf({ type: "image", image: new Blob([]) }),
      await codeOf({ type: "image", image: "/nothing-here.png" }),
      (await demo.ask([{ role: "user", content: "What is 23 + 45?" }], {})).text,
    ];
  });
  expect(failures).toEqual(["bad_media", "bad_media", "bad_media", "network", "23 + 45 = 68"]);
  await client.evaluate(() => demo.model.free());
});

declare global {
  var demo: {
    model: Awaited<ReturnType<typeof rullama.load>>;
    ask(messages: Message[], options: { think?: boolean; tools?: Tool[] }): Promise<Answer>;
  };
}
