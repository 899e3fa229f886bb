// Encoders in a projector file: read with the first image, freed on request, used for videos too.
import { expect, test } from "./fixtures.ts";

test("a projector is read when an image comes, and its encoders are freed on request", async ({
  client,
  projector,
}) => {
  const before = await client.evaluate(async () => {
    const model = await sharedModel("worker");
    for await (const _ of model.complete("the cat", { maxTokens: 1 }));
    return (await model.memory()).gpu;
  });
  // Text alone never touches it.
  expect(projector.requests).toEqual([]);
  const made = await client.evaluate(async () => {
    const model = await sharedModel("worker");
    const image = await greenSquare();
    const content = [
      { type: "image" as const, image, tokens: 70 as const },
      { type: "text" as const, text: "cat" },
    ];
    let prompt = 0;
    for await (const event of model.chat([{ role: "user", content }], { maxTokens: 1 })) {
      if (event.type === "done") prompt = event.usage.promptTokens;
    }
    const seeing = (await model.memory()).gpu;
    await model.freeEncoders();
    return { prompt, seeing, freed: (await model.memory()).gpu };
  });
  expect(projector.requests.length).toBeGreaterThan(0);
  expect(made.prompt).toBeGreaterThan(20);
  expect(made.seeing).toBeGreaterThan(before + 100_000);
  expect(made.freed).toBeLessThan(made.seeing - 100_000);
});

test("a reply about an image continues a prefix", async ({ client }) => {
  const made = await client.evaluate(async () => {
    const model = await sharedModel("worker");
    const image = await greenSquare();
    const content = [
      { type: "image" as const, image, tokens: 70 as const },
      { type: "text" as const, text: "What is this?" },
    ];
    const question = { role: "user" as const, content };
    const begun = { role: "assistant" as const, content: "Well, the", prefix: true };
    const ask = async (messages: Parameters<typeof model.chat>[0], options: Parameters<typeof model.chat>[1]) => {
      const session = await model.session();
      let [text, prompt] = ["", 0];
      for await (const event of session.chat(messages, { temperature: 0, ...options })) {
        if (event.type === "text") text += event.text;
        if (event.type === "done") prompt = event.usage.promptTokens;
      }
      const tokens = [...(await session.tokens())].slice(0, prompt);
      await session.free();
      return { text, tokens };
    };
    return {
      plain: await ask([question], { maxTokens: 1 }),
      continued: await ask([question, begun], { maxTokens: 3 }),
      constrained: await ask([question, begun], { format: /^Well, the (?:cat|dog)$/u }),
      prefix: [...(await model.tokenize("Well, the"))],
    };
  });
  expect(made.plain.tokens.length).toBeGreaterThan(20);
  expect(made.continued.tokens).toEqual([...made.plain.tokens, ...made.prefix]);
  expect(made.continued.text).not.toContain("Well, the");
  expect(made.constrained.tokens).toEqual(made.continued.tokens);
  expect(made.constrained.text).toMatch(/^ (?:cat|dog)$/u);
});

test("a projector in a model's place is told from one", async ({ client, projector }) => {
  const failure = await client.evaluate(
    (url) => rullama.load(url, { keep: false }).catch((error) => ({ code: error.code, message: error.message })),
    projector.url,
  );
  expect(failure).toMatchObject({ code: "projector", message: expect.stringContaining("as the projector") });
});

test("a video is encoded as frames", { tag: "@slow" }, async ({ client }) => {
  const prompt = await client.evaluate(async () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [96, 96];
    const context = canvas.getContext("2d")!;
    const recorder = new MediaRecorder(canvas.captureStream(20), { mimeType: "video/webm" });
    const pieces: Blob[] = [];
    recorder.ondataavailable = ({ data }) => pieces.push(data);
    const ended = new Promise((resolve) => (recorder.onstop = resolve));
    recorder.start();
    for (let shade = 0; shade < 40; shade++) {
      context.fillStyle = `rgb(${shade * 6} 0 0)`;
      context.fillRect(0, 0, 96, 96);
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    recorder.stop();
    await ended;
    const content = [{ type: "video" as const, video: new Blob(pieces, { type: "video/webm" }) }];
    const model = await sharedModel("worker");
    let prompt = 0;
    for await (const event of model.chat([{ role: "user", content }], { maxTokens: 1 })) {
      if (event.type === "done") prompt = event.usage.promptTokens;
    }
    return prompt;
  });
  // Two frames of a video of more than a second.
  expect(prompt).toBeGreaterThan(40);
});
