// Messages that are being written: one per conversation, kept while the user is elsewhere. Texts outlive the tab.

import { attach, AttachmentError, isMedia, kindOf, type Attached } from "../lib/attachments.js";
import { throttle } from "../lib/throttle.js";
import { t } from "../text/index.svelte.js";
import { chats } from "./chats.svelte.js";
import { model } from "./model.svelte.js";
import { notices } from "./notices.svelte.js";

const KEY = "rullama-drafts";
/** The draft of a conversation that does not exist yet. */
const NEW = "new";
const SAVE_MS = 400;
/** More are not remembered. */
const MOST = 50;

interface Draft {
  text: string;
  attachments: Attached[];
}

class Drafts {
  /** The file that is being read: a large PDF takes seconds. */
  reading = $state<string>();
  #all = $state.raw<Record<string, Draft>>(stored());
  #save = throttle(SAVE_MS, () => keep(this.#all));

  /** The conversation whose draft is shown. */
  get key(): string {
    return chats().current?.id ?? NEW;
  }

  get text(): string {
    return this.#all[this.key]?.text ?? "";
  }

  set text(text: string) {
    this.#change(this.key, { text });
  }

  get attachments(): Attached[] {
    return this.#all[this.key]?.attachments ?? [];
  }

  #change(key: string, fields: Partial<Draft>): void {
    const { [key]: old = { text: "", attachments: [] }, ...others } = this.#all;
    const draft = { ...old, ...fields };
    const empty = draft.text === "" && draft.attachments.length === 0;
    this.#all = empty ? others : { ...others, [key]: draft };
    this.#save();
  }

  /** Attaches files; says which of them cannot be. They go where the user is now, however long reading takes. */
  async add(files: Iterable<File>): Promise<void> {
    const { key } = this;
    const given = [...files];
    const { kinds } = model;
    const all = given.filter((file) => kinds.has(kindOf(file) ?? "document"));
    if (all.length < given.length) {
      const values = { model: model.choice?.name ?? "" };
      notices.show(t(kinds.has("image") ? "attach.noAudio" : "attach.unsupported", values));
    }
    for (const file of all) {
      this.reading = file.name;
      try {
        const attached = await attach(file);
        this.#change(key, { attachments: [...(this.#all[key]?.attachments ?? []), attached] });
      } catch (error) {
        notices.show(error instanceof AttachmentError ? error.message : t("attach.failed", { name: file.name }));
      } finally {
        this.reading = undefined;
      }
    }
  }

  remove(at: number): void {
    this.#change(this.key, { attachments: this.attachments.filter((_, index) => index !== at) });
  }

  /** The draft that is shown, which is then gone from here. */
  take(): Draft & { key: string } {
    const { key, text, attachments } = this;
    this.#change(key, { text: "", attachments: [] });
    this.#save.flush();
    return { key, text, attachments };
  }

  /** Brings back what could not be sent, unless something else was written meanwhile. */
  giveBack({ key, text, attachments }: Draft & { key: string }): void {
    const now = this.#all[key];
    this.#change(key, { text: now?.text || text, attachments: [...attachments, ...(now?.attachments ?? [])] });
  }

  forget(conversation: string): void {
    this.#change(conversation, { text: "", attachments: [] });
  }
}

/** Texts that were left when the tab was closed. */
function stored(): Record<string, Draft> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    if (typeof value !== "object" || value === null) return {};
    const texts = Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string");
    return Object.fromEntries(texts.slice(-MOST).map(([key, text]) => [key, { text, attachments: [] }]));
  } catch {
    return {};
  }
}

function keep(all: Record<string, Draft>): void {
  const texts = Object.entries(all).flatMap(([key, { text }]) => (text === "" ? [] : [[key, text]]));
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(texts.slice(-MOST))));
  } catch {
    // A window that keeps nothing, or a draft that is too long: it lives as long as the tab.
  }
}

export const draft = new Drafts();

/** Files that can be attached. */
export function attachable(files: Iterable<File>): File[] {
  return [...files].filter((file) => kindOf(file) !== undefined);
}

/** Images, audio and video among files. */
export function media(files: Iterable<File>): File[] {
  return attachable(files).filter((file) => isMedia({ kind: kindOf(file) ?? "document" }));
}
