// The AI SDK as its own documentation shows it, with a model in this tab.
import { stepCountIs, streamText, tool } from "ai";
import { load } from "rullama";
import { createRullama } from "rullama/ai-sdk";
import { z } from "zod";

const log = document.getElementById("log")!;
const rullama = createRullama((id) =>
  load(id, {
    onProgress: ({ phase, eta }) =>
      (log.textContent = `${phase} ${eta?.toFixed() ?? ""}`),
  }),
);

const weather = tool({
  description: "The weather in a city",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, sky: "blue", celsius: 21 }),
});

document.querySelector("button")!.addEventListener("click", async () => {
  const { textStream } = streamText({
    model: rullama("hf.co/unsloth/gemma-4-E2B-it-GGUF:Q4_K_M"),
    tools: { weather },
    stopWhen: stepCountIs(4),
    prompt: "What should I wear in Ulm today?",
    onError: ({ error }) => (log.textContent = String(error)),
  });
  log.textContent = "";
  for await (const text of textStream) log.append(text);
});
