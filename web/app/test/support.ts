import type { Conversation, Turn } from "../src/lib/conversation.js";
import type { Channel } from "../src/state/chats.svelte.js";

export function turn(id: string, parent: string | null, more: Partial<Turn> = {}): Turn {
  return {
    id,
    conversation: "c",
    parent,
    role: "user",
    content: id,
    created: Number(id.replace(/\D/gu, "") || 0),
    ...more,
  };
}

export function turns(...list: Turn[]): Record<string, Turn> {
  return Object.fromEntries(list.map((one) => [one.id, one]));
}

export function conversation(more: Partial<Conversation> = {}): Conversation {
  return { id: "c", title: "A title", created: 1, updated: 2, leaf: null, ...more };
}

/** Two ends of a line between tabs. */
export function channels(): [Channel, Channel] {
  const ends: [Channel, Channel] = [
    { onmessage: null, postMessage: (id) => deliver(1, id) },
    { onmessage: null, postMessage: (id) => deliver(0, id) },
  ];
  const deliver = (to: 0 | 1, id: string) =>
    queueMicrotask(() => ends[to].onmessage?.({ data: id } as MessageEvent<string>));
  return ends;
}

/** Lets everything that was started come to its end. */
export async function quiet(): Promise<void> {
  for (let round = 0; round < 50; round++) await Promise.resolve();
}
