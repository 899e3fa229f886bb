// The text of files that are attached or put into a collection. Files are not trusted: what is too large, no text or broken is refused.

import { t } from "../text/index.svelte.js";

/** Why a file cannot be attached, for a person. */
export class AttachmentError extends Error {
  override name = "AttachmentError";
}

/** Bytes of a file, at most. */
export const MOST_BYTES = 20_000_000;
/** Characters of a document's text, at most: a long book has two million. */
export const MOST_TEXT = 5_000_000;

const ENDINGS = new Set(
  (
    "txt text md markdown mdx rst adoc tex csv tsv log json jsonl ndjson yaml yml toml ini conf cfg env xml html htm svg css scss " +
    "js mjs cjs ts tsx jsx svelte vue py rs go java kt kts c h cc cpp hpp cs rb php sh bash zsh ps1 bat sql r jl lua swift scala " +
    "hs ml ex exs erl clj dart zig wgsl glsl hlsl cu diff patch srt vtt ipynb dockerfile makefile gitignore"
  ).split(" "),
);
const TYPES = /^(?:text\/|application\/(?:json|xml|javascript|x-(?:yaml|sh|ndjson)|toml|sql)\b)/u;

const endingOf = (name: string) => name.toLowerCase().split(".").at(-1) ?? "";

export const isPdf = ({ name, type }: Pick<File, "name" | "type">): boolean =>
  type === "application/pdf" || endingOf(name) === "pdf";

/** Whether a file looks like a document: by its name, or by the type that the system gave it. */
export const isDocument = (file: Pick<File, "name" | "type">): boolean =>
  isPdf(file) || ENDINGS.has(endingOf(file.name)) || TYPES.test(file.type);

/** What file dialogs offer. */
export const DOCUMENT_TYPES = `.pdf,text/*,${[...ENDINGS].map((one) => `.${one}`).join(",")}`;

/** A document's text, with `\n` between lines and form feeds between the pages of a PDF. */
export async function documentText(file: File): Promise<string> {
  const { name } = file;
  if (file.size === 0) throw new AttachmentError(t("attach.empty", { name }));
  if (file.size > MOST_BYTES) throw new AttachmentError(t("attach.tooLarge", { name }));
  const bytes = await file.arrayBuffer().catch(() => {
    throw new AttachmentError(t("attach.unreadable", { name }));
  });
  const text = isPdf(file) ? await pdfText(bytes, name) : decoded(new Uint8Array(bytes), name);
  if (text.length > MOST_TEXT) throw new AttachmentError(t("document.tooLong", { name, most: MOST_TEXT }));
  if (text.trim() === "") throw new AttachmentError(t(isPdf(file) ? "document.noText" : "attach.empty", { name }));
  return text;
}

async function pdfText(bytes: ArrayBuffer, name: string): Promise<string> {
  // Large, and needed by few: fetched with the first PDF.
  const pdf = await import("./pdf.js").catch(() => {
    throw new AttachmentError(t("document.noReader", { name }));
  });
  try {
    return await pdf.textOf(bytes);
  } catch (error) {
    if (!(error instanceof pdf.PdfError)) throw error;
    throw new AttachmentError(t(`document.pdf.${error.reason}`, { name }));
  }
}

/** Text of bytes: UTF-8, UTF-16 with a mark, or else Windows' Latin letters, which old tables have. */
export function decoded(bytes: Uint8Array<ArrayBuffer>, name: string): string {
  const [first, second] = bytes;
  const marked = first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "";
  for (const encoding of marked ? [marked] : ["utf-8", "windows-1252"]) {
    try {
      const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
      // No text has these; Windows' letters have none of the second half of them, either.
      // oxlint-disable-next-line no-control-regex -- They are what is looked for.
      if (!/[\0-\x08\x0e-\x1a\x1c-\x1f\x80-\x9f]/u.test(text)) return text.replace(/\r\n?/gu, "\n");
    } catch {
      // The next one.
    }
  }
  throw new AttachmentError(t("document.notText", { name }));
}
