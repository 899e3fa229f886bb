// Collections of documents: kept in this browser, shared by conversations.

import { AttachmentError, documentText } from "../lib/document-text.js";
import { memoryLibrary, openLibrary, type Collection, type Library, type LibraryDocument } from "../lib/library.js";
import { t } from "../text/index.svelte.js";
import { chats, UNDO_MS } from "./chats.svelte.js";
import { notices } from "./notices.svelte.js";

type Listed = Omit<LibraryDocument, "text">;

class Collections {
  list = $state.raw<Collection[]>([]);
  /** The documents of all collections, without their texts. */
  documents = $state.raw<Listed[]>([]);
  /** What could not be added, for a person. */
  problem = $state("");
  #opened: Promise<Library> | undefined;
  #channel: BroadcastChannel | undefined;

  /** The database, opened on first use. */
  library(): Promise<Library> {
    this.#opened ??= this.#open();
    return this.#opened;
  }

  async #open(): Promise<Library> {
    const library = await openLibrary().catch(() => memoryLibrary());
    this.#channel = new BroadcastChannel("rullama-library");
    this.#channel.onmessage = () => void this.#read(library);
    await this.#read(library);
    // Vectors of conversations that are gone.
    const known = new Set(chats().list.map(({ id }) => id));
    const gone = await library.ids(
      "vectors",
      ({ conversation }) => conversation !== undefined && !known.has(conversation),
    );
    if (gone.length > 0) await library.remove({ vectors: gone });
    return library;
  }

  async #read(library: Library): Promise<void> {
    this.list = (await library.all("collections")).sort((a, b) => a.created - b.created);
    const documents = await library.all("documents");
    this.documents = documents.map(({ text: _text, ...rest }) => rest).sort((a, b) => a.created - b.created);
  }

  async #changed(library: Library): Promise<void> {
    await this.#read(library);
    this.#channel?.postMessage("changed");
  }

  of(collection: string | undefined): Listed[] {
    return this.documents.filter((one) => one.collection === collection);
  }

  async create(name: string): Promise<Collection> {
    const library = await this.library();
    const made = { id: crypto.randomUUID(), name: name.trim().slice(0, 100), created: Date.now() };
    await library.put("collections", made);
    await this.#changed(library);
    return made;
  }

  /** Deletes a collection with its documents. */
  async remove(id: string): Promise<void> {
    const library = await this.library();
    const documents = this.of(id).map((one) => one.id);
    const vectors = await library.ids("vectors", ({ document }) => documents.includes(document));
    await library.remove({ collections: [id], documents, vectors });
    await this.#changed(library);
  }

  async add(collection: string, name: string, text: string): Promise<void> {
    const library = await this.library();
    await library.put("documents", { id: crypto.randomUUID(), collection, name, text, created: Date.now() });
    await this.#changed(library);
  }

  /** Adds files; says which of them cannot be. */
  async addFiles(collection: string, files: Iterable<File>): Promise<void> {
    this.problem = "";
    for (const file of files) {
      try {
        await this.add(collection, file.name, await documentText(file));
      } catch (error) {
        this.problem = error instanceof AttachmentError ? error.message : t("attach.failed", { name: file.name });
      }
    }
  }

  /** Deletes a document; a notice brings it back. */
  async removeDocument(id: string): Promise<void> {
    const library = await this.library();
    const row = await library.get("documents", id);
    const vectors = await library.ids("vectors", ({ document }) => document === id);
    await library.remove({ documents: [id], vectors });
    await this.#changed(library);
    if (!row) return;
    const restore = async () => {
      await library.put("documents", row);
      await this.#changed(library);
    };
    const action = { label: t("common.undo"), run: () => void restore() };
    notices.show(t("library.removed", { name: row.name }), { action, stays: UNDO_MS });
  }

  /** The text of a collection's document; undefined where it was deleted. */
  async text(id: string): Promise<string | undefined> {
    return (await (await this.library()).get("documents", id))?.text;
  }
}

export const collections = new Collections();
