// Mermaid diagrams of answers, drawn when somebody wants to see them. A worker draws them, and the page shows the result as an image:
// browsers run no scripts in images and load nothing for them.

import type { DiagramReply, DiagramRequest } from "../lib/diagram-worker.js";
import { t } from "../text/index.svelte.js";

export const MERMAID = "mermaid";
const MOST_TEXT = 20_000;
/** For drawing, once the worker runs. */
const PATIENCE_MS = 5000;

/** The code is no diagram: its reader says why, in English. */
class SyntaxProblem extends Error {}

/** The diagram as SVG. Each has a worker of its own, so that none can wait for another or outlive its time. */
function drawn(request: DiagramRequest): Promise<string> {
  const worker = new Worker(new URL("../lib/diagram-worker.ts", import.meta.url), { type: "module" });
  return new Promise<string>((resolve, reject) => {
    let slow: ReturnType<typeof setTimeout> | undefined;
    worker.addEventListener("message", ({ data }: MessageEvent<DiagramReply>) => {
      clearTimeout(slow);
      // Not before: networks may be slow to bring it.
      if ("ready" in data) slow = setTimeout(() => reject(new Error(t("diagram.slow"))), PATIENCE_MS);
      else if ("svg" in data) resolve(data.svg);
      else reject(new SyntaxProblem(data.error));
    });
    worker.addEventListener("error", () => reject(new Error(t("diagram.missing"))));
    worker.postMessage(request);
  }).finally(() => worker.terminate());
}

function image(svg: string): HTMLImageElement {
  const shown = new Image();
  shown.alt = t("diagram.label");
  shown.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  return shown;
}

/** Technical words in English, for those who look closer. */
function folded(words: string): HTMLDetailsElement {
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = t("failure.detail");
  const text = document.createElement("p");
  Object.assign(text, { dir: "ltr", lang: "en", textContent: words });
  details.append(summary, text);
  return details;
}

/** Shows the code of a frame again. */
export function closeDiagram(frame: Element): void {
  frame.querySelector(".diagram")?.remove();
  frame.querySelector("pre")?.removeAttribute("hidden");
  const button = frame.querySelector<HTMLElement>(".draw");
  if (button) button.textContent = t("diagram.show");
}

async function show(frame: Element): Promise<void> {
  const pre = frame.querySelector("pre");
  const button = frame.querySelector<HTMLElement>(".draw");
  const source = pre?.textContent ?? "";
  if (!pre || !button || frame.querySelector(".diagram")) return;
  const place = document.createElement("div");
  place.className = "diagram";
  place.setAttribute("role", "status");
  place.textContent = t("diagram.drawing");
  frame.append(place);
  const { color: fg, backgroundColor: bg } = getComputedStyle(document.body);
  // What the library would mix of these two is too faint to be read.
  const { color: muted } = getComputedStyle(pre.previousElementSibling ?? pre);
  try {
    if (source.length > MOST_TEXT) throw new Error(t("diagram.long"));
    const picture = image(await drawn({ source, colours: { bg, fg, muted, line: muted, border: muted } }));
    await picture.decode();
    if (!place.isConnected) return;
    place.replaceChildren(picture);
    pre.hidden = true;
    button.textContent = t("diagram.code");
  } catch (error) {
    const technical = error instanceof SyntaxProblem;
    const reason = error instanceof Error && !technical ? error.message : t("diagram.wrong");
    place.textContent = t("diagram.failed", { reason });
    if (technical) place.append(folded(error.message));
  }
}

/** A button that switches a frame of Mermaid code between code and diagram. */
export function diagramButton(frame: Element): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet small draw";
  button.textContent = t("diagram.show");
  button.addEventListener("click", () => {
    if (frame.querySelector(".diagram")) closeDiagram(frame);
    else void show(frame);
  });
  return button;
}

/** Draws all diagrams of an answer. */
export function drawAll(node: ParentNode): void {
  for (const button of node.querySelectorAll(".draw")) {
    const frame = button.closest(".code");
    if (frame) void show(frame);
  }
}
