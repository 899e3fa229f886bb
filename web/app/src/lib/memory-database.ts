// Conversations in memory alone: for windows whose browser keeps nothing, and for tests.

import type { Conversation, Turn } from "./conversation.js";
import type { Database, StoredBlob } from "./database.js";

export function memoryDatabase(): Database {
  const conversations = new Map<string, Conversation>();
  const turns = new Map<string, Turn>();
  const blobs = new Map<string, StoredBlob>();
  return {
    conversations: async () => structuredClone([...conversations.values()]),
    turns: async (id) => structuredClone([...turns.values()].filter((turn) => turn.conversation === id)),
    blob: async (id) => blobs.get(id)?.blob,
    async change(id, fields) {
      const old = conversations.get(id);
      if (old) conversations.set(id, { ...old, ...structuredClone(fields), id });
    },
    async add(stored) {
      const clash = stored.some(
        (one) => conversations.has(one.conversation.id) || one.turns.some((turn) => turns.has(turn.id)),
      );
      if (clash) throw new Error("a conversation or turn with this id exists already");
      for (const one of stored) {
        conversations.set(one.conversation.id, structuredClone(one.conversation));
        for (const turn of one.turns) turns.set(turn.id, structuredClone(turn));
        for (const blob of one.blobs) blobs.set(blob.id, blob);
      }
    },
    async putTurn(turn, added = []) {
      const owner = conversations.get(turn.conversation);
      if (!owner) return;
      turns.set(turn.id, structuredClone(turn));
      for (const blob of added) blobs.set(blob.id, blob);
      owner.updated = Math.max(owner.updated, Date.now());
    },
    async remove(id) {
      conversations.delete(id);
      for (const turn of turns.values()) if (turn.conversation === id) turns.delete(turn.id);
      for (const blob of blobs.values()) if (blob.conversation === id) blobs.delete(blob.id);
    },
    async search(text, most) {
      const wanted = text.toLocaleLowerCase();
      const hits = [...turns.values()].filter((turn) => turn.content.toLocaleLowerCase().includes(wanted));
      return structuredClone(hits.sort((a, b) => b.created - a.created).slice(0, most));
    },
  };
}
