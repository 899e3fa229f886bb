// Answers from documents: a small model makes vectors, a search finds the nearest paragraphs, a larger model answers from them.
import { SearchIndex, load } from "rullama";

const log = document.getElementById("log")!;
const documents = document.querySelector("textarea")!;
const say = (text: string) => (log.textContent = text);
const embedder = () => load("hf.co/ggml-org/embeddinggemma-300M-GGUF:Q8_0");
const writer = () => load("hf.co/unsloth/gemma-4-E2B-it-GGUF:Q4_K_M");
let models:
  | Promise<
      [Awaited<ReturnType<typeof embedder>>, Awaited<ReturnType<typeof writer>>]
    >
  | undefined;

async function answer(question: string): Promise<void> {
  say("Loading …");
  models ??= Promise.all([embedder(), writer()]);
  const [embeds, writes] = await models;
  const index = new SearchIndex(embeds);
  await index.add(
    documents.value.split(/\n\s*\n/).filter((text) => text.trim() !== ""),
  );
  const passages = (await index.search(question, { top: 3 })).map(
    ({ text }) => text,
  );
  const system = `Answer from these passages alone, and say so when they do not tell:\n\n${passages.join("\n\n")}`;
  say("");
  const messages = [
    { role: "system" as const, content: system },
    { role: "user" as const, content: question },
  ];
  for await (const event of writes.chat(messages, { temperature: 0.3 })) {
    if (event.type === "text") log.append(event.text);
  }
}

document.querySelector("form")!.addEventListener("submit", (event) => {
  event.preventDefault();
  const question = String(
    new FormData(event.target as HTMLFormElement).get("question"),
  );
  answer(question).catch((error: unknown) => {
    models = undefined;
    say(String(error));
  });
});
