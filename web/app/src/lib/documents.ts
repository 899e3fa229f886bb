// A chat as a document for people: Markdown, or a page that needs nothing but itself.

import { t } from "../text/index.svelte.js";
import type { Attachment } from "./attachments.js";
import type { Conversation, Turn } from "./conversation.js";
import { date } from "./format.js";
import { render } from "./markdown.js";

type Read = (id: string) => Promise<Blob | undefined>;

const speaker = ({ role, model, toolName }: Turn): string =>
  role === "user"
    ? t("chat.you")
    : role === "tool"
      ? t("chat.tool", { name: toolName ?? "" })
      : (model ?? t("chat.answer"));

/** The branch that is shown, as Markdown; attachments by their names. */
export function toMarkdown({ title, created, system }: Conversation, path: readonly Turn[]): string {
  const parts = [`# ${oneLine(title)}`, `_${date(created)}_`];
  if (system) parts.push(quoted(system));
  for (const turn of path) {
    parts.push(`## ${oneLine(speaker(turn))}`);
    for (const { name } of turn.attachments ?? []) parts.push(`*${oneLine(name)}*`);
    for (const { content, calls } of turn.steps ?? []) {
      if (content) parts.push(content.trim());
      for (const call of calls) parts.push(`\`\`\`json\n${JSON.stringify(call, null, 2)}\n\`\`\``);
    }
    if (turn.thinking) parts.push(quoted(turn.thinking));
    if (turn.content) parts.push(turn.content.trim());
    for (const [at, { name, page }] of (turn.sources ?? []).entries()) {
      parts.push(`[${at + 1}] ${oneLine(name)}${page === undefined ? "" : `, ${t("document.page", { page })}`}`);
    }
    for (const call of turn.toolCalls ?? []) parts.push(`\`\`\`json\n${JSON.stringify(call, null, 2)}\n\`\`\``);
  }
  return `${parts.join("\n\n")}\n`;
}

const escape = (text: string) => text.replace(/[&<>"']/gu, (letter) => `&#${letter.charCodeAt(0)};`);
const oneLine = (text: string) => text.replace(/\s+/gu, " ").trim();
const quoted = (text: string) => text.trim().replace(/^/gmu, "> ");

const STYLE = `body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:1rem/1.6 system-ui,sans-serif;color-scheme:light dark}
h2{font-size:1rem;margin-block:2rem .5rem;opacity:.7}pre{overflow-x:auto;padding:.75rem;border:1px solid #8888;border-radius:.5rem}
table{border-collapse:collapse}th,td{border:1px solid #8888;padding:.25rem .75rem}img{max-width:100%;border-radius:.5rem}
.said{white-space:pre-wrap}blockquote{margin-inline:0;padding-inline-start:1rem;border-inline-start:3px solid #8888}`;

/** The same as a page: no scripts, nothing from elsewhere, images inside. */
export async function toPage(conversation: Conversation, path: readonly Turn[], read: Read): Promise<string> {
  // Its head is text: a style in a document of this page would be held to this page's policy.
  const page = document.implementation.createHTMLDocument();
  const add = (parent: Element, tag: string, text?: string) => {
    const element = page.createElement(tag);
    if (text !== undefined) element.textContent = text;
    element.setAttribute("dir", "auto");
    parent.append(element);
    return element;
  };
  add(page.body, "h1", conversation.title);
  if (conversation.system) add(page.body, "blockquote", conversation.system);
  for (const turn of path) {
    const article = add(page.body, "article");
    add(article, "h2", speaker(turn));
    for (const one of turn.attachments ?? []) await attached(article, one, read, add);
    for (const call of (turn.steps ?? []).flatMap(({ calls }) => calls))
      add(article, "pre", JSON.stringify(call, null, 2));
    if (turn.role === "assistant") add(article, "div").append(page.importNode(render(turn.content), true));
    else add(article, "p", turn.content).className = "said";
  }
  const title = escape(conversation.title);
  const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
  return `<!doctype html>
<html lang="${escape(document.documentElement.lang)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>${STYLE}</style>
</head>
${page.body.outerHTML}
</html>
`;
}

async function attached(
  article: Element,
  { id, kind, name }: Attachment,
  read: Read,
  add: (parent: Element, tag: string, text?: string) => Element,
): Promise<void> {
  const blob = kind === "image" ? await read(id) : undefined;
  if (!blob) return void add(article, "p", name);
  const image = add(article, "img");
  image.setAttribute("alt", name);
  image.setAttribute("src", await dataOf(blob));
}

function dataOf(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error("the image cannot be read"));
    reader.readAsDataURL(blob);
  });
}
