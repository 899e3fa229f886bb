// Cuts an exported file into its conversations while it is read: the file may be larger than a text can be, and than memory.
//
// A conversation is handed on as JSON without the bytes of its attachments: these become blobs on the way, and their place is taken by a
// text that nobody outside can know. Whatever is not inside a conversation is collected too, with a 0 for each of them, so that
// `JSON.parse` still decides what is JSON.

import { t } from "../text/index.svelte.js";
import { bytesOf, MOST_BYTES } from "./attachments.js";

/** Says what is wrong with a file and where. */
export class ImportError extends Error {
  override name = "ImportError";
}

export interface Piece {
  /** A conversation as JSON. */
  text: string;
  /** Its attachments, by the texts that stand for them. */
  blobs: Map<string, Blob>;
  /** What was there before the first conversation, closed, so that it can be parsed; only with that one. */
  head?: string;
}

const MOST_TEXT = 64 << 20;
const MOST_AROUND = 1 << 20;
const MOST_DEPTH = 200;
const MOST_HEAD = 256;
/** Where the elements of `conversations` are, and the fields of their turns' attachments. */
const CONVERSATION_DEPTH = 2;
const ATTACHMENT_DEPTH = 7;
const DATA = /^data:((?:(?:image|audio|video)\/[\w.+-]+|text\/plain)(?:;[^,"\\]*)?);base64,$/u;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/u;
/** Characters of base64 that are decoded at a time. */
const DECODED = 1 << 20;

type Mode = "plain" | "string" | "escape" | "head" | "base64";

export class Splitter {
  /** Pieces that are whole, for the caller to take. */
  readonly pieces: Piece[] = [];
  private readonly token: string;
  private mode: Mode = "plain";
  private depth = 0;
  /** Whether the place is an element of `conversations`. */
  private inside = false;
  private inConversations = false;
  private around = "";
  private element: string[] = [];
  private length = 0;
  private count = 0;
  private blobs = new Map<string, Blob>();
  /** The last short text at the depths where keys matter, and the key that it became. */
  private word = "";
  private key = "";
  private head = "";
  private base64 = "";
  private bytes: Uint8Array<ArrayBuffer>[] = [];
  private size = 0;
  private type = "";

  constructor(token: string = crypto.randomUUID()) {
    this.token = token;
  }

  push(chunk: string): void {
    for (let at = 0; at < chunk.length;) {
      if (this.mode === "plain") at = this.plain(chunk, at);
      else if (this.mode === "string") at = this.string(chunk, at);
      else if (this.mode === "escape") at = this.escape(chunk, at);
      else if (this.mode === "head") at = this.header(chunk, at);
      else at = this.data(chunk, at);
    }
  }

  /** What is around the conversations, with a 0 for each. */
  end(): string {
    if (this.mode !== "plain" || this.depth > 0) throw new ImportError(t("import.cut"));
    return this.around;
  }

  private write(text: string): void {
    if (!this.inside) {
      this.around += text;
      if (this.around.length > MOST_AROUND) throw new ImportError(t("import.foreign"));
      return;
    }
    this.length += text.length;
    if (this.length > MOST_TEXT) throw new ImportError(t("import.long", { number: this.count + 1 }));
    this.element.push(text);
  }

  /** Outside of texts: brackets count, and commas and brackets end conversations. */
  private plain(chunk: string, start: number): number {
    let at = start;
    let from = start;
    const flush = (to: number) => {
      if (to > from) this.write(chunk.slice(from, to));
      from = to;
    };
    for (; at < chunk.length; at++) {
      const letter = chunk[at]!;
      const betweens = this.inConversations && this.depth === CONVERSATION_DEPTH;
      if (betweens && this.inside && (letter === "," || letter === "]")) {
        flush(at);
        this.finish();
      } else if (betweens && !this.inside && !/[\s,\]]/u.test(letter)) {
        flush(at);
        this.inside = true;
      }
      if (letter === '"') {
        flush(at + 1);
        this.begin();
        return at + 1;
      }
      if (letter === "{" || letter === "[") this.open(letter);
      else if (letter === "}" || letter === "]") this.close();
      else if (letter === ":") this.key = this.word;
      else if (letter === ",") this.key = "";
    }
    flush(at);
    if (this.around !== "" && !/^\s*(?:\{|$)/u.test(this.around)) throw new ImportError(t("import.notObjectFile"));
    return at;
  }

  private open(letter: string): void {
    if (this.depth === 1 && letter === "[" && this.key === "conversations") this.inConversations = true;
    this.key = "";
    this.depth += 1;
    if (this.depth > MOST_DEPTH) throw new ImportError(t("import.deep"));
  }

  private close(): void {
    this.depth -= 1;
    if (this.depth < CONVERSATION_DEPTH) this.inConversations = false;
    if (this.depth < 0) throw new ImportError(t("import.bracket"));
  }

  /** A conversation is whole. */
  private finish(): void {
    this.inside = false;
    const head = this.count === 0 ? { head: `${this.around}]}` } : {};
    this.pieces.push({ text: this.element.join(""), blobs: this.blobs, ...head });
    this.around += "0";
    this.count += 1;
    this.element = [];
    this.length = 0;
    this.blobs = new Map();
  }

  /** A text begins: the bytes of an attachment, or any other. */
  private begin(): void {
    this.word = "";
    this.head = "";
    this.mode = this.inside && this.depth === ATTACHMENT_DEPTH && this.key === "data" ? "head" : "string";
  }

  private string(chunk: string, start: number): number {
    let at = start;
    while (at < chunk.length && chunk[at] !== '"' && chunk[at] !== "\\") at++;
    this.write(chunk.slice(start, at));
    if (this.word.length < 32) this.word += chunk.slice(start, Math.min(at, start + 32));
    if (at === chunk.length) return at;
    this.write(chunk[at]!);
    this.mode = chunk[at] === '"' ? "plain" : "escape";
    // A key that is spelt with escapes is none of those that matter.
    if (this.mode === "escape") this.word += "\\";
    return at + 1;
  }

  private escape(chunk: string, at: number): number {
    this.write(chunk[at]!);
    this.mode = "string";
    return at + 1;
  }

  /** The beginning of an attachment's bytes, up to the comma; whatever else it is stays a text. */
  private header(chunk: string, start: number): number {
    for (let at = start; at < chunk.length; at++) {
      const letter = chunk[at]!;
      if (letter !== '"' && letter !== "\\" && this.head.length < MOST_HEAD) this.head += letter;
      else {
        this.write(this.head);
        this.mode = "string";
        return at;
      }
      if (letter !== ",") continue;
      const type = DATA.exec(this.head)?.[1];
      if (type === undefined) {
        this.write(this.head);
        this.mode = "string";
      } else {
        this.type = type;
        this.mode = "base64";
      }
      return at + 1;
    }
    return chunk.length;
  }

  private data(chunk: string, start: number): number {
    const end = chunk.indexOf('"', start);
    const to = end < 0 ? chunk.length : end;
    this.base64 += chunk.slice(start, to);
    if (end < 0) {
      if (this.base64.length >= DECODED) this.decode(this.base64.length - (this.base64.length % 4));
      return to;
    }
    this.decode(this.base64.length);
    const place = `${this.token} ${this.blobs.size}`;
    this.blobs.set(place, new Blob(this.bytes, { type: this.type }));
    this.bytes = [];
    this.size = 0;
    this.write(`${place}"`);
    this.mode = "plain";
    return to + 1;
  }

  private decode(length: number): void {
    const text = this.base64.slice(0, length);
    this.base64 = this.base64.slice(length);
    const where = () => t("import.conversation", { number: this.count + 1 });
    // Padding ends base64, so nothing may follow bytes that had some.
    const closed = (this.bytes.at(-1)?.length ?? 0) % 3 !== 0;
    if (!BASE64.test(text) || (closed && text !== "")) throw new ImportError(t("import.notBase64", { where: where() }));
    let decoded: string;
    try {
      decoded = atob(text);
    } catch {
      throw new ImportError(t("import.notBase64", { where: where() }));
    }
    this.size += decoded.length;
    if (this.size > MOST_BYTES) throw new ImportError(t("import.attachmentSize", { where: where() }));
    if (decoded !== "") this.bytes.push(bytesOf(decoded));
  }
}
