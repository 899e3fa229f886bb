// The conversations: the list, the one that is shown, and what changes them. Everything is written through to the
// database; other tabs are told, and tell us.

import { alternatives, branch, newestLeaf, titleOf, type Conversation, type Turn } from "../lib/conversation.js";
import type { Attached, Attachment } from "../lib/attachments.js";
import { openDatabase, type Database, type Stored, type StoredBlob } from "../lib/database.js";
import { imported } from "../lib/import.js";
import { exported, toFile } from "../lib/export.js";
import { memoryDatabase } from "../lib/memory-database.js";
import { t } from "../text/index.svelte.js";

/** How tabs tell each other which conversation changed. */
export interface Channel {
  postMessage(id: string): void;
  onmessage: ((event: MessageEvent<string>) => void) | null;
}

/** A turn that is to be added; its attachments with their bytes, unless they are stored already. */
export type NewTurn = Pick<Turn, "role" | "content"> &
  Partial<Omit<Turn, "attachments">> & { attachments?: (Attachment | Attached)[] };

/** What a conversation offers to the model, beyond its messages. */
export type Offered = Pick<Conversation, "tools" | "allowedTools" | "collections">;

/** How long a deleted conversation can be brought back. */
export const UNDO_MS = 60_000;
/** Blobs that are remembered: the engine knows what it has encoded by the object. */
const MOST_BLOBS = 64;

export class Chats {
  list = $state<Conversation[]>([]);
  current = $state<Conversation>();
  turns = $state<Record<string, Turn>>({});
  /** The turn that is being edited. */
  editing = $state<string>();
  /** The turn to scroll to, after a search found it. */
  revealed = $state<string>();
  /** A new conversation's system prompt, before its first message. */
  draftSystem = $state<string>();
  /** The same for its tools and collections. */
  draftChoice = $state<Offered>({});
  /** Turns that this tab is writing: nobody else knows better. */
  writing = new Map<string, Turn>();
  path = $derived(branch(this.turns, this.current?.leaf ?? null));
  /** Whether conversations outlive this window. */
  readonly kept: boolean;
  #found: Turn | undefined;
  #blobs = new Map<string, Blob>();
  #database: Database;
  #channel: Channel;
  /** Counts what was asked to be shown: the last wish wins, however long reading takes. */
  #opening = 0;
  /** Ends when nothing is being changed. */
  #settled: Promise<unknown> = Promise.resolve();

  constructor(database: Database, channel: Channel, kept = true) {
    this.kept = kept;
    this.#database = database;
    this.#channel = channel;
    channel.onmessage = (event) => void this.#inTurn(() => this.#follow(event.data));
  }

  /** Reads the list, and forgets what was deleted long enough ago. */
  async start(): Promise<void> {
    const all = await this.#database.conversations();
    const old = all.filter((one) => one.deleted !== undefined && one.deleted < Date.now() - UNDO_MS);
    for (const one of old) await this.#database.remove(one.id);
    this.#show(all);
  }

