import { APICallError, embedMany, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createRullama } from "../src/ai-sdk/index.js";
import { RullamaError } from "../src/errors.js";
import { drained, fakeModel } from "./fake-model.js";

const CALL = { type: "tool_call" as const, index: 0, call: { name: "weather", arguments: { city: "Ulm" } } };
const weather = tool({
  description: "The weather.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ sky: `blue over ${city}` }),
});

describe("the AI SDK", () => {
  it("generates text with reasoning, usage and settings", async () => {
    const model = fakeModel(() => [{ type: "thinking", text: "Hm." }, "Hello", " there"]);
    const result = await generateText({
      model: createRullama(model)(),
      system: "Be brief.",
      prompt: "Hi",
      temperature: 0.5,
      maxOutputTokens: 9,
      providerOptions: { rullama: { think: true } },
    });
    expect([result.text, result.reasoningText, result.finishReason]).toEqual(["Hello there", "Hm.", "stop"]);
    expect(result.usage).toMatchObject({ inputTokens: 5, outputTokens: 3 });
    expect(model.asked[0]).toMatchObject({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hi" },
      ],
      options: { temperature: 0.5, maxTokens: 9, think: true },
    });
  });

  it("runs tool loops", async () => {
    const model = fakeModel((_m, _o, number) => (number === 0 ? [CALL] : ["It is blue."]));
    const options = { model: createRullama(model)(), tools: { weather }, prompt: "Weather?", stopWhen: stepCountIs(3) };
    const { text, steps } = await generateText(options);
    expect([text, steps.length]).toEqual(["It is blue.", 2]);
    expect(model.asked[1]!.messages).toEqual([
      { role: "user", content: "Weather?" },
      { role: "assistant", content: "", toolCalls: [CALL.call] },
      { role: "tool", toolName: "weather", content: '{"sky":"blue over Ulm"}' },
    ]);
    expect(model.asked[0]!.options.tools![0]!.function).toMatchObject({
      name: "weather",
      parameters: { type: "object" },
    });
    const streaming = fakeModel((_m, _o, number) => (number === 0 ? ["Wait. ", CALL] : ["It is blue."]));
    const { textStream } = streamText({ ...options, model: createRullama(streaming)() });
    expect((await drained(textStream)).join("")).toBe("Wait. It is blue.");
  });

  it("generates objects from a format, and streams", async () => {
    const model = fakeModel(() => ['{"city":', '"Ulm"}']);
    const { object } = await generateObject({
      model: createRullama(model)(),
      schema: z.object({ city: z.string() }),
      prompt: "Where?",
    });
    expect(object).toEqual({ city: "Ulm" });
    expect(model.asked[0]!.options.format).toMatchObject({ type: "object", required: ["city"] });
  });

  it("shows images to the model", async () => {
    const model = fakeModel();
    const image = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]);
    const content = [
      { type: "text" as const, text: "What?" },
      { type: "image" as const, image },
    ];
    await generateText({ model: createRullama(model)(), messages: [{ role: "user", content }] });
    const [text, shown] = model.asked[0]!.messages[0]!.content as [object, { type: string; image: Uint8Array }];
    expect(text).toMatchObject({ type: "text", text: "What?" });
    expect([shown.type, [...shown.image]]).toEqual(["image", [...image]]);
  });

  it("warns of what the model cannot be shown", async () => {
    const model = fakeModel();
    const data = new Uint8Array([1]);
    const file = { type: "file" as const, data, mediaType: "application/pdf" };
    const output = { type: "content" as const, value: [{ type: "text" as const, text: "See" }, { type: "media" }] };
    const { warnings } = await createRullama(model)().doGenerate({
      prompt: [
        { role: "user", content: [file] },
        { role: "assistant", content: [{ ...file, mediaType: "image/png" }] },
        { role: "tool", content: [{ type: "tool-result", toolCallId: "1", toolName: "f", output }] },
        { role: "tool", content: [{ type: "tool-approval-response" }] },
      ],
    });
    expect(warnings.map((warning) => ("feature" in warning ? warning.feature : ""))).toEqual([
      "files of type application/pdf",
      "parts of type file in messages of the assistant",
      "parts of type media in results of tools",
      "parts of type tool-approval-response in messages of tools",
    ]);
    expect(model.asked[0]!.messages.at(-1)).toEqual({ role: "tool", toolName: "f", content: "See" });
  });

  it("gets errors that are not retried, and reasons of aborts", async () => {
    const model = fakeModel(() => [new RullamaError("device_lost", "gone")]);
    const failed = await generateText({ model: createRullama(model)(), prompt: "Hi" }).catch((error: unknown) => error);
    expect(APICallError.isInstance(failed)).toBe(true);
    expect(failed).toMatchObject({ isRetryable: false, statusCode: 500, message: "gone" });
    expect(model.asked).toHaveLength(1);
    const slow = fakeModel(() => ["a", "b", "c"], { wait: 10 });
    const controller = new AbortController();
    const running = generateText({ model: createRullama(slow)(), prompt: "Hi", abortSignal: controller.signal });
    setTimeout(() => controller.abort(new Error("mine")), 15);
    await expect(running).rejects.toThrow("mine");
    const errors: unknown[] = [];
    const onError = ({ error }: { error: unknown }) => void errors.push(error);
    const stream = streamText({ model: createRullama(model)(), prompt: "Hi", onError });
    await drained(stream.textStream).catch(() => {});
    expect(errors[0]).toMatchObject({ message: "gone" });
  });

  it("embeds, and loads a model once for each name", async () => {
    const loads: string[] = [];
    const provider = createRullama((id) => {
      loads.push(id);
      return fakeModel();
    });
    const options = { model: provider.embeddingModel("e"), values: ["abc", "d"] };
    expect((await embedMany(options)).embeddings).toEqual([
      [3, 1],
      [1, 1],
    ]);
    await embedMany(options);
    expect(loads).toEqual(["e"]);
  });
});
