// The browser's Prompt API where it has one, else the same with a model of rullama.
import {
  LanguageModel as Own,
  type LanguageModelClass,
  useModel,
} from "rullama/prompt-api";

declare const chrome: {
  tabs: { query(filter: object): Promise<{ id?: number }[]> };
  scripting: { executeScript(what: object): Promise<{ result?: unknown }[]> };
};

useModel("hf.co/unsloth/gemma-4-E2B-it-GGUF:Q4_K_M", { context: 8192 });
const LanguageModel =
  (globalThis as { LanguageModel?: LanguageModelClass }).LanguageModel ?? Own;
const summary = document.getElementById("summary")!;
const bar = document.querySelector("progress")!;

async function pageText(): Promise<string> {
  const [tab] = await chrome.tabs.query({ active: true, currentWindow: true });
  const func = () => document.body.innerText;
  const [page] = await chrome.scripting.executeScript({
    target: { tabId: tab?.id },
    func,
  });
  return String(page?.result ?? "").slice(0, 20_000);
}

async function summarise(): Promise<void> {
  const session = await LanguageModel.create({
    initialPrompts: [
      { role: "system", content: "Summarise the page in three sentences." },
    ],
    monitor: (monitor) =>
      monitor.addEventListener("downloadprogress", (event) => {
        bar.hidden = false;
        bar.value = (event as ProgressEvent).loaded;
      }),
  });
  bar.hidden = true;
  summary.textContent = "";
  const reader = session.promptStreaming(await pageText()).getReader();
  for (
    let { done, value } = await reader.read();
    !done;
    { done, value } = await reader.read()
  ) {
    summary.append(String(value));
  }
  session.destroy();
}

document.querySelector("button")!.addEventListener("click", () => {
  summarise().catch((error: unknown) => (summary.textContent = String(error)));
});
