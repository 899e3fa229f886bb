// The laboratory's page: the storage in this thread, and a way to the one in the worker.
import { lab } from "./lab.js";

interface Answer {
  number: number;
  value?: unknown;
  error?: string;
}

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const open = new Map<number, (answer: Answer) => void>();
let last = 0;

const ready = new Promise<void>((resolve) => open.set(0, () => resolve()));
worker.onmessage = ({ data }: MessageEvent<Answer>) => {
  open.get(data.number)?.(data);
  open.delete(data.number);
};

async function runInWorker(code: string, argument: unknown): Promise<unknown> {
  await ready;
  const number = (last += 1);
  const answer = await new Promise<Answer>((resolve) => {
    open.set(number, resolve);
    worker.postMessage({ number, code, argument });
  });
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer.value;
}

Object.assign(globalThis, { lab, runInWorker });
