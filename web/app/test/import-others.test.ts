// Chats of other programs, as they export them; and files that only look like it.
import fc from "fast-check";
import { expect, test } from "vitest";
import { branch } from "../src/lib/conversation.js";
import { ImportError } from "../src/lib/import.js";
import { foreign } from "../src/lib/import-others.js";
import { turns as byId } from "./support.js";

const shown = ([one]: ReturnType<typeof foreign>) =>
  branch(byId(...one!.turns), one!.conversation.leaf).map(({ role, content }) => `${role}: ${content}`);

test("ChatGPT: the branch that was shown, without what was hidden", () => {
  const node = (id: string, parent: string | null, role?: string, ...parts: unknown[]) => ({
    id,
    parent,
    message: role ? { author: { role }, content: { parts }, create_time: 1_700_000_000 } : null,
  });
  const mapping = {
    root: node("root", null),
    system: node("system", "root", "system", ""),
    a: node("a", "system", "user", "Why is the sky blue?", { asset: 1 }),
    b: node("b", "a", "assistant", "Because."),
    c: node("c", "a", "assistant", "Rayleigh."),
  };
  const file = [{ title: "Sky", create_time: 1_700_000_000, update_time: 1_700_000_100.5, mapping, current_node: "c" }];
  const read = foreign(JSON.stringify(file));
  expect(shown(read)).toEqual(["user: Why is the sky blue?", "assistant: Rayleigh."]);
  expect(read[0]?.turns).toHaveLength(3);
  expect(read[0]?.conversation).toMatchObject({ title: "Sky", created: 1_700_000_000_000, updated: 1_700_000_100_500 });
});

test("Open WebUI: messages by id, with models and a system prompt", () => {
  const messages = {
    q: { id: "q", parentId: null, role: "user", content: "Hi", timestamp: 1_700_000_000 },
    a: { id: "a", parentId: "q", role: "assistant", content: "Ho", timestamp: 1_700_000_001, model: "gemma4:e2b" },
  };
  const chat = { title: "Greeting", system: "Be brief.", history: { messages, currentId: "a" } };
  const read = foreign(JSON.stringify([{ id: "x", title: "Greeting", created_at: 1_700_000_000, chat }]));
  expect(shown(read)).toEqual(["user: Hi", "assistant: Ho"]);
  expect(read[0]?.conversation.system).toBe("Be brief.");
  expect(read[0]?.turns[1]?.model).toBe("gemma4:e2b");
});

test("llama.cpp: a conversation with its messages", () => {
  const message = (id: number, parent: number | null, role: string, content: string, type = "text") => ({
    id,
    parent,
    role,
    content,
    type,
    timestamp: 1_700_000_000_000 + id,
  });
  const messages = [
    message(0, null, "system", "", "root"),
    message(1, 0, "user", "Hi"),
    message(2, 1, "assistant", "Ho"),
  ];
  const file = { conv: { id: "c", name: "Greeting", lastModified: 1_700_000_000_009, currNode: 2 }, messages };
  expect(shown(foreign(JSON.stringify(file)))).toEqual(["user: Hi", "assistant: Ho"]);
});

test("messages that answer each other in a loop begin anew", () => {
  const messages = {
    a: { parentId: "b", role: "user", content: "a" },
    b: { parentId: "a", role: "user", content: "b" },
  };
  const read = foreign(JSON.stringify([{ chat: { history: { messages, currentId: "b" } } }]));
  expect(read[0]?.turns.filter(({ parent }) => parent === null)).toHaveLength(1);
});

test("anything else is refused, and nothing breaks it", () => {
  for (const text of ["[]", "{}", "null", '[{"mapping":{}}]', "no json", '{"conv":1,"messages":[]}']) {
    expect(() => foreign(text), text).toThrow(ImportError);
  }
  const shape = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<unknown>("user", "assistant", "x", null, 1, -1, 1e300, true),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(
        fc.constantFrom(
          "mapping",
          "chat",
          "history",
          "messages",
          "conv",
          "parent",
          "parentId",
          "role",
          "message",
          "author",
          "content",
          "parts",
          "a",
          "b",
        ),
        tie("value"),
        { maxKeys: 6 },
      ),
    ),
  })).value;
  fc.assert(
    fc.property(shape, (value) => {
      let read;
      try {
        read = foreign(JSON.stringify(value));
      } catch (error) {
        expect(error).toBeInstanceOf(ImportError);
        return;
      }
      for (const { conversation, turns } of read) {
        const ids = new Set(turns.map(({ id }) => id));
        expect(conversation.leaf !== null && ids.has(conversation.leaf)).toBe(true);
        for (const { parent, content } of turns) {
          expect(parent === null || ids.has(parent)).toBe(true);
          expect(typeof content).toBe("string");
        }
      }
    }),
    { numRuns: 500 },
  );
});
