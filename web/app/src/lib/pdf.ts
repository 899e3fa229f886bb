// The text of PDF files, with pdf.js in a worker of its own. Nothing of a file is drawn or run, and no fonts or addresses of it are loaded.

import { getDocument, PDFWorker, VerbosityLevel } from "pdfjs-dist";
import PdfWorker from "pdfjs-dist/build/pdf.worker.min.mjs?worker";
import { MOST_TEXT } from "./document-text.js";
import { textOfItems, type TextItem } from "./pdf-layout.js";

/** Tables of character codes that old East Asian files refer to by name: fetched one by one, from this page's own server. */
const CMAPS = import.meta.glob<string>("../../../node_modules/pdfjs-dist/cmaps/*.bcmap", {
  eager: true,
  query: "?url",
  import: "default",
});

class Tables {
  async fetch({ kind, filename }: { kind: string; filename: string }): Promise<Uint8Array> {
    const found = Object.keys(CMAPS).find((path) => path.endsWith(`/${filename}`));
    const url = kind === "cMapUrl" && found ? CMAPS[found] : undefined;
    if (url === undefined) throw new Error(`${filename} is not needed for text`);
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${filename} could not be fetched`);
    return new Uint8Array(await response.arrayBuffer());
  }
}

/** Pages and seconds that are read, at most: a hostile file could take hours. */
const MOST_PAGES = 3000;
const MOST_MS = 60_000;

export type PdfProblem = "broken" | "password" | "pages" | "slow" | "long";

/** Why a PDF cannot be read. */
export class PdfError extends Error {
  constructor(readonly reason: PdfProblem) {
    super(reason);
  }
}

/** The text of a PDF, with form feeds between its pages. */
export async function textOf(bytes: ArrayBuffer): Promise<string> {
  const port = new PdfWorker();
  const worker = PDFWorker.create({ port });
  let late: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    late = setTimeout(() => reject(new PdfError("slow")), MOST_MS);
  });
  const broken = new Promise<never>((_, reject) => (port.onerror = () => reject(new PdfError("broken"))));
  try {
    return await Promise.race([read(bytes, worker), timeout, broken]);
  } catch (error) {
    if (error instanceof PdfError) throw error;
    throw new PdfError((error as { name?: string } | null)?.name === "PasswordException" ? "password" : "broken");
  } finally {
    clearTimeout(late);
    // Whatever it is still busy with ends here.
    worker.destroy();
    port.terminate();
  }
}

async function read(bytes: ArrayBuffer, worker: PDFWorker): Promise<string> {
  const file = await getDocument({
    data: new Uint8Array(bytes),
    worker,
    BinaryDataFactory: Tables,
    cMapUrl: "/",
    cMapPacked: true,
    disableFontFace: true,
    useSystemFonts: false,
    useWorkerFetch: false,
    useWasm: false,
    enableXfa: false,
    stopAtErrors: false,
    verbosity: VerbosityLevel.ERRORS,
  }).promise;
  if (file.numPages > MOST_PAGES) throw new PdfError("pages");
  const pages: string[] = [];
  let length = 0;
  for (let number = 1; number <= file.numPages; number++) {
    const page = await file.getPage(number);
    const { items } = await page.getTextContent();
    const text = textOfItems(items.filter((one): one is TextItem & typeof one => "str" in one));
    page.cleanup();
    pages.push(text);
    length += text.length;
    if (length > MOST_TEXT) throw new PdfError("long");
  }
  return pages.join("\f");
}
