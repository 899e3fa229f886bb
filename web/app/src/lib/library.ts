// Where collections of documents are kept, and the vectors of passages: in a database of their own, beside that of the conversations.

/** Documents under a name, which conversations share. */
export interface Collection {
  id: string;
  name: string;
  created: number;
}

/** A document of a collection. */
export interface LibraryDocument {
  id: string;
  collection: string;
  name: string;
  text: string;
  created: number;
}

/** The vectors of a document's passages, by one embedding model; of an attachment, `conversation` says whose. */
export interface StoredVectors {
  /** The document and the model. */
  id: string;
  document: string;
  conversation?: string;
  /** All vectors, one after the other. */
  values: Float32Array<ArrayBuffer>;
  count: number;
}

interface Rows {
  collections: Collection;
  documents: LibraryDocument;
  vectors: StoredVectors;
}
type Table = keyof Rows;
const TABLES: readonly Table[] = ["collections", "documents", "vectors"];

/** Rows of tables, by their ids. */
export interface Library {
  all<T extends Table>(table: T): Promise<Rows[T][]>;
  get<T extends Table>(table: T, id: string): Promise<Rows[T] | undefined>;
  put<T extends Table>(table: T, row: Rows[T]): Promise<void>;
  /** Deletes rows of several tables: all of them or none. */
  remove(ids: { [T in Table]?: readonly string[] }): Promise<void>;
  /** The ids of rows that a test holds for, read one after the other: vectors are large. */
  ids<T extends Table>(table: T, wanted: (row: Rows[T]) => boolean): Promise<string[]>;
}

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

/** A library in this browser's IndexedDB. */
export async function openLibrary(name = "rullama-library"): Promise<Library> {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => {
    for (const table of TABLES) request.result.createObjectStore(table, { keyPath: "id" });
  };
  const db = await settled(request);
  db.onversionchange = () => db.close();
  const reading = (table: Table) => db.transaction(table, "readonly").objectStore(table);
  return {
    all: <T extends Table>(table: T) => settled(reading(table).getAll() as IDBRequest<Rows[T][]>),
    get: <T extends Table>(table: T, id: string) => settled(reading(table).get(id) as IDBRequest<Rows[T] | undefined>),
    async put(table, row) {
      const transaction = db.transaction(table, "readwrite");
      const done = finished(transaction);
      transaction.objectStore(table).put(row);
      await done;
    },
    async remove(ids) {
      const transaction = db.transaction([...TABLES], "readwrite");
      const done = finished(transaction);
      for (const table of TABLES) for (const id of ids[table] ?? []) transaction.objectStore(table).delete(id);
      await done;
    },
    ids<T extends Table>(table: T, wanted: (row: Rows[T]) => boolean) {
      const found: string[] = [];
      const cursor = reading(table).openCursor();
      return new Promise<string[]>((resolve, reject) => {
        cursor.onerror = () => reject(cursor.error ?? new Error("the browser's database refused"));
        cursor.onsuccess = () => {
          const at = cursor.result;
          if (!at) return resolve(found);
          const row = at.value as Rows[T];
          if (wanted(row)) found.push(row.id);
          at.continue();
        };
      });
    },
  };
}

/** A library in memory alone: for windows whose browser keeps nothing, and for tests. */
export function memoryLibrary(): Library {
  const tables = { collections: new Map(), documents: new Map(), vectors: new Map() } as {
    [T in Table]: Map<string, Rows[T]>;
  };
  const of = <T extends Table>(table: T) => tables[table] as unknown as Map<string, Rows[T]>;
  return {
    all: async (table) => [...of(table).values()],
    get: async (table, id) => of(table).get(id),
    put: async (table, row) => void of(table).set(row.id, row),
    remove: async (ids) => {
      for (const table of TABLES) for (const id of ids[table] ?? []) of(table).delete(id);
    },
    ids: async (table, wanted) => [...of(table).values()].filter(wanted).map(({ id }) => id),
  };
}
