// Files of conversations that were damaged or made to harm: whatever is in them, they are read or refused with an `ImportError`;
// what hangs runs into the time limits of the tests.
import fc from "fast-check";
import { expect, test } from "vitest";
import { imported, ImportError } from "../src/lib/import.js";
import type { Stored } from "../src/lib/database.js";

const VALID = {
  format: "rullama-conversations",
  version: 1,
  exported: "2026-01-01T00:00:00.000Z",
  conversations: [
    {
      id: "c",
      title: "A title",
      created: 1,
      updated: 2,
      leaf: "a2",
      system: "be brief",
      turns: [
        {
          id: "q1",
          parent: null,
          role: "user",
          content: "hi",
          created: 1,
          attachments: [{ kind: "image", name: "p.png", data: "data:image/png;base64,AAECAwQ=" }],
        },
        {
          id: "a2",
          parent: "q1",
          role: "assistant",
          content: "ho",
          created: 2,
          finish: "stop",
          toolCalls: [{ name: "f", arguments: { x: [1, { y: null }] } }],
        },
      ],
    },
    { id: "d", title: "Another", created: 3, updated: 3, leaf: null, turns: [] },
  ],
};
const TEXT = JSON.stringify(VALID);
const TURN_FIELDS = new Set(
  "id conversation parent role content created attachments thinking toolName model badCalls toolCalls finish".split(
    " ",
  ),
);

async function read(text: string, step = 1 << 16): Promise<Stored[]> {
  async function* chunks() {
    for (let at = 0; at < text.length; at += step) yield text.slice(at, at + step);
  }
  const all: Stored[] = [];
  for await (const one of imported(chunks())) all.push(one);
  return all;
}

/** What is stored is what is known, hangs together, and changed nothing else. */
function valid(stored: Stored[]): void {
  for (const { conversation, turns, blobs } of stored) {
    const ids = new Set(turns.map((turn) => turn.id));
    expect(conversation.leaf === null || ids.has(conversation.leaf)).toBe(true);
    for (const turn of turns) {
      expect(Object.getPrototypeOf(turn)).toBe(Object.prototype);
      for (const key of Object.keys(turn)) expect(TURN_FIELDS.has(key)).toBe(true);
      expect(turn.parent === null || ids.has(turn.parent)).toBe(true);
      for (const one of turn.attachments ?? []) expect(blobs.some((row) => row.id === one.id)).toBe(true);
      for (const call of turn.toolCalls ?? []) expect(JSON.stringify(call.arguments)).not.toContain('"__proto__":');
    }
    // As the database copies it.
    structuredClone([conversation, turns]);
  }
}

async function survives(text: string, step?: number): Promise<void> {
  try {
    valid(await read(text, step));
  } catch (error) {
    expect(error).toBeInstanceOf(ImportError);
    expect((error as ImportError).message).not.toBe("");
  }
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  expect(Object.keys(Object.prototype)).toEqual([]);
}

const hostile = fc.oneof(
  fc.constantFrom<unknown>(null, true, -1, 1e308, "", "__proto__", "constructor", [], {}, [[]], "q1", "a2", "data:x"),
  fc.constant(JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')),
  fc.jsonValue(),
);

/** Every place in a value: the lists and objects, and their keys. */
function places(value: unknown, found: [object, string][] = []): [object, string][] {
  if (typeof value !== "object" || value === null) return found;
  for (const key of Object.keys(value)) {
    found.push([value, key]);
    places((value as Record<string, unknown>)[key], found);
  }
  return found;
}

test("what is unharmed is read", async () => {
  const all = await read(TEXT);
  valid(all);
  expect(all.map((one) => one.turns.length)).toEqual([2, 0]);
});

test("values replaced, taken away and put in", async () => {
  const change = fc.record({
    at: fc.nat(),
    value: hostile,
    how: fc.constantFrom("replace", "delete", "add", "rename"),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 4096 }),
      async (changes, step) => {
        const file = structuredClone(VALID) as unknown;
        for (const { at, value: given, how } of changes) {
          // A copy: a later change may reach into it.
          const value: unknown = JSON.parse(JSON.stringify(given));
          const all = places(file);
          const [owner, key] = all[at % all.length]!;
          const fields = owner as Record<string, unknown>;
          if (how === "replace") fields[key] = value;
          else if (how === "delete") delete fields[key];
          else if (how === "add")
            Object.defineProperty(fields, "__proto__", { value, enumerable: true, configurable: true, writable: true });
          else {
            fields[`${key}x`] = fields[key];
            delete fields[key];
          }
        }
        await survives(JSON.stringify(file), step);
      },
    ),
    { numRuns: 1500 },
  );
}, 60_000);

test("letters changed, cut and doubled, in chunks of any length", async () => {
  const letters = fc.constantFrom(...'{}[]",:\\0e-x \u0000\u2028\ud800');
  const change = fc.record({
    at: fc.nat(),
    length: fc.integer({ min: 0, max: 40 }),
    put: fc.string({ unit: letters, maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 1, max: 64 }),
      async (changes, step) => {
        let text = TEXT;
        for (const { at, length, put } of changes) {
          const from = at % (text.length + 1);
          text = text.slice(0, from) + put + text.slice(from + length);
        }
        await survives(text, step);
      },
    ),
    { numRuns: 1500 },
  );
}, 60_000);

test("any text at all", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ maxLength: 300 }), (text) => survives(text, 3)),
    { numRuns: 500 },
  );
});

test("the same result, however the file is cut", async () => {
  const shape = (all: Stored[]) =>
    all.map(({ conversation: { title, system }, turns, blobs }) => ({
      title,
      system,
      turns: turns.map(({ role, content, toolCalls }) => ({ role, content, toolCalls })),
      sizes: blobs.map((row) => row.blob.size),
    }));
  const whole = shape(await read(TEXT));
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 400 }), async (step) => {
      expect(shape(await read(TEXT, step))).toEqual(whole);
    }),
    { numRuns: 200 },
  );
});

const turn = (more: string) => TEXT.replace('"content":"ho"', `"content":"ho",${more}`);
test.each([
  ["a hundred thousand brackets", "[".repeat(100_000)],
  ["deep arguments", turn(`"usage":${"[".repeat(5000)}${"]".repeat(5000)}`)],
  ["deep objects in a call", TEXT.replace("[1,", `[${'{"a":'.repeat(5000)}1${"}".repeat(5000)},`)],
  ["a long key", `{"${"k".repeat(3 << 20)}":1}`],
  ["much around the conversations", TEXT.replace('"version":1', `"version":1,"more":"${"x".repeat(3 << 20)}"`)],
  ["many conversations that are none", TEXT.replace('"conversations":[', `"conversations":[${"0,".repeat(100_000)}`)],
  ["a prototype in a call", TEXT.replace('"x":', '"__proto__":{"polluted":1},"x":')],
  ["a turn whose prototype has the fields", TEXT.replace('"role":"user"', '"__proto__":{"role":"user"}')],
  ["conversations twice", TEXT.replace('"version":1', '"version":1,"conversations":[{}]')],
])("%s", (_name, text) => survives(text));

test("many turns that answer each other in a circle are refused soon", async () => {
  const turns = Array.from({ length: 20_000 }, (_, at) => {
    const parent = `t${(at + 1) % 20_000}`;
    return { id: `t${at}`, parent, role: "user", content: "", created: at };
  });
  const file = { ...VALID, conversations: [{ ...VALID.conversations[1], turns }] };
  await expect(read(JSON.stringify(file))).rejects.toThrow(/in a loop/u);
});
