// Where conversations are kept. Each turn is a row of its own and conversations are changed field by field inside one
// transaction, so two tabs that write at once do not undo each other's work. Attachments' bytes are rows of a third store.

import { toBlob, type Attachment } from "./attachments.js";
import type { Conversation, Turn } from "./conversation.js";

/** The bytes of an attachment. */
export interface StoredBlob {
  id: string;
  conversation: string;
  blob: Blob;
}

export interface Stored {
  conversation: Conversation;
  turns: Turn[];
  blobs: StoredBlob[];
}

export interface Database {
  conversations(): Promise<Conversation[]>;
  turns(conversation: string): Promise<Turn[]>;
  /** The bytes of an attachment; undefined where they are gone. */
  blob(id: string): Promise<Blob | undefined>;
  /** Changes some fields; a conversation that is gone stays gone. */
  change(id: string, fields: Partial<Conversation>): Promise<void>;
  /** Adds whole conversations in one transaction: all of them or none. */
  add(stored: Stored[]): Promise<void>;
  /** Writes a turn with what is attached to it, and its conversation's time; nothing where the conversation is gone. */
  putTurn(turn: Turn, blobs?: StoredBlob[]): Promise<void>;
  remove(id: string): Promise<void>;
  /** Turns that contain a text, whatever their case, newest first. */
  search(text: string, most: number): Promise<Turn[]>;
}

const CONVERSATIONS = "conversations";
const TURNS = "turns";
const BLOBS = "blobs";
/** The first version held attachments inside turns, as `data:` addresses. */
const VERSION = 2;

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
  const request = indexedDB.open(name, VERSION);
  request.onupgradeneeded = ({ oldVersion }) => {
    const { result: db, transaction } = request;
    if (oldVersion < 1) {
      db.createObjectStore(CONVERSATIONS, { keyPath: "id" });
      db.createObjectStore(TURNS, { keyPath: "id" }).createIndex("conversation", "conversation");
    }
    if (oldVersion < 2) db.createObjectStore(BLOBS, { keyPath: "id" }).createIndex("conversation", "conversation");
    if (oldVersion === 1 && transaction) moveAttachments(transaction);
  };
  return settled(request);
}

/** Takes the bytes of attachments out of turns, within the transaction that changes the layout: all of it or nothing. */
function moveAttachments(transaction: IDBTransaction): void {
  const blobs = transaction.objectStore(BLOBS);
  const cursor = transaction.objectStore(TURNS).openCursor();
  cursor.onsuccess = () => {
    const at = cursor.result;
    if (!at) return;
    const turn = at.value as Omit<Turn, "attachments"> & { attachments?: (Attachment & { data?: string })[] };
    if (turn.attachments?.some((one) => one.data !== undefined)) {
      const attachments = turn.attachments.map(({ kind, name, data = "" }): Attachment => {
        const id = crypto.randomUUID();
        blobs.put({ id, conversation: turn.conversation, blob: blobOf(data) } satisfies StoredBlob);
        return { id, kind, name };
      });
      at.update({ ...turn, attachments });
    }
    at.continue();
  };
}

/** What cannot be decoded is kept as it is: one damaged attachment must not lose all conversations. */
function blobOf(data: string): Blob {
  try {
    return toBlob(data);
  } catch {
    return new Blob([data]);
  }
}

/** Conversations in this browser's IndexedDB. `closed` is called when a newer version of the app takes it over in another tab. */
export async function openDatabase(name = "rullama", closed: () => void = () => {}): Promise<Database> {
  const db = await open(name);
  db.onversionchange = () => {
    db.close();
    closed();
  };
  const begin = (mode: IDBTransactionMode, stores: string[] = [CONVERSATIONS, TURNS]) => {
    const transaction = db.transaction(stores, mode, { durability: "relaxed" });
    return { done: finished(transaction), store: (store: string) => transaction.objectStore(store) };
  };
  const all = [CONVERSATIONS, TURNS, BLOBS];
  return {
    conversations: () => settled(begin("readonly").store(CONVERSATIONS).getAll() as IDBRequest<Conversation[]>),
    turns: (id) => settled(begin("readonly").store(TURNS).index("conversation").getAll(id) as IDBRequest<Turn[]>),
    async blob(id) {
      const found = begin("readonly", [BLOBS]).store(BLOBS).get(id) as IDBRequest<StoredBlob | undefined>;
      return (await settled(found))?.blob;
    },
    async change(id, fields) {
      const { done, store } = begin("readwrite");
      const old = await settled(store(CONVERSATIONS).get(id) as IDBRequest<Conversation | undefined>);
      if (old) store(CONVERSATIONS).put({ ...old, ...fields, id });
      await done;
    },
    async add(stored) {
      const { done, store } = begin("readwrite", all);
      for (const one of stored) {
        store(CONVERSATIONS).add(one.conversation);
        for (const turn of one.turns) store(TURNS).add(turn);
        for (const blob of one.blobs) store(BLOBS).add(blob);
      }
      await done;
    },
    async putTurn(turn, blobs = []) {
      const { done, store } = begin("readwrite", blobs.length > 0 ? all : undefined);
      const owner = await settled(store(CONVERSATIONS).get(turn.conversation) as IDBRequest<Conversation | undefined>);
      if (owner) {
        store(TURNS).put(turn);
        for (const blob of blobs) store(BLOBS).put(blob);
        store(CONVERSATIONS).put({ ...owner, updated: Math.max(owner.updated, Date.now()) });
      }
      await done;
    },
    async remove(id) {
      const { done, store } = begin("readwrite", all);
      store(CONVERSATIONS).delete(id);
      for (const rows of [store(TURNS), store(BLOBS)]) {
        for (const key of await settled(rows.index("conversation").getAllKeys(id))) rows.delete(key);
      }
      await done;
    },
    async search(text, most) {
      const wanted = text.toLocaleLowerCase();
      const turns = await settled(begin("readonly", [TURNS]).store(TURNS).getAll() as IDBRequest<Turn[]>);
      return turns
        .filter((turn) => turn.content.toLocaleLowerCase().includes(wanted))
        .sort((a, b) => b.created - a.created)
        .slice(0, most);
    },
  };
}
