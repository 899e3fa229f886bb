// Runs JavaScript that a model wrote: in a worker, in a frame of an origin of its own, under a policy that allows no connection, no script
// and no import. So it reaches neither the network, nor the page, nor anything that this browser stores. It ends with the time limit.

import { FRAME_HASH } from "../../policy.js";
import { FRAME_SCRIPT } from "./sandbox-frame.js";

/** What a program did: its value and what it printed, as text; or why it failed. */
export interface Ran {
  value?: string;
  lines: string[];
  error?: string;
}

/** Characters of the program, and of what it gives. */
const MOST_CODE = 100_000;
const MOST_TEXT = 20_000;

const POLICY = `default-src 'none'; script-src ${FRAME_HASH}; worker-src blob:`;

/** In front of each program: collects what it prints and tells its value. What it says is not trusted: it could say it itself. */
const PRELUDE = `"use strict";
const run = (() => {
  const post = self.postMessage.bind(self);
  const plain = (key, value) =>
    typeof value === "bigint" ? String(value) : value instanceof Map || value instanceof Set ? [...value] : value;
  const show = (value) => {
    if (typeof value === "string") return value;
    if (typeof value === "bigint" || value instanceof Error) return String(value);
    try { return JSON.stringify(value, plain) ?? String(value); } catch { return String(value); }
  };
  const lines = [];
  let size = 0;
  const print = (...values) => {
    const line = values.map(show).join(" ").slice(0, ${MOST_TEXT});
    size += line.length;
    if (size <= ${MOST_TEXT}) lines.push(line);
  };
  for (const name of ["log", "info", "warn", "error", "debug"]) console[name] = print;
  post({ type: "begun" });
  return (program) => program().then(
    (value) => post({ type: "ended", lines, value: value === undefined ? undefined : show(value) }),
    (error) => post({ type: "ended", lines, error: show(error) }),
  );
})();
`;

/** Ways to read a program: as an expression, as statements whose last one is the value, as the body of a function. */
export function forms(code: string): string[] {
  const body = code.trim().replace(/;+$/u, "");
  const cut = Math.max(body.lastIndexOf("\n"), body.lastIndexOf(";")) + 1;
  const last = body.slice(cut).trim();
  const valued = cut > 0 && last !== "" ? [`{\n${body.slice(0, cut)}\nreturn (${last}\n);\n}`] : [];
  return [`(\n${body}\n)`, ...valued, `{\n${code}\n}`].map((one) => `${PRELUDE}run(async () => ${one});\n`);
}

/** Runs a program: an expression, or the body of an async function. A signal ends it wherever it is. */
export async function runJavaScript(code: string, signal?: AbortSignal): Promise<Ran> {
  if (code.length > MOST_CODE) return { lines: [], error: `the program is longer than ${MOST_CODE} characters` };
  let ran: Ran = { lines: [], error: "the program is empty" };
  for (const form of forms(code)) {
    const { begun, ...result } = await runForm(form, signal);
    ran = result;
    // A text that cannot be parsed does not begin: it may be meant in another way.
    if (begun) break;
  }
  return ran;
}

function runForm(program: string, signal: AbortSignal | undefined): Promise<Ran & { begun: boolean }> {
  signal?.throwIfAborted();
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.setAttribute("aria-hidden", "true");
  frame.tabIndex = -1;
  frame.hidden = true;
  frame.srcdoc = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${POLICY}"><script>${FRAME_SCRIPT}</script>`;
  const { port1: here, port2: there } = new MessageChannel();
  return new Promise<Ran & { begun: boolean }>((resolve, reject) => {
    const stop = () => reject(signal?.reason as Error);
    let begun = false;
    signal?.addEventListener("abort", stop, { once: true });
    here.onmessage = ({ data }: MessageEvent<unknown>) => {
      const { type, lines, value, error, message } = (data ?? {}) as Record<string, unknown>;
      if (type === "begun") begun = true;
      else if (type === "broken") resolve({ begun, lines: [], error: text(message) });
      else if (type === "ended") {
        const printed = Array.isArray(lines) ? lines.slice(0, 1000).map(text) : [];
        const end =
          typeof error === "string" ? { error: text(error) } : value === undefined ? {} : { value: text(value) };
        resolve({ begun: true, lines: printed, ...end });
      }
    };
    frame.onload = () => frame.contentWindow?.postMessage(program, "*", [there]);
    document.body.append(frame);
  }).finally(() => {
    here.close();
    // Its worker ends with it.
    frame.remove();
  });
}

const text = (value: unknown): string => String(value).slice(0, MOST_TEXT);
