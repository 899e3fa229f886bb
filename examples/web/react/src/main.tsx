import { useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import {
  type Message,
  type Model,
  type Progress,
  RullamaError,
  load,
} from "rullama";

const SOURCE = "hf.co/unsloth/gemma-4-E2B-it-GGUF:Q4_K_M";

function Chat() {
  const model = useRef<Promise<Model>>(undefined);
  const stop = useRef<AbortController>(undefined);
  const [progress, setProgress] = useState<Progress>();
  const [messages, setMessages] = useState<Message[]>([]);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);

  async function ask(prompt: string) {
    const history: Message[] = [...messages, { role: "user", content: prompt }];
    setMessages(history);
    setProblem("");
    setBusy(true);
    stop.current = new AbortController();
    try {
      // Loaded once; a load that failed is tried again.
      model.current ??= load(SOURCE, { onProgress: setProgress });
      model.current.catch(() => (model.current = undefined));
      let reply = "";
      for await (const event of (await model.current).chat(history, {
        signal: stop.current.signal,
      })) {
        if (event.type !== "text") continue;
        reply += event.text;
        setMessages([...history, { role: "assistant", content: reply }]);
      }
    } catch (error) {
      setProblem(
        error instanceof RullamaError
          ? `${error.code}: ${error.message}`
          : String(error),
      );
    } finally {
      setProgress(undefined);
      setBusy(false);
    }
  }

  return (
    <main>
      {messages.map(({ role, content }, index) => (
        <p key={index}>
          <b>{role}:</b> {String(content)}
        </p>
      ))}
      {progress && (
        <progress value={progress.loaded} max={progress.total || 1} />
      )}
      {problem && <p role="alert">{problem}</p>}
      <form action={(data) => ask(String(data.get("prompt")))}>
        <input name="prompt" aria-label="Prompt" required disabled={busy} />
        {busy ? (
          <button type="button" onClick={() => stop.current?.abort()}>
            Stop
          </button>
        ) : (
          <button>Send</button>
        )}
      </form>
    </main>
  );
}

createRoot(document.getElementById("root")!).render(<Chat />);
