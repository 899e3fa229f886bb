// Where conversations are kept. Each turn is a row of its own and conversations are changed field by field inside one
// transaction, so two tabs that write at once do not undo each other's work.

import type { Conversation, Turn } from "./conversation.js";

export interface Stored {
  conversation: Conversation;
  turns: Turn[];
}

export interface Database {
  conversations(): Promise<Conversation[]>;
  turns(conversation: string): Promise<Turn[]>;
  /** Changes some fields; a conversation that is gone stays gone. */
  change(id: string, fields: Partial<Conversation>): Promise<void>;
  /** Adds whole conversations in one transaction: all of them or none. */
  add(stored: Stored[]): Promise<void>;
  /** Writes a turn, and its conversation's time with it; nothing where the conversation is gone. */
  putTurn(turn: Turn): Promise<void>;
  remove(id: string): Promise<void>;
  /** Turns that contain a text, whatever their case, newest first. */
  search(text: string, most: number): Promise<Turn[]>;
}

const CONVERSATIONS = "conversations";
const TURNS = "turns";

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the browser's database refused"));
  });
}

function finished(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error("the browser's database gave up"));
  });
}

function open(name: string): Promise<IDBDatabase> {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore(CONVERSATIONS, { keyPath: "id" });
    request.result.createObjectStore(TURNS, { keyPath: "id" }).createIndex("conversation", "conversation");
  };
  return settled(request);
}

/** Conversations in this browser's IndexedDB. */
export async function openDatabase(name = "rullama"): Promise<Database> {
  const db = await open(name);
  // A newer version of the app in another tab may want to change the layout.
  db.onversionchange = () => db.close();
  const begin = (mode: IDBTransactionMode) => {
    const transaction = db.transaction([CONVERSATIONS, TURNS], mode, { durability: "relaxed" });
    return {
      done: finished(transaction),
      conversations: transaction.objectStore(CONVERSATIONS),
      turns: transaction.objectStore(TURNS),
    };
  };
  return {
    conversations: () => settled(begin("readonly").conversations.getAll() as IDBRequest<Conversation[]>),
    turns: (id) => settled(begin("readonly").turns.index("conversation").getAll(id) as IDBRequest<Turn[]>),
    async change(id, fields) {
      const { done, conversations } = begin("readwrite");
      const old = await settled(conversations.get(id) as IDBRequest<Conversation | undefined>);
      if (old) conversations.put({ ...old, ...fields, id });
      await done;
    },
    async add(stored) {
      const { done, conversations, turns } = begin("readwrite");
      for (const one of stored) {
        conversations.add(one.conversation);
        for (const turn of one.turns) turns.add(turn);
      }
      await done;
    },
    async putTurn(turn) {
      const { done, conversations, turns } = begin("readwrite");
      const owner = await settled(conversations.get(turn.conversation) as IDBRequest<Conversation | undefined>);
      if (owner) {
        turns.put(turn);
        conversations.put({ ...owner, updated: Math.max(owner.updated, Date.now()) });
      }
      await done;
    },
    async remove(id) {
      const { done, conversations, turns } = begin("readwrite");
      conversations.delete(id);
      for (const key of await settled(turns.index("conversation").getAllKeys(id))) turns.delete(key);
      await done;
    },
    async search(text, most) {
      const wanted = text.toLocaleLowerCase();
      const all = await settled(begin("readonly").turns.getAll() as IDBRequest<Turn[]>);
      return all
        .filter((turn) => turn.content.toLocaleLowerCase().includes(wanted))
        .sort((a, b) => b.created - a.created)
        .slice(0, most);
    },
  };
}
