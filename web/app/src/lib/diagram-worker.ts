// Draws Mermaid diagrams. The words come from a model, so this happens in a worker of its own: it has no document, gives up its ways to the
// network before it reads the first diagram, and can be ended at any time.

import { renderMermaid } from "beautiful-mermaid";

export interface DiagramRequest {
  source: string;
  colours: { bg: string; fg: string; muted: string; line: string; border: string };
}

/** `ready`: the worker has started. */
export type DiagramReply = { ready: true } | { svg: string } | { error: string };

for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "WebTransport", "importScripts", "Worker"]) {
  Object.defineProperty(globalThis, name, { value: undefined });
}

/** The library asks for a font of another server; an image would not load it, either. */
const withoutImports = (svg: string) => svg.replace(/@import[^;]*;[^;]*;/gu, "").replace(/@import/gu, "");

const reply = (message: DiagramReply) => postMessage(message);

addEventListener("message", ({ data }: MessageEvent<DiagramRequest>) => {
  renderMermaid(data.source, data.colours).then(
    (svg) => reply({ svg: withoutImports(svg) }),
    (error: unknown) => reply({ error: error instanceof Error ? error.message : String(error) }),
  );
});

reply({ ready: true });