  /** What this tab changes and what it hears of others, one after the other: nothing is replaced by what was read before. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#settled.then(work);
    this.#settled = done.catch(() => {});
    return done;
  }

  #show(all: Conversation[]): void {
    this.list = all.filter((one) => one.deleted === undefined).sort((a, b) => b.updated - a.updated);
  }

  /** Shows a conversation, or an empty page for a new one. False where there is none with that id. */
  async open(id?: string): Promise<boolean> {
    if (id !== undefined && id === this.current?.id) return true;
    const wanted = ++this.#opening;
    const found = id === undefined ? undefined : this.list.find((one) => one.id === id);
    const turns = found ? await this.#read(found.id) : [];
    if (wanted !== this.#opening) return true;
    this.turns = Object.fromEntries(turns.map((turn) => [turn.id, turn]));
    this.current = found;
    this.draftSystem = undefined;
    this.draftChoice = {};
    this.editing = undefined;
    this.#showFound();
    return found !== undefined || id === undefined;
  }

  /**
   * Adds a turn after the shown ones (or after `parent`) and shows it; the first one makes the conversation. Where it belongs is decided
   * when this is called: the conversation that `turn` names, or the one that is shown now, whatever the user opens while it is written.
   */
  add(turn: NewTurn, parent?: string | null): Promise<Turn> {
    const { draftSystem: system } = this;
    const own = { ...(system === undefined ? {} : { system }), ...$state.snapshot(this.draftChoice) };
    const owner = turn.conversation ?? this.current?.id;
    return this.#inTurn(() => this.#add(turn, own, owner, parent));
  }

  async #add(turn: NewTurn, own: Partial<Conversation>, owner?: string, parent?: string | null): Promise<Turn> {
    const conversation = owner ?? crypto.randomUUID();
    const found = this.#find(conversation);
    if (owner !== undefined && !found) throw new Error("the conversation was deleted");
    const { attachments, ...said } = turn;
    const now = await this.#now(found);
    const added = $state<Turn>({
      id: crypto.randomUUID(),
      parent: parent === undefined ? (found?.leaf ?? null) : parent,
      created: now,
      ...said,
      conversation,
      ...(attachments ? { attachments: attachments.map(({ id, kind, name }) => ({ id, kind, name })) } : {}),
    });
    const blobs = (attachments ?? []).flatMap((one): StoredBlob[] =>
      "blob" in one ? [{ id: one.id, conversation, blob: one.blob }] : [],
    );
    if (!found)
      this.#begin({ id: conversation, title: titleFor(turn), created: now, updated: now, leaf: added.id, ...own });
    this.#place(added);
    const row = $state.snapshot(added) as Turn;
    const entry = this.#find(conversation);
    if (found || !entry) await this.#database.putTurn(row, blobs);
    else await this.#database.add([{ conversation: $state.snapshot(entry), turns: [row], blobs }]);
    await this.#write(conversation, { leaf: added.id, updated: now });
    // A tab that left and came back meanwhile has read what was there before.
    this.#place(added);
    return added;
  }

