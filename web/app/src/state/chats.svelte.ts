// The conversations: the list, the one that is shown, and what changes them. Everything is written through to the
// database; other tabs are told, and tell us.

import { alternatives, branch, newestLeaf, titleOf, type Conversation, type Turn } from "../lib/conversation.js";
import { openDatabase, type Database, type Stored } from "../lib/database.js";
import { fromJson, toJson } from "../lib/exchange.js";
import { memoryDatabase } from "../lib/memory-database.js";

/** How tabs tell each other which conversation changed. */
export interface Channel {
  postMessage(id: string): void;
  onmessage: ((event: MessageEvent<string>) => void) | null;
}

const UNDO_MS = 60_000;

export class Chats {
  list = $state<Conversation[]>([]);
  current = $state<Conversation>();
  turns = $state<Record<string, Turn>>({});
  /** A new conversation's system prompt, before its first message. */
  draftSystem = $state<string>();
  /** Turns that this tab is writing: nobody else knows better. */
  writing = new Map<string, Turn>();
  path = $derived(branch(this.turns, this.current?.leaf ?? null));
  /** Whether conversations outlive this window. */
  readonly kept: boolean;
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
    const turns = found ? await this.#database.turns(found.id) : [];
    if (wanted !== this.#opening) return true;
    this.turns = Object.fromEntries(turns.map((turn) => [turn.id, this.writing.get(turn.id) ?? turn]));
    this.current = found;
    this.draftSystem = undefined;
    return found !== undefined || id === undefined;
  }

  /** Adds a turn behind the shown ones (or behind `parent`) and shows it; the first one makes the conversation. */
  add(turn: Pick<Turn, "role" | "content"> & Partial<Turn>, parent?: string | null): Promise<Turn> {
    return this.#inTurn(() => this.#add(turn, parent));
  }

  async #add(turn: Pick<Turn, "role" | "content"> & Partial<Turn>, parent?: string | null): Promise<Turn> {
    const isNew = this.current === undefined;
    // Turns are ordered by this, so two never share a moment.
    const latest = isNew ? 0 : Math.max(0, ...Object.values(this.turns).map((one) => one.created));
    const now = Math.max(Date.now(), latest + 1);
    const owner: Conversation = this.current ?? {
      id: crypto.randomUUID(),
      title: titleOf(turn.content),
      created: now,
      updated: now,
      leaf: null,
      ...(this.draftSystem === undefined ? {} : { system: this.draftSystem }),
    };
    const added: Turn = {
      id: crypto.randomUUID(),
      conversation: owner.id,
      parent: parent === undefined ? owner.leaf : parent,
      created: now,
      ...turn,
    };
    if (isNew) {
      this.turns = {};
      this.list.unshift(owner);
      // From here on the list's own entry is the one that is shown and changed.
      this.current = this.list[0];
    }
    this.turns[added.id] = added;
    if (this.current) this.current.leaf = added.id;
    if (isNew) await this.#database.add([{ conversation: { ...owner, leaf: added.id }, turns: [added] }]);
    else await this.save(added);
    await this.#write(owner.id, { leaf: added.id, updated: now });
    return this.turns[added.id] ?? added;
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

  async rename(id: string, title: string): Promise<void> {
    await this.#change(id, { title: title.trim().slice(0, 200) || "Untitled" });
  }

  async setSystem(system: string | undefined): Promise<void> {
    if (this.current) await this.#change(this.current.id, { system });
    else this.draftSystem = system;
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

  /** All conversations (or one) as the text of a file. */
  async export(id?: string): Promise<string> {
    const wanted = this.list.filter((one) => id === undefined || one.id === id);
    const stored: Stored[] = [];
    for (const one of wanted) {
      stored.push({ conversation: $state.snapshot(one), turns: await this.#database.turns(one.id) });
    }
    return toJson(stored);
  }

  /** Adds a file's conversations beside those that are here; says how many. */
  async import(text: string): Promise<number> {
    const stored = fromJson(text);
    await this.#database.add(stored);
    this.#show(await this.#database.conversations());
    for (const one of stored) this.#channel.postMessage(one.conversation.id);
    return stored.length;
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
    const turns = await this.#database.turns(id);
    if (this.current?.id !== id) return;
    for (const turn of turns) if (!this.writing.has(turn.id)) this.turns[turn.id] = turn;
    const leaf = this.writing.size > 0 ? this.current.leaf : found.leaf;
    this.current = found;
    this.current.leaf = leaf;
  }
}

let opened: Chats | undefined;

/** Opens the database; once, before the app is shown. A browser that keeps nothing gets one in memory. */
export async function openChats(): Promise<Chats> {
  const channel = new BroadcastChannel("rullama-chats");
  try {
    opened = new Chats(await openDatabase(), channel);
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