  #find(id: string): Conversation | undefined {
    return this.current?.id === id ? this.current : this.list.find((one) => one.id === id);
  }

  /** Turns are ordered by their time, so two of a conversation never share a moment. */
  async #now(conversation: Conversation | undefined): Promise<number> {
    if (!conversation) return Date.now();
    const turns = Object.values(await this.#turnsOf(conversation.id));
    return Math.max(Date.now(), ...turns.map((one) => one.created + 1));
  }

  /** A new conversation: in the list, and shown where nothing else is. */
  #begin(conversation: Conversation): void {
    this.list.unshift(conversation);
    if (this.current) return;
    this.turns = {};
    // From here on the list's own entry is the one that is shown and changed.
    this.current = this.list[0];
  }

  /** Shows a turn, if its conversation is the one that is shown. */
  #place(turn: Turn): void {
    if (this.current?.id !== turn.conversation || turn.id in this.turns) return;
    this.turns[turn.id] = turn;
    this.current.leaf = turn.id;
  }

  /** A conversation's turns, whether it is shown or not. */
  async #turnsOf(id: string): Promise<Record<string, Turn>> {
    if (this.current?.id === id) return this.turns;
    return Object.fromEntries((await this.#read(id)).map((turn) => [turn.id, turn]));
  }

  /** A conversation's stored turns, but this tab's own of those it writes: an answer may end while its unfinished row is being read. */
  async #read(id: string): Promise<Turn[]> {
    const before = new Map(this.writing);
    const turns = await this.#database.turns(id);
    return turns.map((turn) => this.writing.get(turn.id) ?? before.get(turn.id) ?? turn);
  }

  /** What leads to a turn in its own conversation, wherever the user is by now: the turns, and the conversation's system prompt. */
  async history(turn: Turn): Promise<{ path: Turn[]; system?: string }> {
    const system = this.#find(turn.conversation)?.system;
    const path = branch(await this.#turnsOf(turn.conversation), turn.id);
    return { path, ...(system === undefined ? {} : { system }) };
  }

  /** The bytes of an attachment, always the same object for the same one; undefined where the browser lost them. */
  async blob(id: string): Promise<Blob | undefined> {
    const known = this.#blobs.get(id);
    if (known) return known;
    const found = await this.#database.blob(id);
    const meanwhile = this.#blobs.get(id);
    if (meanwhile || !found) return meanwhile ?? found;
    this.#blobs.set(id, found);
    for (const oldest of this.#blobs.keys()) {
      if (this.#blobs.size <= MOST_BLOBS) break;
      this.#blobs.delete(oldest);
    }
    return found;
  }

  /** Writes a turn down as it is now. */
  async save(turn: Turn): Promise<void> {
    await this.#database.putTurn($state.snapshot(turn) as Turn);
    this.#channel.postMessage(turn.conversation);
  }

  /** Shows the alternative before or after a turn, with what followed it. */
  async step(turn: Turn, by: -1 | 1): Promise<void> {
    const others = alternatives(this.turns, turn);
    const next = others[others.findIndex((one) => one.id === turn.id) + by];
    if (!next || !this.current) return;
    this.current.leaf = newestLeaf(this.turns, next.id);
    await this.#change(this.current.id, { leaf: this.current.leaf });
  }

  /** Shows the branch of a turn. */
  async choose(turn: Turn): Promise<void> {
    if (this.current?.id !== turn.conversation) return;
    this.current.leaf = newestLeaf(this.turns, turn.id);
    await this.#change(this.current.id, { leaf: this.current.leaf });
  }

  /** Shows a turn that was found, on whatever branch it is: now, or as soon as its conversation is opened. */
  reveal(turn: Turn): void {
    this.#found = turn;
    if (this.current?.id === turn.conversation) this.#showFound();
  }

  #showFound(): void {
    const found = this.#found;
    if (!found || !this.current || this.current.id !== found.conversation) return;
    this.#found = undefined;
    if (!this.path.some((one) => one.id === found.id)) {
      this.current.leaf = newestLeaf(this.turns, found.id);
      void this.#change(this.current.id, { leaf: this.current.leaf });
    }
    this.revealed = found.id;
  }

  async rename(id: string, title: string): Promise<void> {
    await this.#change(id, { title: title.trim().slice(0, 200) || t("common.untitled") });
  }

  async pin(id: string, pinned: boolean): Promise<void> {
    await this.#change(id, { pinned });
  }

  /** Puts a conversation into a folder, or into none. */
  async move(id: string, folder: string | undefined): Promise<void> {
    await this.#change(id, { folder });
  }

  async setSystem(system: string | undefined): Promise<void> {
    if (this.current) await this.#change(this.current.id, { system });
    else this.draftSystem = system;
  }

  /** What a conversation offers to the model: the one with this id, or the one that is shown or about to begin. */
  offered(id = this.current?.id): Offered {
    return (id === undefined ? this.draftChoice : this.#find(id)) ?? {};
  }

  /** Changes that. */
  async offer(fields: Offered, id = this.current?.id): Promise<void> {
    if (id === undefined) this.draftChoice = { ...this.draftChoice, ...fields };
    else await this.#change(id, fields);
  }

  /** Hides a conversation; `restore` brings it back, `forget` deletes it for good. */
  async remove(id: string): Promise<void> {
    await this.#change(id, { deleted: Date.now() });
    this.list = this.list.filter((one) => one.id !== id);
    if (this.current?.id === id) await this.open();
  }

  async restore(id: string): Promise<void> {
    await this.#change(id, { deleted: undefined });
    this.#show(await this.#database.conversations());
  }

  async forget(id: string): Promise<void> {
    await this.#database.remove(id);
    this.#channel.postMessage(id);
  }

  async search(text: string, most = 30): Promise<{ conversation: Conversation; turn?: Turn }[]> {
    const wanted = text.trim().toLocaleLowerCase();
    const titled = this.list.filter((one) => one.title.toLocaleLowerCase().includes(wanted));
    const hits: { conversation: Conversation; turn?: Turn }[] = titled.map((conversation) => ({ conversation }));
    if (wanted === "") return hits.slice(0, most);
    const seen = new Set(titled.map((one) => one.id));
    for (const turn of await this.#database.search(wanted, 200)) {
      const conversation = this.list.find((one) => one.id === turn.conversation);
      if (!conversation || seen.has(conversation.id)) continue;
      seen.add(conversation.id);
      hits.push({ conversation, turn });
    }
    return hits.slice(0, most);
  }

  /** All conversations (or one) as a file. */
  async export(id?: string): Promise<Blob> {
    const wanted = this.list.filter((one) => id === undefined || one.id === id);
    const database = this.#database;
    async function* stored() {
      for (const one of wanted) yield { conversation: $state.snapshot(one), turns: await database.turns(one.id) };
    }
    return toFile(exported(stored(), (blob) => this.#database.blob(blob)));
  }

  /** What a conversation shows, for a document. */
  async shownPath(id: string): Promise<Turn[]> {
    const conversation = this.#find(id);
    return branch(await this.#turnsOf(id), conversation?.leaf ?? null);
  }

  /** Adds a file's conversations beside those that are here; says how many. All of them or none. */
  async import(chunks: AsyncIterable<string>): Promise<number> {
    const added: string[] = [];
    try {
      for await (const one of imported(chunks)) {
        await this.#database.add([one]);
        added.push(one.conversation.id);
      }
    } catch (error) {
      for (const id of added) await this.#database.remove(id).catch(() => {});
      throw error;
    }
    this.#show(await this.#database.conversations());
    for (const id of added) this.#channel.postMessage(id);
    return added.length;
  }

  /** Adds chats of another program. All of them or none. */
  async adopt(stored: Stored[]): Promise<void> {
    await this.#database.add(stored);
    this.#show(await this.#database.conversations());
    for (const { conversation } of stored) this.#channel.postMessage(conversation.id);
  }

  #change(id: string, fields: Partial<Conversation>): Promise<void> {
    return this.#inTurn(() => this.#write(id, fields));
  }

  async #write(id: string, fields: Partial<Conversation>): Promise<void> {
    const shown = this.list.find((one) => one.id === id);
    if (shown) Object.assign(shown, fields);
    if (this.current?.id === id) Object.assign(this.current, fields);
    await this.#database.change(id, fields);
    this.#channel.postMessage(id);
  }

  /** Another tab changed something. */
  async #follow(id: string): Promise<void> {
    this.#show(await this.#database.conversations());
    if (this.current?.id !== id) return;
    const found = this.list.find((one) => one.id === id);
    if (!found) return void (await this.open());
    const turns = await this.#read(id);
    if (this.current?.id !== id) return;
    for (const turn of turns) this.turns[turn.id] = turn;
    const leaf = this.writing.size > 0 ? this.current.leaf : found.leaf;
    this.current = found;
    this.current.leaf = leaf;
  }
}

/** What a new conversation is called: after what is asked, or else after what is attached. */
const titleFor = ({ content, attachments }: NewTurn): string => titleOf(content || (attachments?.[0]?.name ?? ""));

let opened: Chats | undefined;

/**
 * Opens the database; once, before the app is shown. A browser that keeps nothing gets one in memory. `closed` is called when a newer
 * version of the app takes the database over.
 */
export async function openChats(closed?: () => void): Promise<Chats> {
  const channel = new BroadcastChannel("rullama-chats");
  try {
    opened = new Chats(await openDatabase("rullama", closed), channel);
    await opened.start();
  } catch {
    opened = new Chats(memoryDatabase(), channel, false);
  }
  return opened;
}

export function chats(): Chats {
  if (!opened) throw new Error("conversations are opened before the app is shown");
  return opened;
}
